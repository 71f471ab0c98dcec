"""Counts of all rows of a table, known from its manifest, and of values of its columns. Pure.

SELECT count(*) [[AS] name] [, …] FROM t [;]
SELECT count(x) [[AS] name] [, …] FROM t [;]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import duckdb

from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.text import Statement

_TITLE: Final = "count_star()"
_COUNT: Final = ("count", "(")
_MOST_TOKENS: Final = 1_000


@dataclass(frozen=True)
class Count:
    """One column of the result.

    Attributes:
        start, end: Its place in the text.
        title: Title of the column.
        column: Column whose non-null values are counted, in any case; None to count all rows.
    """

    start: int
    end: int
    title: str
    column: str | None


@dataclass(frozen=True)
class CountedTable:
    """A statement that asks only for counts of a table.

    Attributes:
        start, end: Its place in the text, without the `;`.
        name: Parts of the name of the table.
        counts: The requested counts, in order.
    """

    start: int
    end: int
    name: tuple[str, ...]
    counts: tuple[Count, ...]


def find(statement: Statement) -> tuple[CountedTable, ...]:
    """Find the table whose rows a statement counts; nothing if it asks for anything else.

    A column is a plain word that is not a keyword of DuckDB's, which titles would have in quotes.
    """
    if len(statement.parts) != 1 or not 7 <= len(statement.tokens) <= _MOST_TOKENS:
        return ()
    tokens = statement.tokens[:-1] if statement.tokens[-1].text == ";" else statement.tokens
    if tuple(token.text.lower() for token in tokens[:3]) != ("select", *_COUNT):
        return ()
    clauses = Clauses.over(statement.text, tokens)
    from_ = clauses.find("from")
    table = TableName.at(clauses, from_ + 1) if from_ > 0 else None
    if table is None or table.path is not None or table.after != len(tokens):
        return ()
    counts = [_count(item) for item in clauses.part(1, from_).split()]
    known = tuple(count for count in counts if count is not None)
    if len(known) < len(counts):
        return ()
    return (CountedTable(tokens[0].start, tokens[-1].end, table.parts, known),)


def _count(item: Clauses) -> Count | None:
    """Read one expression of a SELECT; None where it is not a count, or says more."""
    tokens = item.tokens
    if tuple(token.text.lower() for token in tokens[:2]) != _COUNT or item.text_at(3) != ")":
        return None
    column = tokens[2].text if tokens[2].word is not None and _is_plain(tokens[2].text) else None
    if column is None and tokens[2].text != "*":
        return None
    if len(tokens) == 4:
        return Count(tokens[0].start, tokens[3].end, _TITLE if column is None else f"count({column})", column)
    named = tokens[-1].name
    if named is None or len(tokens) != 5 + (item.word(4) == "as"):
        return None
    return Count(tokens[0].start, tokens[-1].end, named, column)


def _is_plain(word: str) -> bool:
    return [kind for _, kind in duckdb.tokenize(word)] == [duckdb.token_type.identifier]
