"""Casts of columns to another type, and columns that become non-nullable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.commit.operations import Merge, Operation
from lance_duck.errors import DataMismatchError, InvalidInputError
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.columns.alteration import AlteredSchema
from lance_duck.verbs.columns.files import ColumnFiles, LiveRows, with_file
from lance_duck.verbs.columns.schema_change import only, path_of
from lance_duck.wire.column_path import quoted_name
from lance_duck.wire.schema import Field, Schema


def cast_columns(snapshot: Snapshot, altered: AlteredSchema) -> tuple[ColumnFiles, Callable[[], Operation]]:
    """Return the files of cast columns, and a function that writes them and makes the operation."""
    schema = only(altered.schema, set(altered.casts.values()))
    files = ColumnFiles(snapshot, schema, snapshot.data_storage_version)
    sources = _sources(snapshot.schema, altered)
    rows = LiveRows(TableScan(snapshot), [quoted_name(sources[field.name]) for field in schema.fields])
    before = [snapshot.schema.by_path(quoted_name(sources[field.name])) for field in schema.fields]

    def make() -> Operation:
        fragments = []
        for fragment in snapshot.fragments:
            file = files.write(fragment, _cast(rows.of(fragment), before, schema, altered))
            fragments.append(with_file(fragment, file, altered.schema))
        # Rows that others append meanwhile have only the old columns: their writers must write them again.
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
                        "column with nulls cannot be made non-nullable", where=".".join(field.name for field in steps)
                    )


def _sources(schema: Schema, altered: AlteredSchema) -> dict[str, str]:
    """Return the old names of columns with casts, by their new names."""
    sources = {}
    for old_id, new_id in altered.casts.items():
        sources[path_of(altered.schema, new_id)[0].name] = path_of(schema, old_id)[0].name
    return sources


def _cast(
    batches: pa.RecordBatchReader, before: Sequence[Field], schema: Schema, altered: AlteredSchema
) -> Iterator[pa.RecordBatch]:
    origins = {new: old for old, new in altered.casts.items()}
    for batch in batches:
        columns = zip(batch.columns, before, schema.fields, strict=True)
        arrays = [_cast_array(array, old, new, origins) for array, old, new in columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)


def _cast_array(array: pa.Array, old: Field, new: Field, origins: Mapping[int, int]) -> pa.Array:
    """Cast the array to the type of the new field, which may drop or rename members of structs."""
    if old.id != new.id:
        return _cast_values(array, new)
    mask = array.is_null() if array.null_count else None
    if new.logical_type == "struct":
        places = {child.id: i for i, child in enumerate(old.children)}
        children = [places[origins.get(child.id, child.id)] for child in new.children]
        arrays = [
            _cast_array(array.field(i), old.children[i], child, origins)
            for i, child in zip(children, new.children, strict=True)
        ]
        return pa.StructArray.from_arrays(arrays, fields=[child.to_arrow() for child in new.children], mask=mask)
    if isinstance(array, pa.ListArray | pa.LargeListArray):
        values = _cast_array(array.values, old.children[0], new.children[0], origins)
        return type(array).from_arrays(array.offsets, values, type=new.to_arrow().type, mask=mask)
    raise InvalidInputError(f"members of a {new.logical_type} cannot be cast", where=new.name)


def _cast_values(array: pa.Array, new: Field) -> pa.Array:
    try:
        kind = new.to_arrow().type
        if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(array.type):
            return pc.dictionary_encode(array.cast(kind.value_type)).cast(kind)
        return array.cast(kind)
    except (pa.ArrowException, NotImplementedError) as error:
        raise InvalidInputError(
            "value that the new type cannot hold", where=new.name, expected=new.to_arrow().type, found=str(error)
        ) from error


def _has_nulls(array: pa.Array, steps: Sequence[Field]) -> bool:
    for step in steps[1:]:
        if pa.types.is_struct(array.type):
            array = pc.struct_field(array, [step.name])
        elif pa.types.is_nested(array.type):
            array = array.flatten()
        else:
            break
    return bool(array.null_count)
