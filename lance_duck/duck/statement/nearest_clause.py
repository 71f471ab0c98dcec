"""Token-based parser for the NEAREST clause of joins, which sqlglot and DuckDB 1 do not support.

    [INNER | LEFT [OUTER]] JOIN table [[AS] alias] [APPROX | EXACT] NEAREST [k] BY (DISTANCE | SIMILARITY) expression

Semantics in DuckDB: each row on the left is joined with the k rows of the table that have the smallest distance or the
largest similarity. Rows with a NULL expression never match. In the expression, the table's own columns take
precedence.
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
"""Whether this DuckDB version parses `JOIN … NEAREST k BY …`."""
MARK: Final = "__lance_nearest_"
"""Name prefix of the calls that replace NEAREST clauses in the text for sqlglot."""
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
    """The NEAREST clause of one join. Offsets are in characters.

    Attributes:
        table: Start of the table.
        start: Start of the clause.
        expression: Start of its expression.
        end: End of its expression.
        alias: Alias or name of the table, or None for a query without an alias.
        k: Number of rows, at least 1.
        largest_first: Whether the expression is a similarity.
        is_exact: Whether the clause contains EXACT.
        is_left: Whether rows without a match are kept.
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
        """Return edits that let sqlglot parse the join. The expression becomes a call in ON.

        Args:
            number: Number of the clause in the statement.
        """
        return (
            Edit(self.start, self.expression, f" ON {MARK}{number}("),
            Edit(self.end, self.end, ")"),
        )

    def as_lateral(self) -> tuple[Edit, ...]:
        """Return edits that let any DuckDB version run the join. The join then compares all rows."""
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
        """Return edits that sort the source that has replaced the table.

        The expression must not be NULL for its rows.
        """
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
    """Return whether a NEAREST clause begins at a token."""
    return _length(Clauses("", tokens, (), 0), place) > 0


def nearest_clauses(sql: str, tokens: Sequence[Token]) -> tuple[NearestClause, ...]:
    """Return the NEAREST clauses of a text, in text order.

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
    """Return the NEAREST clause of a join, or None."""
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
    """Return the alias or name of a joined table, and the next token.

    Returns None if no table, query or call begins at this token.
    """
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
    """Return the token after `AT (…)`, or the given token if it does not begin AT."""
    travels = clauses.says(place, "at") and clauses.text_at(place + 1) == "("
    return clauses.closer(place + 1) + 1 if travels else place


def _length(clauses: Clauses, place: int) -> int:
    """Return the token count of a clause up to its expression, or 0 if no clause begins at this token."""
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
    """Return the first token after an expression."""
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
    """Return the source text of a number or parameter. DuckDB only reports the start of the token."""
    start = clauses.tokens[place].start if place < len(clauses) else 0
    match = _NUMBER.match(clauses.tokens[place].source, start) if place < len(clauses) else None
    return "" if match is None else match[0]


def _text_end(clauses: Clauses, place: int) -> int:
    """Return the end offset of the previous token, in characters."""
    last = clauses.tokens[place - 1]
    return max(last.end, last.start + len(_number(clauses, place - 1)))
