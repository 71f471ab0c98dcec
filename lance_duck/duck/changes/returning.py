"""RETURNING: any list of expressions over the rows that a statement has changed."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_duck.duck.changes.result import ChangeResult, counted, returned
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import TargetTable
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import InvalidInputError

_ROWS = "__lance_changed"


def result_of(
    session: ChangeSession, clause: Clauses, table: TargetTable, alias: str, rows: pa.Table | None, count: int
) -> ChangeResult:
    """Return what a statement gives: the rows that its RETURNING asks for, or their count.

    Args:
        session: The statement.
        clause: RETURNING, or nothing.
        table: The table that is changed.
        alias: What the list calls it.
        rows: The rows with all columns of the table, and `merge_action` if the list may name it; None without a list.
        count: How many there are.
    """
    if not clause.tokens or rows is None:
        return counted(count)
    casts = [f"CAST({column.quoted} AS {column.type}) AS {column.quoted}" for column in table.columns]
    others = [quoted(name) for name in rows.column_names if name not in {column.name for column in table.columns}]
    source = f"SELECT {', '.join([*others, *casts])} FROM {_ROWS}"  # noqa: S608
    sql = f"SELECT {_without_others(clause.part(1), others)} FROM ({source}) AS {quoted(alias)}"  # noqa: S608
    relation = session.relation(sql, {_ROWS: table.stored(rows)})
    types, answer = list(map(str, relation.types)), relation.to_arrow_table()
    if answer.num_rows != rows.num_rows or any(token.word == "over" for token in clause.tokens):
        raise InvalidInputError(
            "RETURNING with an aggregate or a window", where=clause.text.strip(), remedy="return the rows themselves"
        )
    return returned(answer, types, count)


def _without_others(items: Clauses, others: Sequence[str]) -> str:
    """Return the list of RETURNING, in which a star stands for the columns of the table alone."""
    if not others:
        return items.text
    stars = [
        token
        for i, token in enumerate(items.tokens)
        if token.text == "*" and items.text_at(i - 1) in ("", ",") and items.word(i + 1) not in ("exclude", "replace")
    ]
    start, exclude = items.start, f"* EXCLUDE ({', '.join(others)})"
    return apply(items.text, [Edit(star.start - start, star.end - start, exclude) for star in stars])
