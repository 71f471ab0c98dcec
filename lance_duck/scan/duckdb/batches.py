"""Changes batches that DuckDB would read wrongly.

Structs in nested types   copied, so that they start at offset 0. DuckDB ignores their offset: DuckDB 2.0 rejects the
                          batch, and 1.x reads the wrong rows.
Dictionaries without      get an entry that no row uses. DuckDB 1.5 crashes when it groups rows by such a column, whose
entries                   rows are all null. Also in structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

_Change = Callable[[pa.Array], pa.Array]


def duckdb_batches(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Return the same rows in arrays that DuckDB reads correctly."""
    changes = {i: change for i, field in enumerate(reader.schema) if (change := _change(field.type)) is not None}
    return pa.RecordBatchReader.from_batches(reader.schema, _changed(reader, changes)) if changes else reader


def _changed(reader: pa.RecordBatchReader, changes: dict[int, _Change]) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        arrays = batch.columns
        for place, change in changes.items():
            arrays[place] = change(arrays[place])
        yield pa.record_batch(arrays, schema=reader.schema)


def _change(type_: pa.DataType) -> _Change | None:
    if _has_inner_struct(type_, inside=False):
        return lambda array: _with_entries(_copied(array))
    return _with_entries if _has_dictionary(type_) else None


def _copied(array: pa.Array) -> pa.Array:
    """Return a copy. A single array is concatenated with an empty one, because Arrow would not copy it alone."""
    return pa.concat_arrays([array, array.slice(0, 0)])


def _with_entries(array: pa.Array) -> pa.Array:
    type_ = array.type
    if pa.types.is_dictionary(type_) and not len(array.dictionary):
        entry = pa.nulls(1, type_.value_type)
        return pa.DictionaryArray.from_arrays(pa.nulls(len(array), type_.index_type), entry, ordered=type_.ordered)
    if not pa.types.is_struct(type_) or not _has_dictionary(type_):
        return array
    fields = [_with_entries(array.field(i)) for i in range(type_.num_fields)]
    return pa.StructArray.from_arrays(fields, fields=list(type_), mask=array.is_null() if array.null_count else None)


def _has_dictionary(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return any(_has_dictionary(type_.field(i).type) for i in range(type_.num_fields))
    return bool(pa.types.is_dictionary(type_))


def _has_inner_struct(type_: pa.DataType, *, inside: bool) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return _has_inner_struct(type_.storage_type, inside=inside)
    if not pa.types.is_nested(type_):
        return False
    if inside and (pa.types.is_struct(type_) or pa.types.is_map(type_)):
        return True
    return any(_has_inner_struct(type_.field(i).type, inside=True) for i in range(type_.num_fields))
