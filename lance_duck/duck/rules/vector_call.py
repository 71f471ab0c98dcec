"""Finds calls of `lance_vector_search` with constants and parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlglot import exp

from lance_duck.duck.rules.order_by_distance import columns_of
from lance_duck.duck.rules.table_read import Key
from lance_duck.duck.statement.clauses import closing, divided
from lance_duck.duck.statement.deterministic_sql import is_plain_table
from lance_duck.duck.statement.placeholders import LISTED
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST, Token
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

FUNCTION: Final = "lance_vector_search"
_PLACE: Final = "__lance_found"
"""Name of the table that replaces the call in the syntax tree."""
_NAMES: Final = ("table_name", "column_name", "query_vector", "k", "nprobes", "refine_factor", "ef", "metric")
_MORE: Final = ("recall", "prefilter", "filter", "use_index", "version", "tag", "asof", "branch")
_WORDS: Final = {"true": True, "false": False, "null": None}
_CAST: Final = re.compile(r"::(float|double)\[\]$", re.I)
_NUMBER: Final = re.compile(r"\d{1,18}")
_DECIMAL: Final = re.compile(r"\d{0,9}\.\d{1,15}")


@dataclass(frozen=True)
class Parameter:
    """A parameter of the statement: its name, or the position of its `?`, counted from 1."""

    key: Key


@dataclass(frozen=True)
class VectorCall:
    """A call that is the only source of a statement.

    Attributes:
        start, end: Range in the text, in characters.
        arguments: Arguments of `Binder.bind_nearest`, by name.
        columns: Column names that the statement reads, in lower case. None if it may read any column.
        own: Names of parameters that only the call uses.
    """

    start: int
    end: int
    arguments: tuple[tuple[str, Any], ...]
    columns: frozenset[str] | None
    own: frozenset[str]


def find(statement: Statement) -> tuple[VectorCall, ...]:
    """Find the call that is the only source of a statement."""
    tokens, opening = statement.tokens, statement.opening
    calls = [i for i, token in enumerate(tokens) if token.word == FUNCTION]
    if len(calls) != 1 or len(statement.text) > LONGEST or opening is None or calls[0] + 2 >= len(tokens):
        return ()
    if opening.first == "with" or opening.explained or opening.stores:
        return ()
    at = calls[0]
    end = closing(tokens, at + 1) if tokens[at + 1].text == "(" and tokens[at - 1].text != "." else None
    if end is None or not isinstance(statement.tree, exp.Select):
        return ()
    arguments = _arguments(statement, at + 2, end)
    columns = _columns(statement.tree)
    if arguments is None or columns is None:
        return ()
    text = statement.text
    rest = text[: tokens[at].start] + text[tokens[end].end :]
    own = frozenset(value.key for value in arguments.values() if isinstance(value, Parameter))
    names = frozenset(key for key in own if isinstance(key, str))
    if any(re.search(rf"\${key}\b", rest) for key in names):
        return ()
    return (VectorCall(tokens[at].start, tokens[end].end, tuple(arguments.items()), columns[0], names),)


def _columns(select: exp.Select) -> tuple[frozenset[str] | None] | None:
    """Return the column names that a SELECT reads from a call, in a tuple.

    Returns None if the call is not the SELECT's only source.
    """
    select = select.copy()
    table: Any = None if select.args.get("from_") is None else select.args["from_"].this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Anonymous):
        return None
    if str(table.this.this).lower() != FUNCTION or any(select.args.get(n) for n in ("joins", "laterals")):
        return None
    table.set("this", exp.to_identifier(_PLACE))
    if not is_plain_table(table) or sum(1 for _ in select.find_all(exp.Select, exp.Table, exp.SetOperation)) != 2:
        return None
    return (columns_of(select, table.alias_or_name.lower()),)


def _arguments(statement: Statement, first: int, end: int) -> dict[str, Any] | None:
    """Return the arguments by name. Returns None if an argument is not a constant or a parameter."""
    arguments: dict[str, Any] = {}
    for number, part in enumerate(divided(statement.tokens[first:end], ",")):
        if not part:
            return None
        text = _text(part)
        named = re.match(r"(\"?)(\w+)\1\s*(?::=|=>)\s*", text)
        if (named is None) != (number < 3):
            return None
        name = _NAMES[number] if named is None else named[2].lower()
        value = text if named is None else text[named.end() :]
        if name in arguments or name not in _NAMES + _MORE:
            return None
        marks = [statement.marks.index(token.start) + 1 for token in part if token.text == "?"]
        constant = _constant(value, marks[0] if marks else None, is_vector=name == "query_vector")
        if constant is None:
            return None
        arguments[name] = constant[0]
    return arguments if {*_NAMES[:3]} <= {*arguments} else None


def _text(tokens: Sequence[Token]) -> str:
    """Return the source text of an argument."""
    first, last = tokens[0], tokens[-1]
    source = first.source
    # Number tokens contain only the first character.
    number = re.compile(r"[\w.]*").match(source, last.end)
    return source[first.start : last.end if number is None else number.end()]


def _constant(text: str, mark: int | None, *, is_vector: bool) -> tuple[Any] | None:
    """Return the value of a constant or parameter, in a tuple. Returns None for other expressions."""
    if is_vector:
        cast = _CAST.search(text)
        if cast is not None:
            text = text[: cast.start()].strip()
            if text.startswith(f"${LISTED}") and cast[1].lower() == "float" and not SPEAKS_SOURCE:
                return None  # DuckDB 1.x rounds decimal numbers differently
    if text == "?" and mark is not None:
        return (Parameter(mark),)
    if re.fullmatch(r"\$[a-z_]\w*", text, re.I):
        return (Parameter(text[1:]),)
    if is_vector or LISTED in text:
        return None
    if re.fullmatch(r"'(?:[^']|'')*'", text):
        return (text[1:-1].replace("''", "'"),)
    if _NUMBER.fullmatch(text):
        return (int(text),)
    if _DECIMAL.fullmatch(text):
        return (float(text),)
    return (_WORDS[text.lower()],) if text.lower() in _WORDS else None
