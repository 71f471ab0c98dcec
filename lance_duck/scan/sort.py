"""Sorting of a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.pandas_metadata import PANDAS, without_row_labels
from lance_duck.encoding.arrow.gather import take_rows
from lance_duck.errors import UnsupportedError
from lance_duck.scan.options import ColumnOrdering


def sort_table(table: pa.Table, keys: pa.Table, orderings: Sequence[ColumnOrdering]) -> pa.Table:
    """Sort rows stably.

    Args:
        table: Rows to sort.
        keys: See `sort_order`.
        orderings: See `sort_order`.

    Raises:
        UnsupportedError: Values of a column's type cannot be ordered.
    """
    return _without_row_labels(take_rows(table, sort_order(keys, orderings)))


def sort_order(keys: pa.Table, orderings: Sequence[ColumnOrdering]) -> NDArray[np.int64]:
    """Return the positions of rows in sorted order. Rows with equal keys keep their order.

    Args:
        keys: One column for each ordering, with the values of the rows.
        orderings: Direction of each column of `keys`, with the most significant column first.

    Raises:
        UnsupportedError: Values of a column's type cannot be ordered.
    """
    columns: list[pa.ChunkedArray] = []
    directions: list[str] = []
    for key, ordering in zip(keys.columns, orderings, strict=True):
        direction = "ascending" if ordering.ascending else "descending"
        if key.null_count:
            columns.append(pc.is_null(key).cast(pa.int8()))
            directions.append("descending" if ordering.nulls_first else "ascending")
        if pa.types.is_floating(key.type):
            columns.append(pc.is_nan(key).cast(pa.int8()))
            directions.append(direction)
        columns.append(_sortable(key))
        directions.append(direction)
    names = [str(i) for i in range(len(columns))]
    try:
        order = pc.sort_indices(pa.table(columns, names), sort_keys=list(zip(names, directions, strict=True)))
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise UnsupportedError(
            "rows cannot be sorted by a column of this type", where="order_by", found=keys.schema.types
        ) from error
    places: NDArray[np.int64] = order.to_numpy().astype(np.int64, copy=False)
    return places


def _without_row_labels(table: pa.Table) -> pa.Table:
    text = (table.schema.metadata or {}).get(PANDAS.encode())
    if text is None:
        return table
    labelled = without_row_labels(text.decode())
    return table.replace_schema_metadata({**table.schema.metadata, PANDAS.encode(): labelled.encode()})


def _sortable(key: pa.ChunkedArray) -> pa.ChunkedArray:
    if isinstance(key.type, pa.BaseExtensionType):
        return _sortable(key.cast(key.type.storage_type))
    if pa.types.is_dictionary(key.type):
        return key.cast(key.type.value_type)
    return key.cast(pa.float32()) if pa.types.is_float16(key.type) else key
