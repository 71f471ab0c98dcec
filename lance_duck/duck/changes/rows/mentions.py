"""Finds clauses that use a whole row of the target, as a value or with a star.

Statements are evaluated on the table's columns plus the row address. Users cannot name the address column, but row
values (`to_json(t)`) and stars (`t.*`) would include it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from lance_duck.duck.changes.target import ADDRESS, TargetTable
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.tables.row_identifier_columns import ROW_IDENTIFIERS
from lance_duck.errors import UnsupportedError

_BOUND_OTHERWISE: Final = frozenset({"over", "unnest", "unlist", "columns"})
"""Words that DuckDB accepts in a SELECT, but not in every clause of a change."""
_TABLES: Final = frozenset({"from", "join", "table", "into", "update"})
_EXPRESSIONS: Final = frozenset(
    [
        "select",
        "where",
        "set",
        "on",
        "having",
        "qualify",
        "group",
        "order",
        "by",
        "limit",
        "then",
        "when",
        "else",
        "case",
        "and",
        "or",
        "not",
        "values",
        "returning",
        "in",
    ]
)
_CALLS: Final = frozenset({"extract", "substring", "trim", "overlay", "position"})
_STAR_OPTIONS: Final = frozenset({"exclude", "replace", "rename", "like", "ilike", "similar", "glob"})


def means_row(table: TargetTable, alias: str, clauses: Sequence[Clauses]) -> bool:
    """Return whether clauses use a whole row of the target.

    Args:
        table: The table.
        alias: Its alias in the statement.
        clauses: Its clauses, each with its leading keyword.
    """
    return any(
        next(_rows(table, alias, part), None) is not None or next(_stars(alias, part), None) is not None
        for part in clauses
    )


def mentioned(table: TargetTable, texts: Iterable[str], *names: str) -> TargetTable:
    """Return a table restricted to the columns that clauses may refer to.

    Args:
        table: The table.
        texts: The clauses, with whole rows expanded to their columns.
        names: More column names to keep.
    """
    known = set(map(folded, names))
    for token in (token for text in texts for token in Clauses.of(text).tokens):
        if token.word == "columns":
            return table
        if token.name is not None:
            known.add(folded(token.name))
    columns = [column for column in table.columns if folded(column.name) in known]
    return replace(table, columns=columns or table.columns[:1])


def asks_identifier(table: TargetTable, clauses: Sequence[Clauses]) -> bool:
    """Return whether clauses use `rowid`, `_rowid` or `_rowaddr`, other than as the name of a stored column."""
    names = {folded(token.name) for part in clauses for token in part.tokens if token.name is not None}
    return any(not _has_column(table, name) for name in names & ROW_IDENTIFIERS)


def refuse_identifiers(table: TargetTable, clauses: Sequence[Clauses]) -> None:
    """Reject `rowid`, `_rowid` and `_rowaddr` in statements that run on a native table. Raises UnsupportedError."""
    if asks_identifier(table, clauses):
        raise UnsupportedError(
            "rowid, _rowid and _rowaddr are not available in this statement",
            where=f"table {table.name}",
            remedy="identify rows by a key column. RETURNING can return row identifiers in DELETE, and "
            "stable row ids in UPDATE if it lists plain columns",
        )


def may_be_refused(clauses: Sequence[Clauses], others: Clauses) -> bool:
    """Return whether DuckDB may reject clauses in a change that it accepts in a SELECT.

    Args:
        clauses: Clauses with expressions.
        others: FROM or USING. Its subqueries must not refer to the target.
    """
    if any(token.text == "(" for token in others.tokens):
        return True
    return any(token.word in _BOUND_OTHERWISE for part in clauses for token in part.tokens)


def without_address(table: TargetTable, alias: str, text: str, *, stars: bool = True) -> str:
    """Return a clause with whole rows of the target expanded to their columns.

    Args:
        table: The table.
        alias: Its alias in the statement.
        text: The clause.
        stars: Whether to expand `alias.*` as well.

    Raises:
        UnsupportedError: A star has options, or is inside COLUMNS.
    """
    part = Clauses.of(text)
    columns = [f"{quoted(alias)}.{column.quoted}" for column in table.columns]
    named = ", ".join(f"{column.quoted} := {value}" for column, value in zip(table.columns, columns, strict=True))
    edits = [
        Edit(part.tokens[place].start, part.tokens[place].end, f"struct_pack({named})")
        for place in _rows(table, alias, part)
    ]
    for place in _stars(alias, part) if stars else ():
        if part.word(place + 3) in _STAR_OPTIONS or part.word(place - 2) == "columns":
            raise UnsupportedError(
                f"MERGE does not support COLUMNS({alias}.*) or {alias}.* with EXCLUDE, REPLACE or RENAME",
                where=f"table {table.name}",
                remedy="list the columns",
            )
        edits.append(Edit(part.tokens[place].start, part.tokens[place + 2].end, ", ".join(columns)))
    return apply(text, edits)


def is_hidden(title: str) -> bool:
    """Return whether a result column was derived from the address."""
    return ADDRESS in title


def _has_column(table: TargetTable, name: str) -> bool:
    return any(folded(column.name) == folded(name) for column in table.columns)


def _rows(table: TargetTable, alias: str, part: Clauses) -> Iterator[int]:
    """Yield the positions where the alias is a row value, not a qualifier, table, column or field."""
    if _has_column(table, alias):
        return
    for place, token in enumerate(part.tokens):
        if token.name is None or folded(token.name) != folded(alias):
            continue
        after = part.text_at(place + 1)
        is_field = after == ":" and not part.sql.startswith("::", part.tokens[place + 1].start)
        if part.text_at(place - 1) == "." or after in (".", "(") or is_field or part.word(place - 1) == "as":
            continue
        if not _is_table(part, place):
            yield place


def _is_table(part: Clauses, place: int) -> bool:
    """Return whether a name is an item of a table list."""
    depth = part.depths[place]
    for before in range(place - 1, -1, -1):
        if part.depths[before] < depth:
            return False
        word = part.word(before) if part.depths[before] == depth else None
        if word in _EXPRESSIONS:
            return False
        if word in _TABLES:
            return part.word(before - 1) != "distinct" and not _is_in_call(part, before)
    return False


def _is_in_call(part: Clauses, place: int) -> bool:
    """Return whether a FROM is part of a function call, as in `extract(year FROM …)`."""
    depth = part.depths[place]
    opening = next((i for i in range(place - 1, -1, -1) if part.depths[i] < depth), -1)
    return part.word(opening - 1) in _CALLS


def _stars(alias: str, part: Clauses) -> Iterator[int]:
    """Yield the start positions of `alias.*`."""
    for place, token in enumerate(part.tokens):
        is_alias = token.name is not None and folded(token.name) == folded(alias) and part.text_at(place - 1) != "."
        if is_alias and part.text_at(place + 1) == "." and part.text_at(place + 2) == "*":
            yield place
