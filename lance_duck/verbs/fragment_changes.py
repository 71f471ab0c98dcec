"""Writes and changes of single fragments. Nothing is committed here: callers commit the results."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arguments import unknown_value
from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.join import joined
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.rows import DeletionVector
from lance_duck.rows.roaring import roaring_bytes
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import HIDDEN, ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, mem_wal
from lance_duck.verbs.columns.files import (
    ColumnFiles,
    LiveRows,
    live_rows,
    refuse_missing_values,
    with_fields_of,
    with_file,
)
from lance_duck.verbs.columns.new_columns import JoinedColumns, NewColumns
from lance_duck.verbs.columns.schema_change import add_fields, next_field_id
from lance_duck.verbs.public.bases import new_bases, with_base_options
from lance_duck.verbs.writing.settings import WriteSettings
from lance_duck.verbs.writing.staged import StagedRows, stage_append, stage_new
from lance_duck.verbs.writing.write_table import MODES, current_version, new_location
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema import Schema
from lance_duck.write.deletions import write_deletions
from lance_duck.write.inputs import reading


def stage_fragments(
    data: Any,
    target: str | os.PathLike[str] | Snapshot,
    schema: pa.Schema | None,
    mode: str,
    settings: WriteSettings,
) -> tuple[StagedRows, Snapshot | None]:
    """Write data as fragments of a table, which need not exist yet.

    Args:
        data: Data in any form that `to_reader` accepts.
        target: The table.
        schema: Schema for data that does not include one.
        mode: "append" writes the columns of the table, if it exists. Other modes write the data's columns.
        settings: See `write_dataset`.

    Returns:
        The fragments, and the table version that they were written for. For a new table, the version is None.

    Raises:
        InvalidInputError: The data does not fit the table.
    """
    if mode not in MODES:
        raise unknown_value("unknown mode", mode, MODES, "mode")
    current = current_version(target, settings)
    staged = _stage(data, target, schema, mode, settings, current)
    staged.sync()
    return staged, current


def _stage(
    data: Any, target: Any, schema: pa.Schema | None, mode: str, settings: WriteSettings, current: Snapshot | None
) -> StagedRows:
    with reading(data, schema) as reader:
        if current is None:
            bases = {base.id: base for base in new_bases(settings.initial_bases or (), {}, "initial_bases")}
            options = with_base_options(settings.storage_options, settings.base_store_params, bases)
            return stage_new(reader, new_location(target, options), bases, settings)
        if mode == "append":
            return stage_append(reader, current, settings)
        return stage_new(reader, current.location, current.base_paths, settings, current)


def add_to_fragment(snapshot: Snapshot, fragment: Fragment, source: NewColumns) -> tuple[Fragment, Schema]:
    """Write new columns of one fragment. Returns the fragment and the table schema, both with the new columns."""
    table = TableScan(snapshot)
    version = snapshot.data_storage_version
    columns = add_fields(snapshot.schema, source.schema(table), version, next_field_id(snapshot), keep=source.keeps)
    files = ColumnFiles(snapshot, columns.new, version)
    batches = source.batches(table, fragment)
    if batches is not None:
        mem_wal.refuse_values(snapshot)
    try:
        if batches is None:
            refuse_missing_values(snapshot, fragment)
        file = None if batches is None else files.write(fragment, batches)
        source.finish()
    except BaseException:
        files.discard()
        raise
    return with_file(fragment, file, columns.whole), columns.whole


def update_in_fragment(
    snapshot: Snapshot, fragment: Fragment, data: pa.Table, left_on: str, right_on: str
) -> tuple[Fragment, list[int], bytes]:
    """Update columns of one fragment with the values of other data, in rows whose key matches.

    Returns:
        The fragment with a new file for these columns, the ids of their fields, and the offsets of the changed rows
        as a serialized roaring bitmap.

    Raises:
        InvalidInputError: A column does not exist or is hidden, or a key is invalid.
    """
    source = JoinedColumns(data, left_on, right_on)
    names = [name for name in data.column_names if name not in (right_on, left_on)]
    schema = _columns(snapshot.schema, names)
    table = TableScan(snapshot)
    masks: list[pa.Array] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in LiveRows(table, [left_on, *names]).of(fragment):
            rows = source.matches(batch.column(0))
            masks.append(rows.is_valid())
            yield _updated(batch.select(range(1, batch.num_columns)), source.taken(rows), rows.is_valid())

    source.check_key(table)
    files = ColumnFiles(snapshot, schema, snapshot.data_storage_version)
    file = files.write(fragment, batches())
    hits = np.flatnonzero(pa.concat_arrays(masks or [pa.array([], pa.bool_())]).to_numpy(zero_copy_only=False))
    live = live_rows(snapshot, fragment)
    offsets = hits if live is None else live[hits]
    modified = [field.id for field in schema.walk()]
    try:
        result = fragment if file is None else with_fields_of(fragment, file, set(modified))
    except UnsupportedError:
        files.discard()
        raise
    return result, modified, roaring_bytes(offsets.astype(np.uint32))


def delete_in_fragment(snapshot: Snapshot, fragment: Fragment, predicate: FilterLike) -> Fragment | None:
    """Delete the rows of one fragment that match a condition.

    Returns:
        The changed fragment, or None if all rows are deleted.
    """
    table = TableScan(snapshot)
    options = ScanOptions(columns=[ROW_ADDRESS], filter=predicate)
    offset_arrays = [batch.column(0).to_numpy() for batch in table.reader(table.plan(options, fragment))]
    offsets = (joined(offset_arrays, np.uint64) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    return delete_fragment_offsets(snapshot, fragment, offsets)


def delete_fragment_offsets(snapshot: Snapshot, fragment: Fragment, offsets: Any) -> Fragment | None:
    """Delete rows of one fragment by physical offset.

    Returns:
        The changed fragment, or None if all rows are deleted.

    Raises:
        InvalidInputError: An offset is out of range.
    """
    rows = snapshot.physical_rows(fragment)
    row_offsets = np.asarray(offsets, np.int64)
    if len(row_offsets) and not 0 <= int(row_offsets.min()) <= int(row_offsets.max()) < rows:
        raise InvalidInputError(
            "a row offset is out of range", where=f"fragment {fragment.id}", expected=f"0 to {rows - 1}"
        )
    if not len(row_offsets):
        return fragment
    deletions = DeletionVector.of(distinct(row_offsets))
    before = snapshot.deletion_vector(fragment)
    vector = deletions if before is None else before.union(deletions)
    if vector.count >= rows:
        return None
    return replace(fragment, deletion_file=write_deletions(snapshot.store, fragment.id, snapshot.version, vector))


def _columns(schema: Schema, names: list[str]) -> Schema:
    hidden = [name for name in names if name in HIDDEN]
    if hidden or not names:
        raise InvalidInputError(
            "these columns cannot be updated",
            expected="table columns other than the key, and no metadata columns",
            found=hidden or 0,
        )
    unknown = [name for name in names if name not in schema.names]
    if unknown:
        raise InvalidInputError(
            f"column {unknown[0]!r} does not exist", where="schema", expected=", ".join(schema.names)
        )
    return Schema(tuple(field for name in names for field in schema.fields if field.name == name))


def _updated(old: pa.RecordBatch, new: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    arrays = []
    for name, array in zip(old.schema.names, old.columns, strict=True):
        values = new.column(name)
        try:
            arrays.append(pc.if_else(mask, values.cast(array.type), array))
        except (pa.ArrowException, NotImplementedError) as error:
            raise InvalidInputError(
                "the data has the wrong type", where=name, expected=array.type, found=str(error)
            ) from error
    return pa.RecordBatch.from_arrays(arrays, old.schema.names)
