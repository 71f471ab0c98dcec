"""Columns with several vectors per row: lists of any number of vectors, possibly empty.

An index has an entry with the row for each vector. Unsearchable vectors (see `vectors`) are skipped. A row without
searchable vectors is never found.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.types import storage_type
from lance_duck.index.kind import ROW, VALUE
from lance_duck.index.vector.vectors import is_vector


def is_multivector(type_: pa.DataType) -> bool:
    """Return whether columns of a storage type have several vectors per row."""
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    return bool(is_list and is_vector(storage_type(type_.value_type)))


def vector_type(type_: pa.DataType) -> pa.DataType:
    """Return the storage type of a single vector, given the type of a column with one or several vectors per row."""
    return storage_type(type_.value_type) if is_multivector(type_) else type_


def vectors_in(array: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the vectors of all rows, concatenated, and the vector count of each row, which is 0 for a null row."""
    counts: NDArray[np.int64] = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return array.flatten(), counts


def one_by_one(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Convert rows for `IndexKind.build` that have several vectors each to rows that have one vector each."""
    type_ = rows.schema.field(VALUE).type
    if not is_multivector(type_):
        return rows
    schema = pa.schema([pa.field(VALUE, vector_type(type_)), rows.schema.field(ROW)])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            vectors, counts = vectors_in(batch.column(VALUE))
            names = np.repeat(batch.column(ROW).to_numpy(), counts)
            yield pa.record_batch([vectors, pa.array(names, pa.uint64())], schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
