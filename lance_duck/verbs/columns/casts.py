"""Changes of column types, and columns that become non-nullable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.listed import offsets_of
from lance_duck.arrow.types import is_list
from lance_duck.commit.operations import Merge, Operation
from lance_duck.errors import DataMismatchError, InvalidInputError
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.columns.alteration import AlteredSchema
from lance_duck.verbs.columns.files import ColumnFiles, LiveRows, live_rows, with_file
from lance_duck.verbs.columns.schema_change import only, path_of
from lance_duck.wire.column_path import join_path, quoted_name
from lance_duck.wire.schema import Field, Schema
from lance_duck.wire.schema_write import schema_from_arrow
from lance_duck.write.casts import find_cast, row_of_item
from lance_duck.write.plain_casts import with_row


def cast_columns(snapshot: Snapshot, altered: AlteredSchema) -> tuple[ColumnFiles, Callable[[], Operation]]:
    """Return the files of cast columns, and a function that writes them and builds the operation."""
    schema = only(altered.schema, set(altered.casts.values()))
    files = ColumnFiles(snapshot, schema, snapshot.data_storage_version)
    sources = _sources(snapshot.schema, altered)
    # All files that store fields of a list must store the same list lengths, even for deleted rows.
    whole = any(field.logical_type != "struct" for i in altered.casts for field in path_of(snapshot.schema, i)[:-1])
    names = [quoted_name(sources[field.name]) for field in schema.fields]
    rows = LiveRows(TableScan(snapshot), names, deleted=whole)
    before = [snapshot.schema.by_path(name) for name in names]

    def make() -> Operation:
        fragments, done = [], 0
        for fragment in snapshot.fragments:
            live = live_rows(snapshot, fragment) if whole else None
            batches = _cast(rows.of(fragment), before, schema, altered, live, done)
            file = files.write_all(fragment, schema, batches) if whole else files.write(fragment, batches)
            fragments.append(with_file(fragment, file, altered.schema))
            done += snapshot.num_rows(fragment)
        # Rows that were appended concurrently only have the old columns. Their writers must write them again.
        return Merge(tuple(fragments), altered.schema, preserves_nullability=False)

    return files, make


def check_no_nulls(snapshot: Snapshot, field_ids: Sequence[int]) -> None:
    """Raise InvalidInputError if a field that becomes non-nullable has nulls."""
    table = TableScan(snapshot)
    for field_id in field_ids:
        steps = path_of(snapshot.schema, field_id)
        rows = LiveRows(table, [quoted_name(steps[0].name)])
        for fragment in snapshot.fragments:
            for batch in rows.of(fragment):
                if _has_nulls(batch.column(0), steps):
                    raise DataMismatchError(
                        "a column with nulls cannot become non-nullable", where=".".join(field.name for field in steps)
                    )


def _sources(schema: Schema, altered: AlteredSchema) -> dict[str, str]:
    """Map the new names of cast columns to their old names."""
    sources = {}
    for old_id, new_id in altered.casts.items():
        sources[path_of(altered.schema, new_id)[0].name] = path_of(schema, old_id)[0].name
    return sources


def _cast(
    batches: pa.RecordBatchReader,
    before: Sequence[Field],
    schema: Schema,
    altered: AlteredSchema,
    live: NDArray[np.int64] | None,
    first_row: int,
) -> Iterator[pa.RecordBatch]:
    """Cast the batches of a fragment.

    Args:
        batches: The rows.
        before: The columns with their old types.
        schema: The columns with their new types.
        altered: The alterations.
        live: Offsets of the live rows, or None if no row is deleted. Values of deleted rows do not have to fit the
            new types.
        first_row: Number of live rows in previous fragments, for error messages.
    """
    origins = {new: old for old, new in altered.casts.items()}

    def cast(batch: pa.RecordBatch, done: int, *, safe: bool) -> pa.RecordBatch:
        columns = zip(batch.columns, before, schema.fields, strict=True)
        try:
            arrays = [_cast_array(array, old, new, origins, safe=safe) for array, old, new in columns]
        except InvalidInputError as error:
            raise with_row(error, (first_row + done).__add__) from error
        return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)

    start = 0
    for batch in batches:
        end = start + batch.num_rows
        try:
            yield cast(batch, start, safe=True)
        except InvalidInputError:
            if live is None:
                raise
            first, last = np.searchsorted(live, (start, end))
            cast(batch.take(pa.array(live[first:last] - start)), int(first), safe=True)
            yield cast(batch, start, safe=False)
        start = end


def _cast_array(
    array: pa.Array,
    old: Field,
    new: Field,
    origins: Mapping[int, int],
    above: tuple[str, ...] = (),
    *,
    safe: bool,
) -> pa.Array:
    """Cast an array to the new field's type. Struct fields may be dropped or renamed."""
    path = (*above, new.name)
    if old.id != new.id:
        return _cast_values(array, new, join_path(path), safe=safe)
    mask = array.is_null() if array.null_count else None
    if new.logical_type == "struct":
        places = {child.id: i for i, child in enumerate(old.children)}
        children = [places[origins.get(child.id, child.id)] for child in new.children]
        members = array.flatten() if array.null_count else [array.field(i) for i in range(len(old.children))]
        arrays = [
            _cast_array(members[i], old.children[i], child, origins, path, safe=safe)
            for i, child in zip(children, new.children, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=[child.to_arrow() for child in new.children], mask=mask)
    offsets = offsets_of(array)
    first, end = int(offsets[0]), int(offsets[-1])
    items = array.values.slice(first, end - first)
    try:
        values = _cast_array(items, old.children[0], new.children[0], origins, path, safe=safe)
    except InvalidInputError as error:
        raise with_row(error, lambda item: row_of_item(offsets - first, item)) from error
    starts = pa.array(offsets - first, array.offsets.type)
    return type(array).from_arrays(starts, values, type=new.to_arrow().type, mask=mask)


def _cast_values(array: pa.Array, new: Field, path: str, *, safe: bool) -> pa.Array:
    try:
        kind = new.to_arrow().type
        if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(array.type):
            return pc.dictionary_encode(array.cast(kind.value_type, safe)).cast(kind)
        if not safe and pa.types.is_fixed_size_list(kind):
            array = pc.if_else(pc.equal(pc.list_value_length(array), kind.list_size), array, None)
        return _in_lists_of(array, kind, f"column {path!r}").cast(kind, safe)
    except (pa.ArrowException, NotImplementedError) as error:
        raise InvalidInputError(
            "the new type cannot represent this value", where=path, expected=new.to_arrow().type, found=str(error)
        ) from error


def _in_lists_of(array: pa.Array, kind: pa.DataType, where: str) -> pa.Array:
    """Convert between lists and vectors to match a type. The items do not change.

    Raises:
        DataMismatchError: A list does not have the length of the vectors.
    """
    form = _form(array.type, kind)
    if form == array.type:
        return array
    (field,) = schema_from_arrow(pa.schema([pa.field("column", form)])).fields
    cast = find_cast(array.type, field, where)
    return array if cast is None else cast(array)


def _form(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """Return the old type, with lists and vectors exchanged to match the new type."""
    if not (is_list(old) and is_list(new)):
        return old
    item = old.value_field.with_type(_form(old.value_type, new.value_type))
    if pa.types.is_fixed_size_list(new):
        return pa.list_(item, new.list_size)
    if pa.types.is_fixed_size_list(old):
        return pa.large_list(item) if pa.types.is_large_list(new) else pa.list_(item)
    return pa.large_list(item) if pa.types.is_large_list(old) else pa.list_(item)


def _has_nulls(array: pa.Array, steps: Sequence[Field]) -> bool:
    for step in steps[1:]:
        if pa.types.is_struct(array.type):
            array = pc.struct_field(array, [step.name])
        elif pa.types.is_map(array.type):
            array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field]))).flatten()
        elif pa.types.is_nested(array.type):
            array = array.flatten()
        else:
            break
    return bool(array.null_count)
