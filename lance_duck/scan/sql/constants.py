"""Constants in the form of expressions, such as CAST('2020-01-01' AS DATE) or DATE '2020-01-01' - INTERVAL 1 DAY.

DuckDB evaluates the expression once, and its value is the constant. Because expressions may contain now(), filters that
read the clock must not be cached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from lance_duck.arrow.types import is_binary, is_text
from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator.expressions import query_tables
from lance_duck.scan.evaluator.types import Parameters
from lance_duck.scan.sql.literals import Literal, NotSimpleError
from lance_duck.scan.sql.tokens import SqlToken

_OF_THE_TIME: Final = re.compile(r"\b(?:now|today|current_\w+)\b", re.IGNORECASE)
_SUM: Final = re.compile(r"[0-9]{1,8}(?: ?[-+] ?[0-9]{1,8}){1,16}")
"""Integer sums that are short enough for DuckDB to add as INTEGER."""
_TERM: Final = re.compile(r"[-+]? ?[0-9]+")
_KEYWORDS: Final = frozenset(
    """
    cast try_cast as date timestamp timestamptz time interval true false null at current_date current_timestamp
    """.split()  # noqa: SIM905
)
_WORDS: Final = frozenset(
    """
    with zone precision year years month months week weeks day days hour hours minute minutes second seconds
    millisecond milliseconds microsecond microseconds varchar text string char blob bytea binary boolean bool tinyint
    smallint int integer bigint hugeint utinyint usmallint uinteger ubigint int1 int2 int4 int8 float real double
    float4 float8 decimal numeric datetime uuid x
    now today to_date to_timestamp to_timestamp_seconds to_timestamp_millis to_timestamp_micros make_date make_timestamp
    date_trunc date_add strptime epoch_ms unhex from_hex encode lower upper concat abs
    """.split()  # noqa: SIM905
)
_MARKS: Final = frozenset("( ) , . :: - + * / % |".split())  # noqa: SIM905
_ENDS: Final = (")", "]", ",", "and", "or", "not", "in")
_OPENING: Final = SqlToken("mark", "(")
_CLOSING: Final = SqlToken("mark", ")")


def constant_tokens(tokens: Iterable[SqlToken]) -> int:
    """Return the length, in tokens, of the constant expression with which the tokens begin. Returns 0 without one.

    The expression does not read columns. It ends before an operator that binds more loosely than arithmetic: see
    `ends_constant`.
    """
    depth = 0
    for count, token in enumerate(tokens):
        if depth == 0 and ends_constant(token):
            return count
        is_constant = token.kind in ("number", "text", "param") or token.text in _MARKS
        is_constant = is_constant or (token.kind == "keyword" and token.text in _KEYWORDS)
        if not is_constant and not (token.kind in ("word", "other") and token.text.lower() in _WORDS):
            return 0
        depth += (token == _OPENING) - (token == _CLOSING)
    return 0


def ends_constant(token: SqlToken) -> bool:
    """Return whether a constant ends before a token: a comparison, AND, OR, NOT, IN, a comma, a bracket, or the end."""
    return token.kind in ("op", "end") or token.text in _ENDS


def asks_for_the_time(text: str) -> bool:
    """Return whether SQL text may read the clock, so that its result changes over time."""
    return _OF_THE_TIME.search(text) is not None


def computed(text: str, parameters: Parameters = None) -> Literal:
    """Return the value of an expression without columns. Sums of a few integers do not need DuckDB.

    Raises:
        NotSimpleError: The expression cannot be evaluated, or its value cannot be compared exactly.
    """
    if _SUM.fullmatch(text) is not None:
        return Literal("number", str(sum(int(term.replace(" ", "")) for term in _TERM.findall(text))))
    try:
        value = query_tables(f"SELECT ({text}\n) AS value", {}, parameters).column(0)[0]
    except InvalidInputError as error:
        raise NotSimpleError from error
    return _literal(value)


def _literal(value: pa.Scalar) -> Literal:
    type_ = value.type
    if not value.is_valid:
        return Literal("value", None)
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return Literal("number", format(value.as_py(), "f" if pa.types.is_decimal(type_) else "d"))
    is_moment = pa.types.is_timestamp(type_) and type_.unit != "ns"
    if is_moment or pa.types.is_time(type_) or pa.types.is_date32(type_) or pa.types.is_boolean(type_):
        return Literal("value", _python_value(value))
    if type_ == pa.float64() or is_text(type_) or is_binary(type_):
        return Literal("value", value.as_py())
    raise NotSimpleError


def _python_value(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError) as error:  # infinity, or a year that Python does not support
        raise NotSimpleError from error
