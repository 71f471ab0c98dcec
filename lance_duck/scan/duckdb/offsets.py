"""Structs inside nested columns, laid out so that DuckDB reads the right rows.

DuckDB ignores the offset of a struct below another nested type: 2.0 rejects the batch, 1.x reads other rows. Those
columns are therefore copied to start at offset 0 of their buffers.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa


def without_offsets(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the same stream, with zero offsets for all structs below other nested types."""
    places = [i for i, field in enumerate(reader.schema) if _has_inner_struct(field.type, inside=False)]
    return pa.RecordBatchReader.from_batches(reader.schema, _copied(reader, places)) if places else reader


def _copied(reader: pa.RecordBatchReader, places: list[int]) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        arrays = batch.columns
        for place in places:
            # Concatenated with an empty array, because a single array is returned unchanged.
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
