"""RETURNING, which evaluates a list of expressions over the rows that a statement has changed.

`rowid`, `_rowid` and `_rowaddr` are available in some RETURNING lists. DELETE supports all three. UPDATE supports row
ids that do not change. Other statements do not support any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from lance_duck.arrow.decimals import wide_decimal
from lance_duck.duck.changes.result import ChangeResult, counted, returned
from lance_duck.duck.changes.rows.mentions import (
    is_hidden,
    refuse_identifiers,
    without_address,
)
from lance_duck.duck.changes.rows.twin import fill, twin
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import TargetColumn, TargetTable
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.tables.row_identifier_columns import DUCKDB_ROW_ID, row_identifiers

_ROWS: Final = "__lance_changed"


def result_of(
    session: ChangeSession, clause: Clauses, table: TargetTable, alias: str, rows: pa.Table | None, count: int
) -> ChangeResult:
    """Return a statement's result: its RETURNING rows, or the row count.

    Args:
        session: The statement.
        clause: The RETURNING clause. Empty without one.
        table: The table that is changed.
        alias: The table's alias in the list.
        rows: The rows with all table columns and `returned_identifiers`. Only needed for RETURNING.
        count: Number of rows that were changed.
    """
    if not clause.tokens or rows is None:
        return counted(count)
    identifiers = [column for column in returned_identifiers(table, clause) if column.name in rows.column_names]
    refuse_identifiers(replace(table, columns=[*table.columns, *identifiers]), (clause,))
    rows, text = table.stored(rows), clause.part(1).text
    if identifiers:
        text = _with_stars_spelled(table, alias, clause)
        table = replace(table, columns=[*table.columns, *identifiers])
    if _is_plain(clause, alias):
        casts = ", ".join(f"CAST({column.quoted} AS {column.type}) AS {column.quoted}" for column in table.columns)
        source = f"(SELECT {casts} FROM {_ROWS}) AS {quoted(alias)}"  # noqa: S608
        answer, titles, types = session.answer(f"SELECT {text} FROM {source}", {_ROWS: rows})  # noqa: S608
        return returned(answer, types, count, numbered(titles))
    with twin(session, table) as own:
        fill(session, table, own, rows)
        same = table.columns[0].quoted  # in DuckDB 1, DELETE omits rows that the same transaction has written
        sql = f"UPDATE {own} AS {quoted(alias)} SET {same} = {same} RETURNING {text}"  # noqa: S608
        answer, titles, types = session.answer(sql, {})
        return returned(answer, types, count, titles)


def returned_table(table: TargetTable, clause: Clauses, alias: str) -> TargetTable:
    """Return a table with the columns that RETURNING may return, without wide decimals that it does not name.

    SQL cannot read wide decimals, and RETURNING lists without them must not fail.
    """
    names = {folded(token.name) for token in clause.tokens if token.name is not None}
    is_open = folded(alias) in names or any(token.text == "*" or token.word == "columns" for token in clause.tokens)
    columns = [c for c in table.columns if is_open or folded(c.name) in names or wide_decimal(c.arrow) is None]
    return table if len(columns) == len(table.columns) else replace(table, columns=columns)


def returned_identifiers(table: TargetTable, clause: Clauses) -> list[TargetColumn]:
    """Return the row identifiers in RETURNING as columns, unless the table stores columns of that name."""
    names = {folded(token.name) for token in clause.tokens if token.name is not None}
    return [
        TargetColumn(
            column.field.name, "BIGINT" if column.field.name == DUCKDB_ROW_ID else "UBIGINT", column.field.type
        )
        for column in row_identifiers(names, table.dataset)
    ]


def _with_stars_spelled(table: TargetTable, alias: str, clause: Clauses) -> str:
    """Return a list with stars expanded to the table's columns.

    Raises UnsupportedError if a star cannot be expanded.
    """
    text = clause.part(1).text
    part = Clauses.of(without_address(table, alias, text))
    stars = [i for i, token in enumerate(part.tokens) if token.text == "*" and part.text_at(i - 1) in ("", ",")]
    has_options = any(part.text_at(i + 1) not in ("", ",") for i in stars)
    has_rows = without_address(table, alias, text, stars=False) != text
    if has_options or has_rows or any(token.word == "columns" for token in part.tokens):
        refuse_identifiers(table, (clause,))
    columns = ", ".join(column.quoted for column in table.columns)
    return apply(part.sql, [Edit(part.tokens[i].start, part.tokens[i].end, columns) for i in stars])


def returned_by(
    session: ChangeSession,
    changes: Sequence[str],
    clause: Clauses,
    table: TargetTable,
    alias: str,
    tables: Mapping[str, Any],
) -> ChangeResult:
    """Change a shadow, and return the RETURNING rows without the address column.

    Args:
        session: The statement.
        changes: The statements that make up the change.
        clause: RETURNING.
        table: The shadowed table.
        alias: Its alias in the statement.
        tables: Tables that the change reads.
    """
    refuse_identifiers(table, (clause,))
    items = without_address(table, alias, clause.part(1).text, stars=False)
    answers = [session.answer(f"{sql}RETURNING {items}", tables) for sql in changes]
    rows, (_, titles, types) = pa.concat_tables([rows for rows, *_ in answers]), answers[0]
    seen = [i for i, title in enumerate(titles) if not is_hidden(title)]
    return returned(rows.select(seen), [types[i] for i in seen], rows.num_rows, [titles[i] for i in seen])


def numbered(titles: Sequence[str]) -> list[str]:
    """Return the titles with repeated ones numbered, as DuckDB does in RETURNING."""
    counts: dict[str, int] = {}
    result = []
    for title in titles:
        unique, name = title, folded(title)
        while folded(unique) in counts:
            unique = f"{title}_{counts[name]}"
            counts[name] += 1
        counts[folded(unique)] = 1
        result.append(unique)
    return result


def _is_plain(clause: Clauses, alias: str) -> bool:
    """Return whether a list consists only of columns, stars and operators, which mean the same in a SELECT."""
    for place, token in enumerate(clause.tokens[1:], 1):
        is_row = token.name is not None and folded(token.name) == folded(alias) and clause.text_at(place + 1) != "."
        if is_row or token.text == "(" or token.word in _NOT_PLAIN:
            return False
    return True


_NOT_PLAIN: Final = frozenset({"distinct", "order", "limit", "from", "where", "group"})
