"""Copies nested columns that contain structs, so that DuckDB reads the correct rows.

DuckDB ignores the offset of a struct inside a nested type: DuckDB 2.0 rejects the batch, and 1.x reads the wrong rows.
These columns are therefore copied, so that they start at offset 0 of their buffers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def without_offsets(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the same stream. All structs inside nested types start at offset 0."""
    places = [i for i, field in enumerate(reader.schema) if _has_inner_struct(field.type, inside=False)]
    return pa.RecordBatchReader.from_batches(reader.schema, _copied(reader, places)) if places else reader


def _copied(reader: pa.RecordBatchReader, places: list[int]) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        arrays = batch.columns
        for place in places:
            # The array is concatenated with an empty one, because Arrow would return a single array without a copy.
            arrays[place] = pa.concat_arrays([arrays[place], arrays[place].slice(0, 0)])
        yield pa.record_batch(arrays, schema=reader.schema)


def _has_inner_struct(type_: pa.DataType, *, inside: bool) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return _has_inner_struct(type_.storage_type, inside=inside)
    if not pa.types.is_nested(type_):
        return False
    if inside and (pa.types.is_struct(type_) or pa.types.is_map(type_)):
        return True
    return any(_has_inner_struct(type_.field(i).type, inside=True) for i in range(type_.num_fields))
