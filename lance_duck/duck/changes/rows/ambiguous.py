"""Rejects clauses with columns or fields whose names differ only by case.

Lance tables from other writers may have both a column `id` and a column `ID`. DuckDB renames them to `id` and `ID_1`,
and a statement cannot refer to either one reliably. If there is also a column `ID_1`, DuckDB gives it another name too.
Changes that use an ambiguous name are rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lance_duck.duck.changes.rows.mentions import means_row
from lance_duck.duck.changes.target import TargetTable, ambiguous_name
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.identifiers import folded

_OPERANDS: Final = frozenset({")", "]", "}"})
_TABLES: Final = frozenset({"from", "using"})


def refuse_ambiguous(table: TargetTable, alias: str, clauses: Sequence[Clauses]) -> None:
    """Reject clauses that name ambiguous columns or fields, or that use whole rows with ambiguous columns.

    Args:
        table: The table.
        alias: Its alias in the statement.
        clauses: Its clauses.

    Raises:
        InvalidInputError: A clause uses an ambiguous name.
    """
    if table.unambiguous is table:
        return
    columns = table.ambiguous
    fields = {name: names for column in table.columns for name, names in column.ambiguous.items()}
    qualifiers = {folded(alias), folded(table.name)}
    for part in clauses:
        for place in range(len(part)):
            for known, name in ((columns, _column(part, place, qualifiers)), (fields, _field(part, place))):
                if name is not None and folded(name) in known:
                    raise ambiguous_name(name, known[folded(name)], f"table {table.name}")
        if part.word(0) == "returning":
            _refuse_returned(table, qualifiers, part)
    if means_row(table, alias, clauses):
        table.refuse_ambiguous()


def _refuse_returned(table: TargetTable, qualifiers: set[str], part: Clauses) -> None:
    """Reject a RETURNING that returns all columns, or a column whose type native tables do not support."""
    if next(_stars(part), None) is not None:
        table.refuse_ambiguous()
    names = {folded(name) for place in range(len(part)) if (name := _column(part, place, qualifiers)) is not None}
    for column in table.columns:
        if folded(column.name) in names:
            column.refuse_ambiguous(f"table {table.name}")


def _column(part: Clauses, place: int, qualifiers: set[str]) -> str | None:
    """Return the name at a position if it may refer to a table column."""
    name, before, after = part.tokens[place].name, part.text_at(place - 1), part.text_at(place + 1)
    if before == ".":
        qualifier = part.tokens[place - 2].name if place > 1 else None
        return name if qualifier is not None and folded(qualifier) in qualifiers else None
    if part.word(0) in _TABLES:
        return None  # subqueries there cannot refer to columns of the table
    is_key = after == ":" and not part.sql.startswith("::", part.tokens[place + 1].start)
    return None if after == "(" or is_key or part.word(place - 1) == "as" else name


def _field(part: Clauses, place: int) -> str | None:
    """Return the name at a position if it may refer to a struct field."""
    token = part.tokens[place]
    if part.text_at(place - 1) == ".":
        return token.name
    return token.text[1:-1] if token.text[:1] == "'" and part.text_at(place - 1) in ("[", ",") else None


def _stars(part: Clauses) -> Iterator[int]:
    """Yield the positions of stars that mean all columns. In a product, an operand precedes the star."""
    for place in range(1, len(part)):
        before = part.tokens[place - 1]
        is_product = before.text in _OPERANDS or before.text[:1].isdigit() or before.text[:1] == "'"
        is_product = is_product or (before.name is not None and before.word not in ("returning", "distinct", "all"))
        if part.text_at(place) == "*" and not is_product and part.text_at(place - 2) != "count":
            yield place
