"""INSERT … ON CONFLICT, OR REPLACE and OR IGNORE, on a shadow of the rows that have the keys of the new ones.

    ON CONFLICT [(c, …)] DO NOTHING | DO UPDATE SET … [WHERE …]

The keys are the columns that ON CONFLICT names, or those of the unenforced primary key.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.shadow import SHADOW, changed_shadow, shadow
from lance_duck.duck.changes.target import SOURCE, TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import InvalidInputError
from lance_duck.verbs.rows.edits import RowEdits
from lance_duck.wire.schema_write import primary_key

_ROWS = "__lance_source"


def upserted(
    session: ChangeSession, table: TargetTable, name: TableName, rows: pa.Table, conflict: Clauses, instead: str | None
) -> tuple[RowEdits, pa.Table]:
    """Insert rows into the shadow of a table.

    Args:
        session: The statement.
        table: The table.
        name: What the statement calls it.
        rows: The new rows, in the types of the columns that they have.
        conflict: ON CONFLICT, or nothing.
        instead: "replace" or "ignore" for OR REPLACE and OR IGNORE.

    Returns:
        The edits, and the rows that were inserted or updated.

    Raises:
        InvalidInputError: No keys.
    """
    keys = conflict_keys(table, conflict)
    types = {column.name: column.type for column in table.columns}
    casts = [f"CAST({quoted(c)} AS {types[c]}) AS {quoted(c)}" for c in rows.column_names]
    source = f"(SELECT {', '.join(casts)} FROM {_ROWS})"  # noqa: S608
    on = ", ".join(map(quoted, keys))
    with session.pinned(table, name, conflict) as ((text,), tables):
        tables[_ROWS] = table.stored(rows)
        matched = f"SELECT t.* FROM {SOURCE} AS t SEMI JOIN {source} AS s USING ({on})"  # noqa: S608
        if any(key not in rows.column_names for key in keys):
            matched = f"SELECT * FROM {SOURCE} WHERE false"  # noqa: S608
        before = session.arrow(matched, tables)
        with shadow(session, table, before, keys):
            columns = ", ".join(map(quoted, rows.column_names))
            verb = "INSERT" if instead is None else f"INSERT OR {instead.upper()}"
            sql = (
                f"{verb} INTO {SHADOW} AS {quoted(table.name)} ({columns}) SELECT {columns} FROM {source} "  # noqa: S608
                f"{text}RETURNING *"
            )
            returned = session.arrow(sql, tables)
            return changed_shadow(session, table, before, keys), returned


def conflict_keys(table: TargetTable, conflict: Clauses) -> Sequence[str]:
    """Return the columns by which rows conflict.

    Raises:
        InvalidInputError: There are none.
    """
    if conflict.text_at(2) == "(":
        parts = conflict.part(3, conflict.closer(2)).split()
        return [column.name for column in table.named([part.tokens[0].name or "" for part in parts])]
    keys = [field.name for field in primary_key(table.dataset.handle.snapshot.schema)]
    if not keys:
        raise InvalidInputError(
            "no columns by which rows conflict",
            where=f"table {table.name}",
            remedy="ON CONFLICT (columns), or a primary key of the table",
        )
    return keys
