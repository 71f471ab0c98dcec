"""The clause of a join that asks for the nearest rows, cut by tokens: sqlglot does not read it, nor does DuckDB 1.

    [INNER | LEFT [OUTER]] JOIN table [[AS] alias] [APPROX | EXACT] NEAREST [k] BY (DISTANCE | SIMILARITY) expression

Its meaning in DuckDB: of the rows of the table for which the expression is not NULL, the k with the smallest distance
or the largest similarity, for each row before the JOIN. In the expression, a name that the table has refers to the
table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb

from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.statement.tokens import Token

KNOWS_NEAREST: Final = not duckdb.__version__.startswith(("0.", "1."))
"""Whether this DuckDB reads `JOIN … NEAREST k BY …`."""
MARK: Final = "__lance_nearest_"
"""Prefix of the names of calls that stand for clauses in the text that sqlglot reads."""
_DISTANCE: Final = "__lance_distance"
_NUMBER: Final = re.compile(r"[$\d.](?:[eE][+-]?\d|\w|\.)*")
_COUNT: Final = re.compile(r"0*[1-9]\d*")
_SIDES: Final = frozenset({"right", "full", "semi", "anti", "natural", "asof", "cross", "positional"})
_END_WORDS: Final = (
    "where group having window qualify order limit offset fetch union except intersect select using on returning "
    "tablesample join pivot unpivot"
)
_ENDS: Final = frozenset(_END_WORDS.split())
_JOINING: Final = frozenset({*_SIDES, "inner", "left"})
_JOINED: Final = frozenset({*_JOINING, "join", "outer"})


@dataclass(frozen=True)
class NearestClause:
    """The clause of one join.

    Attributes:
        table: Where the table begins in the text.
        start: Start of the clause.
        expression: Start of its expression.
        end: End of its expression.
        alias: Name of the table in the statement; None for a query without a name.
        k: Number of rows, at least 1.
        largest_first: Whether the expression is a similarity.
        is_exact: Whether it says EXACT.
        is_left: Whether a row without any match stays.
    """

    table: int
    start: int
    expression: int
    end: int
    alias: str | None
    k: int
    largest_first: bool
    is_exact: bool
    is_left: bool

    def reading(self, number: int) -> tuple[Edit, ...]:
        """Return edits after which sqlglot reads the join: a call in its ON holds the expression.

        Args:
            number: Number of the clause in the statement.
        """
        return (
            Edit(self.start, self.expression, f" ON {MARK}{number}("),
            Edit(self.end, self.end, ")"),
        )

    def as_lateral(self) -> tuple[Edit, ...]:
        """Return edits after which any DuckDB reads the join: it compares all rows."""
        order = "DESC" if self.largest_first else "ASC"
        return (
            Edit(self.table, self.table, "LATERAL (FROM (FROM "),
            Edit(self.start, self.expression, " SELECT *, "),
            Edit(
                self.end,
                self.end,
                f" AS {_DISTANCE}) SELECT * EXCLUDE ({_DISTANCE}) WHERE {_DISTANCE} IS NOT NULL "
                f"ORDER BY {_DISTANCE} {order} NULLS LAST LIMIT {self.k}){self._alias} ON true",
            ),
        )

    def sorted_lateral(self) -> tuple[Edit, ...]:
        """Return edits after which the join sorts what stands in the place of the table, which holds no NULL."""
        order = "DESC" if self.largest_first else "ASC"
        return (
            Edit(self.table, self.table, "LATERAL (SELECT * FROM "),
            Edit(self.start, self.expression, " ORDER BY ("),
            Edit(self.end, self.end, f") {order} NULLS LAST LIMIT {self.k}){self._alias} ON true"),
        )

    @property
    def _alias(self) -> str:
        return "" if self.alias is None else f" AS {quoted(self.alias)}"


def is_nearest_clause(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a clause begins at a place."""
    return _length(Clauses("", tokens, (), 0), place) > 0


def nearest_clauses(sql: str, tokens: Sequence[Token]) -> tuple[NearestClause, ...]:
    """Return the clauses of a text, in its order.

    Args:
        sql: The text.
        tokens: Tokens of the text.
    """
    if not any(token.word == "nearest" for token in tokens):
        return ()
    clauses = Clauses.over(sql, tokens)
    return tuple(_found(clauses))


def _found(clauses: Clauses) -> Iterator[NearestClause]:
    for place in range(1, len(clauses)):
        if clauses.word(place) == "join" and clauses.word(place - 1) not in _SIDES:
            clause = _after_join(clauses, place)
            if clause is not None:
                yield clause


def _after_join(clauses: Clauses, join: int) -> NearestClause | None:
    """Return the clause of a join; None where it has none."""
    table = _table(clauses, join + 1)
    if table is None:
        return None
    alias, start = table
    length = _length(clauses, start)
    expression = start + length
    end = _end(clauses, expression)
    if not length or end <= expression:
        return None
    words = [clauses.word(i) for i in range(start, expression)]
    before = clauses.word(join - 1)
    counts = [_number(clauses, i) for i in range(start, expression) if clauses.word(i) is None]
    return NearestClause(
        table=clauses.tokens[join + 1].start,
        start=clauses.tokens[start].start,
        expression=clauses.tokens[expression].start,
        end=_text_end(clauses, end),
        alias=alias,
        k=int(counts[0]) if counts else 1,
        largest_first=words[-1] == "similarity",
        is_exact=words[0] == "exact",
        is_left="left" in (before, clauses.word(join - 2) if before == "outer" else None),
    )


def _table(clauses: Clauses, place: int) -> tuple[str | None, int] | None:
    """Return what a joined table is called, and the place after that; None for what is not a table, query or call."""
    if clauses.text_at(place) == "(":
        name, after = None, clauses.closer(place) + 1
    else:
        table = TableName.at(clauses, place)
        if table is None or clauses.word(place) == "lateral":
            return None
        name, after = table.name, table.after
        if clauses.text_at(after) == "(":
            after = clauses.closer(after) + 1
    after = _after_travel(clauses, after)
    if not _length(clauses, after):
        at = after + (clauses.word(after) == "as")
        alias = clauses.tokens[at].name if at < len(clauses) else None
        if alias is None:
            return None
        name, after = alias, at + 1
        if clauses.text_at(after) == "(":
            after = clauses.closer(after) + 1
        after = _after_travel(clauses, after)
    return name, after


def _after_travel(clauses: Clauses, place: int) -> int:
    """Return the place after AT (…), where it stands at a place."""
    travels = clauses.says(place, "at") and clauses.text_at(place + 1) == "("
    return clauses.closer(place + 1) + 1 if travels else place


def _length(clauses: Clauses, place: int) -> int:
    """Return the number of tokens before the expression of a clause that begins at a place; 0 where none does."""
    at = place + (clauses.word(place) in ("approx", "exact"))
    if clauses.word(at) != "nearest":
        return 0
    at += 1
    if clauses.word(at) != "by":
        if not _COUNT.fullmatch(_number(clauses, at)):
            return 0
        at += 1
    is_clause = clauses.says(at, "by", "distance") or clauses.says(at, "by", "similarity")
    return at + 2 - place if is_clause else 0


def _end(clauses: Clauses, start: int) -> int:
    """Return the place after the expression that begins at a place."""
    depth = clauses.depths[start] if start < len(clauses) else 0
    for place in range(start, len(clauses)):
        text, word = clauses.text_at(place), clauses.word(place)
        if clauses.depths[place] < depth:
            return place
        if clauses.depths[place] == depth and (
            text in (",", ";")
            or (word in _ENDS and clauses.text_at(place - 1) != ".")
            or (word in _JOINING and clauses.word(place + 1) in _JOINED)
        ):
            return place
    return len(clauses)


def _number(clauses: Clauses, place: int) -> str:
    """Return the number or parameter at a place as it is spelled: DuckDB says only where one begins."""
    start = clauses.tokens[place].start if place < len(clauses) else 0
    match = _NUMBER.match(clauses.tokens[place].source, start) if place < len(clauses) else None
    return "" if match is None else match[0]


def _text_end(clauses: Clauses, place: int) -> int:
    """Return where the token before a place ends in the text."""
    last = clauses.tokens[place - 1]
    return max(last.end, last.start + len(_number(clauses, place - 1)))
