"""Finds the new values in a MERGE that a SELECT can compute with the same result.

    source.column
    source.column + 1, coalesce(table.column, source.column), CASE WHEN … END, …

An expression consists of qualified columns, constants and operators. Calls, subqueries and stars are not accepted,
because in a SELECT they fail or have a different meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import folded

_WORDS: Final = frozenset(
    ["case", "when", "then", "else", "end", "and", "or", "not", "is", "null", "true", "false", "between", "coalesce"]
)
_SIGNS: Final = frozenset("+-*/%<>=!|(),$'")
"""First characters of operators, strings and placeholders."""


@dataclass(frozen=True)
class Side:
    """One of the two tables of a MERGE.

    Attributes:
        name: Its name in the statement.
        columns: Its columns by their names in lower case.
    """

    name: str
    columns: Mapping[str, str]


@dataclass(frozen=True)
class MergeValue:
    """A new value for a column.

    Attributes:
        text: SQL with qualified columns.
        column: The source column, if the value is a plain column.
        of_source: Source columns that it reads.
        of_target: Table columns that it reads.
    """

    text: str
    column: str | None
    of_source: frozenset[str]
    of_target: frozenset[str]

    @classmethod
    def of(cls, part: Clauses, source: Side, target: Side) -> MergeValue | None:
        """Read an expression. Returns None if its meaning may differ in a SELECT."""
        columns: dict[str, set[str]] = {folded(source.name): set(), folded(target.name): set()}
        sides = {folded(side.name): side.columns for side in (source, target)}
        pairs = columns_read(part)
        if pairs is None:
            return None
        for side, column in pairs:
            if column not in sides.get(side, ()):
                return None
            columns[side].add(sides[side][column])
        of_source, of_target = (frozenset(columns[folded(side.name)]) for side in (source, target))
        is_column = len(part) == 3 and len(of_source) == 1
        return cls(part.text, next(iter(of_source)) if is_column else None, of_source, of_target)


def columns_read(part: Clauses) -> list[tuple[str, str]] | None:
    """Return (qualifier, column) pairs, in lower case, of the columns that an expression reads.

    Returns None if its meaning may differ in a SELECT.
    """
    pairs = []
    at = 0
    while at < len(part):
        if part.text_at(at + 1) != ".":
            if not _is_plain(part, at):
                return None
            at += 1
            continue
        name = TableName.at(part, at)
        if name is None or len(name.parts) != 2 or name.path is not None or part.text_at(name.after) in ("(", "["):
            return None
        pairs.append((folded(name.parts[0]), folded(name.parts[1])))
        at = name.after
    return pairs


def _is_plain(part: Clauses, place: int) -> bool:
    token = part.tokens[place]
    if token.word is not None:
        return token.word in _WORDS
    text = token.text
    return token.name is None and (text[:1] in _SIGNS or text[:1].isdigit())
