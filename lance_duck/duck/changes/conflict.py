"""INSERT … ON CONFLICT, OR REPLACE and OR IGNORE."""

from __future__ import annotations

import pyarrow as pa

from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.target import TargetTable
from lance_duck.errors import UnsupportedError
from lance_duck.verbs.rows.edits import RowEdits


def upserted(table: TargetTable, rows: pa.Table) -> tuple[RowEdits, ChangeResult]:
    """Refuse."""
    raise UnsupportedError(
        "INSERT with ON CONFLICT, OR REPLACE or OR IGNORE",
        where=f"table {table.name}",
        remedy="LanceDataset.merge_insert(keys) updates and inserts by keys",
    )
