"""Finds aggregates of whole columns, which metadata or an index may answer. Pure.

SELECT count(*) | count(x) | min(x) | max(x) [[AS] name] [, …] FROM t [;]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import duckdb

from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.text import Statement

FUNCTIONS: Final = ("count", "min", "max")

_TITLE: Final = "count_star()"
_MOST_TOKENS: Final = 1_000


@dataclass(frozen=True)
class Aggregate:
    """One column of the result.

    Attributes:
        start, end: Range in the text, in characters.
        title: Name of the result column.
        function: One of `FUNCTIONS`.
        column: Column whose non-NULL values are aggregated, case-insensitive. None to count all rows.
    """

    start: int
    end: int
    title: str
    function: str
    column: str | None


@dataclass(frozen=True)
class AggregatedTable:
    """A statement that only returns aggregates of one table.

    Attributes:
        start, end: Range in the text, in characters, without the `;`.
        name: Parts of the table name.
        aggregates: The requested aggregates, in order.
    """

    start: int
    end: int
    name: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]


def find(statement: Statement) -> tuple[AggregatedTable, ...]:
    """Find the table that a statement aggregates. Returns an empty tuple for other statements.

    Columns must be plain words and not DuckDB keywords, because DuckDB quotes keywords in column names.
    """
    if len(statement.parts) != 1 or not 7 <= len(statement.tokens) <= _MOST_TOKENS:
        return ()
    tokens = statement.tokens[:-1] if statement.tokens[-1].text == ";" else statement.tokens
    if tokens[0].text.lower() != "select" or tokens[1].text.lower() not in FUNCTIONS or tokens[2].text != "(":
        return ()
    clauses = Clauses.over(statement.text, tokens)
    from_ = clauses.find("from")
    table = TableName.at(clauses, from_ + 1) if from_ > 0 else None
    if table is None or table.path is not None or table.after != len(tokens):
        return ()
    items = [_aggregate(item) for item in clauses.part(1, from_).split()]
    known = tuple(item for item in items if item is not None)
    if len(known) < len(items):
        return ()
    return (AggregatedTable(tokens[0].start, tokens[-1].end, table.parts, known),)


def _aggregate(item: Clauses) -> Aggregate | None:
    """Read one SELECT item. Returns None if it is not an aggregate of a column."""
    tokens = item.tokens
    function = tokens[0].text.lower() if tokens else ""
    if function not in FUNCTIONS or item.text_at(1) != "(" or item.text_at(3) != ")":
        return None
    column = tokens[2].text if tokens[2].word is not None and _is_plain(tokens[2].text) else None
    if column is None and (function != "count" or tokens[2].text != "*"):
        return None
    if len(tokens) == 4:
        title = _TITLE if column is None else f"{function}({column})"
        return Aggregate(tokens[0].start, tokens[3].end, title, function, column)
    named = tokens[-1].name
    if named is None or len(tokens) != 5 + (item.word(4) == "as"):
        return None
    return Aggregate(tokens[0].start, tokens[-1].end, named, function, column)


def _is_plain(word: str) -> bool:
    return [kind for _, kind in duckdb.tokenize(word)] == [duckdb.token_type.identifier]
