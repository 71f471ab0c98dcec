"""Adds `rowid`, `_rowid` and `_rowaddr` to a table as columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.dataset import LanceDataset
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.scope import TableRead
from lance_duck.duck.tables.computed_columns import AskedColumns, ComputedColumn, TextMatches
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.errors import InternalError
from lance_duck.scan.predicate.tree import Compare, ConstantCondition, In, IsNull, Predicate
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID
from lance_duck.snapshot.with_log import refuse_row_ids

DUCKDB_ROW_ID: Final = "rowid"
_SOURCES: Final = {DUCKDB_ROW_ID: ROW_ID, ROW_ID: ROW_ID, ROW_ADDRESS: ROW_ADDRESS}
ROW_IDENTIFIERS: Final = frozenset(_SOURCES)
"""Names of the row identifiers in SQL, in lower case."""


class RowIdentifierColumn(ComputedColumn):
    """A row identifier as a column. `rowid` is `_rowid` cast to BIGINT, which is DuckDB's type of `rowid`.

    Args:
        name: A name in `ROW_IDENTIFIERS`.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, pa.int64() if name == DUCKDB_ROW_ID else pa.uint64(), _SOURCES[name])

    def values(self, dataset: LanceDataset, addresses: pa.Array) -> pa.Array:
        """See `ComputedColumn`."""
        return addresses.view(self.field.type)

    def condition(self, dataset: LanceDataset, leaf: Predicate) -> Predicate:
        """See `ComputedColumn`."""
        path = (self.source,)
        match leaf:
            case Compare(op, _, value):
                number = value.as_py()
                if number < 0:
                    return ConstantCondition(op in (">", ">=", "!="))
                return Compare(op, path, pa.scalar(number, pa.uint64()))
            case In(_, values):
                return In(path, values.filter(pc.greater_equal(values, pa.scalar(0, values.type))).cast(pa.uint64()))
            case IsNull():
                return ConstantCondition(False)
        raise InternalError("a condition on row identifiers has an unknown kind", found=str(leaf))


def row_identifiers(names: Iterable[str], dataset: LanceDataset) -> list[RowIdentifierColumn]:
    """Return row identifiers as columns, except those whose name is a stored column.

    Args:
        names: Names in lower case. Names that are not in `ROW_IDENTIFIERS` are ignored.
        dataset: The table.

    Raises:
        UnsupportedError: Row ids are requested, but the table is read with its write-ahead log.
    """
    stored, wanted = {folded(name) for name in dataset.schema.names}, set(names)
    found = [
        RowIdentifierColumn(name)
        for name, source in _SOURCES.items()
        if name in wanted and stored.isdisjoint((name, source))
    ]
    if any(column.source == ROW_ID for column in found):
        refuse_row_ids(dataset.handle.snapshot)
    return found


def own_columns(table_read: TableRead, handle: TableHandle) -> list[ComputedColumn]:
    """Return the computed columns that a mention of a table already has."""
    if table_read.columns is None:
        return []
    asked = AskedColumns.of(table_read.columns)
    return [*asked.computed(TextMatches), *row_identifiers(asked.identifiers, handle.current())]
