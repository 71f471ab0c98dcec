"""Values that DuckDB stores less exactly than a Lance table.

    duration[ns]                DuckDB has microseconds (INTERVAL)
    timestamp[ns, time zone]    DuckDB has microseconds (TIMESTAMPTZ)

Rows keep these values to the nanosecond unless a statement changes the value.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.duck.changes.target import TargetColumn, TargetTable
from lance_duck.verbs.rows.find import rows_at


def is_coarser(column: TargetColumn) -> bool:
    """Return whether DuckDB stores values of a column less exactly than the table."""
    type_ = column.arrow
    is_zoned = pa.types.is_timestamp(type_) and type_.tz is not None
    return (is_zoned or column.is_duration) and type_.unit == "ns"


def kept_exact(
    table: TargetTable, addresses: NDArray[np.uint64], values: pa.Table, before: Mapping[str, pa.ChunkedArray]
) -> pa.Table:
    """Return the new values, with the table's exact value for each value that DuckDB did not change.

    Args:
        table: The table.
        addresses: Distinct row addresses.
        values: The new values, as returned by `TargetTable.stored`, one row per address.
        before: The values that DuckDB read, by column.
    """
    names = [column.name for column in table.columns if column.name in before and is_coarser(column)]
    if not names or not len(addresses):
        return values
    order = np.argsort(addresses, kind="stable")
    batches = list(rows_at(table.dataset.handle.snapshot, addresses[order], names))
    exact = pa.Table.from_batches(batches).take(pa.array(np.argsort(order, kind="stable")))
    for name in names:
        new, old = values.column(name), before[name].cast(values.column(name).type)
        is_kept = pc.or_(pc.fill_null(pc.equal(new, old), fill_value=False), pc.and_(new.is_null(), old.is_null()))
        type_ = exact.column(name).type
        column = pc.if_else(is_kept, exact.column(name), new.cast(type_))
        values = values.set_column(values.schema.get_field_index(name), name, column)
    return values
