"""Placeholders: `$1`, `$name` and `?`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.tokens import Token, edited, tokens_of
from lance_duck.scan.identifiers import literal

LISTED: Final = "__lance_v"
"""Prefix of the parameter names that replace number lists. See `lifted`."""
_PLACEHOLDER: Final = re.compile(r"\$(\d+|[^\W\d]\w*)(?![\w$])")


def placeholders_in(tokens: Sequence[Token]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name or number of each placeholder as a string, and its range in characters."""
    for token in tokens:
        match = _PLACEHOLDER.match(token.source, token.start) if token.text == "$" else None
        if match is not None:
            yield match[1], match.span()


_CONSTANTS: Final[Mapping[type, Callable[[Any], str]]] = {
    type(None): lambda value: "NULL",
    bool: lambda value: f"{value}::BOOLEAN",
    int: lambda value: f"'{value}'::{_integer_type(value)}",
    float: lambda value: f"'{value!r}'::DOUBLE",
    str: lambda value: f"{literal(_without_zeros(value))}::VARCHAR",
    bytes: lambda value: f"from_hex('{value.hex()}')",
    date: lambda value: f"DATE '{value}'",
    UUID: lambda value: f"'{value}'::UUID",
    Decimal: lambda value: _decimal(value),
    list: lambda values: f"[{', '.join(map(_constant, values))}]",
}
"""SQL expressions with the type and value of a Python value that is passed as a parameter."""


def with_constants(sql: str, values: Any) -> str | None:
    """Return a statement with constants in place of its placeholders.

    Args:
        sql: The statement.
        values: A list with a value for each `?` or `$1`, or a mapping with a value for each `$name`.

    Returns:
        The edited statement. None if a value has no exact constant, or the values do not fit the placeholders.
    """
    if not isinstance(values, Mapping | list | tuple):
        return None
    by_name = values if isinstance(values, Mapping) else {str(i): value for i, value in enumerate(values, 1)}
    tokens = tokens_of(sql)
    places = list(placeholders_in(tokens))
    marks = [token.start for token in tokens if token.text == "?"]
    places += [(str(i), (start, start + 1)) for i, start in enumerate(marks, 1)]
    if {name for name, _ in places} != {str(name) for name in by_name}:
        return None
    try:
        return edited(sql, [Edit(*span, _constant(by_name[name])) for name, span in places])
    except (KeyError, ValueError):  # ValueError: raised below
        return None


def _constant(value: Any) -> str:
    return _CONSTANTS[type(value)](value)


def _integer_type(value: int) -> str:
    bits = (value if value >= 0 else ~value).bit_length()
    for most, name in ((31, "INTEGER"), (63, "BIGINT"), (64, "UBIGINT"), (127, "HUGEINT"), (128, "UHUGEINT")):
        if bits <= most and (value >= 0 or name[0] != "U"):
            return name
    raise ValueError


def _without_zeros(value: str) -> str:
    if "\0" in value:  # the end of a text for DuckDB's parser
        raise ValueError
    return value


def _decimal(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > 0:  # NaN, infinity, or another number of digits in DuckDB
        raise ValueError
    return f"({value:f})" if exponent else f"'{value:f}'::DECIMAL({len(digits)}, 0)"
