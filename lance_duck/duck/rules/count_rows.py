"""The number of rows of a whole table, which its manifest tells, and of values of a column. Pure.

SELECT count(*) [[AS] name] FROM t [;]
SELECT count(x) [[AS] name] FROM t [;]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import duckdb

from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.text import Statement

_TITLE: Final = "count_star()"
_COUNT: Final = ["select", "count", "("]


@dataclass(frozen=True)
class CountedTable:
    """A statement that asks for nothing but a number of rows.

    Attributes:
        start, end: Its place in the text, without the `;`.
        name: Parts of the name of the table.
        title: What the column of the result is called.
        column: Whose values are counted, NULL aside, without regard to case; None: all rows are.
    """

    start: int
    end: int
    name: tuple[str, ...]
    title: str
    column: str | None = None


def find(statement: Statement) -> tuple[CountedTable, ...]:
    """Find the table whose rows a statement counts; nothing where it says anything more.

    A column is a plain word that is no key word of DuckDB's, which titles would have in quotes.
    """
    if len(statement.parts) != 1 or not 7 <= len(statement.tokens) <= 20:
        return ()
    tokens = statement.tokens[:-1] if statement.tokens[-1].text == ";" else statement.tokens
    if [token.text.lower() for token in tokens[:3]] != _COUNT or tokens[4].text != ")":
        return ()
    column = tokens[3].text if tokens[3].word is not None and _is_plain(tokens[3].text) else None
    if column is None and tokens[3].text != "*":
        return ()
    clauses = Clauses.over(statement.text, tokens)
    at, title = 5, _TITLE if column is None else f"count({column})"
    if clauses.word(at) != "from":
        at += clauses.word(at) == "as"
        named = tokens[at].name if at < len(tokens) else None
        if named is None:
            return ()
        at, title = at + 1, named
    table = TableName.at(clauses, at + 1) if clauses.word(at) == "from" else None
    if table is None or table.path is not None or table.after != len(tokens):
        return ()
    return (CountedTable(tokens[0].start, tokens[-1].end, table.parts, title, column),)


def _is_plain(word: str) -> bool:
    return [kind for _, kind in duckdb.tokenize(word)] == [duckdb.token_type.identifier]
