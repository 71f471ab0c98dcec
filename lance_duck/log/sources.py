"""The rows of a write-ahead log: SSTables, and entries that are not in an SSTable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.index.catalog import field_path
from lance_duck.log.keys import KeySet
from lance_duck.scan.filters import Filter
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.snapshot.shards import SsTable, read_entry
from lance_duck.store import Store, join_uri, store_in_memory
from lance_duck.wire import paths
from lance_duck.wire.column_path import split_path
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.wire.schema import Field, Schema
from lance_duck.wire.schema_write import primary_key
from lance_duck.write.coerce import coerce
from lance_duck.write.files import write_new_fragments
from lance_duck.write.options import WriteOptions, rewritten_version

TOMBSTONE: Final = "_tombstone"
"""Column of SSTables and entries. It is true in rows that delete a key."""
_ROWS_AT_ONCE: Final = 1 << 20
"""Minimum number of keys that are compared at once. Each comparison hashes all keys of the log."""
_FIELD_ID: Final = b"lance:field_id"


@dataclass(frozen=True, eq=False)
class SsTableRows:
    """The rows of an SSTable.

    Attributes:
        snapshot: The SSTable as a table.
        addresses: uint64, addresses of its live rows, ascending.
        keys: Primary keys of these rows, in the same order. Without columns for tables that lack a primary key.
        deletes: Mask of the rows that only delete a key.
    """

    snapshot: Snapshot
    addresses: NDArray[np.uint64]
    keys: pa.Table
    deletes: NDArray[np.bool_]

    def own_files(self, fragment: Fragment) -> tuple[DataFile, ...]:
        """Return the data files of a fragment, without `_tombstone`. The main table may use its field id again."""
        own = next(field.id for field in self.snapshot.schema.fields if field.name == TOMBSTONE)
        files = []
        for file in fragment.files:
            kept = [place for place, field_id in enumerate(file.fields) if field_id != own]
            fields = tuple(file.fields[place] for place in kept)
            columns = tuple(file.column_indices[place] for place in kept) if file.column_indices else ()
            files.append(replace(file, fields=fields, column_indices=columns))
        return tuple(files)


@dataclass(frozen=True, eq=False)
class EntryRows:
    """The rows of a shard's entries, in memory.

    Attributes:
        keys: Primary keys of all rows, including rows that only delete a key.
        store: Store in memory with the data files.
        fragments: Fragments of the newest row of each key. Rows that only delete a key are left out.
    """

    keys: pa.Table
    store: Store
    fragments: Sequence[Fragment]


@dataclass(frozen=True)
class LogSchema:
    """The columns of a table with a log.

    Attributes:
        schema: Schema of the main table.
        where: Location of the main table, for messages.
    """

    schema: Schema
    where: str

    @cached_property
    def key(self) -> tuple[Field, ...]:
        """Columns of the primary key. () for a table without one, whose log never replaces rows."""
        return primary_key(self.schema)

    @cached_property
    def key_schema(self) -> pa.Schema:
        """Names and types of the primary key in `SsTableRows.keys`.

        The names are the paths of the columns. A dictionary has its value type.
        """
        types = [field.storage_type for field in self.key]
        plain = [type_.value_type if pa.types.is_dictionary(type_) else type_ for type_ in types]
        names = [self.path_of(field.id, self.schema) for field in self.key]
        return pa.schema(list(zip(names, plain, strict=True)))

    def path_of(self, field_id: int, schema: Schema) -> str:
        """Return the path of a key column in the schema of an SSTable or the main table.

        Raises:
            CorruptError: The column does not exist.
        """
        path = field_path(schema, field_id)
        if path is None:
            raise CorruptError(f"primary key column {field_id} is missing", where=self.where)
        return path

    def checked_keys(self, keys: pa.Table, where: str) -> pa.Table:
        """Return keys with the names and types of `key_schema`.

        Raises:
            CorruptError: A key is null, or has another type.
        """
        try:
            result = keys.rename_columns(self.key_schema.names).cast(self.key_schema)
        except (pa.ArrowException, ValueError) as error:
            raise CorruptError("wrong type of a primary key in the log", where=where, found=str(error)) from error
        if any(column.null_count for column in result.columns):
            raise CorruptError("a primary key in the log is null", where=where, expected="no null")
        return result


def key_batches(table: TableScan, columns: LogSchema, condition: Filter | None, *more: str) -> Iterator[pa.Table]:
    """Yield the primary keys of live rows in scan order, then `_rowaddr` and more columns, many rows at a time."""
    names = [columns.path_of(field.id, table.snapshot.schema) for field in columns.key]
    reader = table.reader(table.plan(ScanOptions(columns=[*names, ROW_ADDRESS, *more], filter=condition)))
    waiting: list[pa.RecordBatch] = []
    for batch in reader:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    yield pa.Table.from_batches(waiting, reader.schema)


def open_sstable(base: Snapshot, sstable: SsTable, columns: LogSchema) -> SsTableRows:
    """Open an SSTable, and read its primary keys.

    Raises:
        NotFoundError: The SSTable does not exist.
        CorruptError: The SSTable does not match the main table.
        UnsupportedError: The SSTable has data outside its folder, or overlays.
    """
    where = join_uri(base.uri, sstable.path)
    if not any(base.store.names(f"{sstable.path}/{paths.VERSIONS}")):
        raise NotFoundError("an SSTable of the write-ahead log (MemWAL) is missing", where=where)
    snapshot = open_snapshot(where, storage_options=base.location.storage_options)
    _check_sstable(snapshot, columns, where)
    rows = pa.concat_tables(key_batches(TableScan(snapshot), columns, None, TOMBSTONE))
    count = len(columns.key)
    keys = columns.checked_keys(rows.select(range(count)), where)
    deletes = rows.column(count + 1)
    if not pa.types.is_boolean(deletes.type):
        raise CorruptError(f"wrong type of {TOMBSTONE}", where=where, expected="bool", found=deletes.type)
    return SsTableRows(snapshot, _numbers(rows.column(count)), keys, _mask(deletes))


def read_entries(base: Snapshot, entries: Sequence[str], columns: LogSchema) -> EntryRows:
    """Read the entries of a shard.

    Args:
        base: The main table.
        entries: Paths below the root of the main table, oldest first.
        columns: Columns of the main table.

    Raises:
        CorruptError: An entry is corrupt, or does not match the main table.
    """
    pieces = [_entry(base, path, columns) for path in entries]
    keys = pa.concat_tables([columns.key_schema.empty_table(), *(keys for keys, _, _ in pieces)])
    replaced = KeySet(keys).replaced() if columns.key else np.zeros(keys.num_rows, np.bool_)
    store = store_in_memory()
    start = 0
    batches: list[pa.RecordBatch] = []
    options = WriteOptions(data_storage_version=rewritten_version(base.data_storage_version))
    try:
        for _, deletes, rows in pieces:
            keep = ~deletes
            if columns.key:
                keep &= ~replaced[start : start + len(deletes)]
            start += len(deletes)
            batches += rows.filter(pa.array(keep)).to_batches()
        fragments = write_new_fragments(store, columns.schema, coerce(batches, columns.schema), options)
    except pa.ArrowNotImplementedError as error:
        raise UnsupportedError("entries of the log have an unknown type", where=base.uri, found=str(error)) from error
    except InvalidInputError as error:
        raise CorruptError(
            "rows of the log do not match the table", where=f"{base.uri}: {entries[0]} and later", found=str(error)
        ) from error
    return EntryRows(keys, store, fragments)


def _check_sstable(snapshot: Snapshot, columns: LogSchema, where: str) -> None:
    if snapshot.base_paths or any(fragment.overlays for fragment in snapshot.fragments):
        raise UnsupportedError("an SSTable with base paths or overlays is not supported", where=where)
    if TOMBSTONE not in snapshot.schema.names:
        raise CorruptError(f"an SSTable has no column {TOMBSTONE}", where=where)
    types = {field.id: field.logical_type for field in columns.schema.walk()}
    for field in snapshot.schema.walk():
        if field.name != TOMBSTONE and types.get(field.id, field.logical_type) != field.logical_type:
            raise CorruptError(
                f"column {field.name!r} of an SSTable has another type than in the main table",
                where=where,
                expected=types[field.id],
                found=field.logical_type,
            )


def _entry(base: Snapshot, path: str, columns: LogSchema) -> tuple[pa.Table, NDArray[np.bool_], pa.Table]:
    """Return an entry's keys, a mask of the rows that only delete a key, and all columns."""
    where = join_uri(base.uri, path)
    table = read_entry(base.store, path)
    if not table.num_rows or not columns.schema.fields:  # entries without rows are marks of new writers
        return columns.key_schema.empty_table(), np.zeros(0, np.bool_), pa.table({})
    if TOMBSTONE not in table.column_names or not pa.types.is_boolean(table.schema.field(TOMBSTONE).type):
        raise CorruptError(f"an entry of the log has no column {TOMBSTONE} of type bool", where=where)
    ids = {_id_of(field): number for number, field in enumerate(table.schema)}
    found = {}
    for field in columns.schema.fields:
        if field.id in ids:
            source = table.schema.field(ids[field.id])
            chunks = [_by_id(chunk, source, field) for chunk in table.column(ids[field.id]).chunks]
            found[field.name] = pa.chunked_array(chunks)
        else:
            found[field.name] = pa.chunked_array([pa.nulls(table.num_rows, field.storage_type)])
    rows = pa.table(found)
    keys = {}
    for field, name in zip(columns.key, columns.key_schema.names, strict=True):
        top, *below = split_path(columns.path_of(field.id, columns.schema))
        keys[name] = pc.struct_field(rows[top], below) if below else rows[top]
    return columns.checked_keys(pa.table(keys), where), _mask(table.column(TOMBSTONE)), rows


def _by_id(array: pa.Array, source: pa.Field, field: Field) -> pa.Array:
    """Return the values of a column with the struct members of the main table, which are matched by field id.

    Args:
        array: The values.
        source: Column of the entry.
        field: Column of the main table.
    """
    if field.is_list and pa.types.is_list(source.type) | pa.types.is_large_list(source.type):
        items = _by_id(array.values, source.type.value_field, field.children[0])
        return type(array).from_arrays(array.offsets, items, mask=array.is_null() if array.null_count else None)
    if field.logical_type != "struct" or field.blob_version or not pa.types.is_struct(source.type):
        return array
    places = {_id_of(member): place for place, member in enumerate(source.type)}
    members = [
        _by_id(array.field(places[child.id]), source.type.field(places[child.id]), child)
        if child.id in places
        else pa.nulls(len(array), child.storage_type)
        for child in field.children
    ]
    names = [child.name for child in field.children]
    return pa.StructArray.from_arrays(members, names, mask=array.is_null())


def _id_of(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_FIELD_ID, b"")
    return int(text) if text.isdigit() and len(text) < 10 else None


def _numbers(column: pa.ChunkedArray) -> NDArray[np.uint64]:
    numbers: NDArray[np.uint64] = column.to_numpy()
    return numbers


def _mask(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = pc.fill_null(column, False).to_numpy().astype(np.bool_)
    return mask
