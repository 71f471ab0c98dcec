"""Files that store the new columns of a fragment, with one value for each physical row, even for deleted rows.

A deleted row gets the value of the next live row, or of the last live row if none follows. This value is never
read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.errors import DataMismatchError, UnsupportedError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ColumnsLike
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.store import Store
from lance_duck.wire.files.overlay import without_fields
from lance_duck.wire.fragment import LEGACY, TOMBSTONE, DataFile, Fragment
from lance_duck.wire.schema import Schema
from lance_duck.write.files import discard_fragments, write_columns
from lance_duck.write.options import WriteOptions

if TYPE_CHECKING:
    from lance_duck.file.v01 import container
else:
    container = lazy.modules(globals(), "lance_duck.file.v01", "container")


class LiveRows:
    """Columns or SQL expressions of the live rows of fragments. Blobs are read as bytes.

    Args:
        table: The version to read.
        columns: Column names, including hidden columns, or SQL expressions by name. None selects all columns.
        batch_size: Maximum number of rows per batch.
        deleted: Whether to include deleted rows.

    Raises:
        InvalidInputError: A column is unknown, or an expression is invalid.
    """

    def __init__(
        self, table: TableScan, columns: ColumnsLike | None, batch_size: int | None = None, *, deleted: bool = False
    ) -> None:
        self._table = table
        options = ScanOptions(columns=columns, batch_size=batch_size, fragments=[], blob_handling="all_binary")
        self._plan = replace(table.plan(options), include_deleted=deleted)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the batches."""
        return self._table.reader(self._plan).schema

    def of(self, fragment: Fragment) -> pa.RecordBatchReader:
        """Stream the rows of a fragment, in order."""
        return self._table.reader(replace(self._plan, fragments=(fragment,)))


def live_rows(snapshot: Snapshot, fragment: Fragment) -> NDArray[np.int64] | None:
    """Return the offsets of a fragment's live rows, or None if no row is deleted."""
    vector = snapshot.deletion_vector(fragment)
    if vector is None or not vector.count:
        return None
    return vector.live_offsets(0, snapshot.physical_rows(fragment))


def spread(
    batches: Iterable[pa.RecordBatch], live: NDArray[np.int64] | None, physical_rows: int, where: str
) -> Iterator[pa.RecordBatch]:
    """Spread live rows over all physical rows of a fragment.

    Args:
        batches: One row for each live row.
        live: Offsets of the live rows, or None for all rows.
        physical_rows: Physical row count of the fragment.
        where: Description of the fragment, for error messages.

    Raises:
        InvalidInputError: The number of rows differs from the number of live rows.
    """
    expected = physical_rows if live is None else len(live)
    start, at, last = 0, 0, None
    for batch in batches:
        end = start + batch.num_rows
        if end > expected:
            raise _wrong_rows(where, expected, f"at least {end}")
        if not batch.num_rows:
            continue
        if live is None:
            yield batch
        else:
            stop = int(live[end - 1]) + 1
            yield batch.take(pa.array(np.searchsorted(live[start:end], np.arange(at, stop))))
            at, last = stop, batch.slice(batch.num_rows - 1)
        start = end
    if start < expected:
        raise _wrong_rows(where, expected, start)
    if live is not None and last is not None and at < physical_rows:
        yield last.take(pa.array(np.zeros(physical_rows - at, np.int64)))


class EarlierFiles:
    """Files of attempts that lost a race, reused for fragments that did not change.

    Without reuse, a table with constant appends would never get a new column.
    """

    def __init__(self) -> None:
        self._schemas: tuple[Schema, Schema] | None = None
        self._files: dict[Fragment, DataFile] = {}
        self._useless: list[DataFile] = []

    def take(self, before: Schema, new: Schema) -> dict[Fragment, DataFile]:
        """Return the kept files by fragment. Empty if they were written for other schemas."""
        files, self._files = self._files, {}
        if self._schemas != (before, new):
            self._useless += files.values()
            files = {}
        self._schemas = before, new
        return files

    def put(self, files: Mapping[Fragment, DataFile]) -> None:
        """Keep files for the next attempt."""
        self._files.update(files)

    def discard(self, store: Store) -> None:
        """Delete the files. Never raises."""
        _discard(store, [*self._files.values(), *self._useless])
        self._files, self._useless = {}, []


class ColumnFiles:
    """The files that a change writes for new columns, one per fragment. They are discarded if the change fails.

    Args:
        snapshot: The version that is changed.
        schema: The new columns only.
        version: Version of the data files.
        earlier: Files of earlier attempts, or None.
        transaction: UUID of the transaction that will commit the files: see `WriteOptions.transaction`.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        schema: Schema,
        version: str,
        earlier: EarlierFiles | None = None,
        transaction: UUID | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._schema = schema
        self._options = WriteOptions(data_storage_version=version, transaction=transaction)
        self._earlier = earlier
        self._usable = {} if earlier is None else earlier.take(snapshot.schema, schema)
        self._written: dict[Fragment, DataFile] = {}

    def write(self, fragment: Fragment, batches: Iterable[pa.RecordBatch]) -> DataFile | None:
        """Write new columns of a fragment's live rows, or reuse an earlier file. None if all rows are deleted."""
        data_file = self._usable.pop(fragment, None)
        if data_file is not None:
            self._written[fragment] = data_file
            return data_file
        live = live_rows(self._snapshot, fragment)
        rows = self._snapshot.physical_rows(fragment)
        placed = spread(batches, live, rows, f"fragment {fragment.id}")
        if live is not None and not len(live):
            for _ in placed:
                raise _wrong_rows(f"fragment {fragment.id}", 0, "some")
            return None
        return self._write(fragment, self._schema, placed)

    def write_all(self, fragment: Fragment, schema: Schema, batches: Iterable[pa.RecordBatch]) -> DataFile:
        """Write columns of all rows of a fragment, including deleted rows.

        Args:
            fragment: The fragment.
            schema: The columns. They may differ from the columns that are written for other fragments.
            batches: One row for each physical row.
        """
        return self._write(fragment, schema, batches)

    def _write(self, fragment: Fragment, schema: Schema, batches: Iterable[pa.RecordBatch]) -> DataFile:
        options = options_in(self._snapshot, fragment, self._options)
        rows = self._snapshot.physical_rows(fragment)
        file = self._written[fragment] = write_columns(self._store, schema, batches, rows, options)
        return file

    def keep(self, fragment: Fragment) -> None:
        """Exempt the file of a fragment from `discard`."""
        del self._written[fragment]

    def lost(self) -> None:
        """Leave the files to the next attempt after a lost race."""
        if self._earlier is None:
            self.discard()
        else:
            self._earlier.put(self._usable | self._written)

    def discard(self) -> None:
        """Delete the files. Never raises."""
        _discard(self._store, [*self._usable.values(), *self._written.values()])
        self._usable, self._written = {}, {}

    def committed(self) -> None:
        """Delete unused files of earlier attempts. Never raises."""
        _discard(self._store, self._usable.values())

    @property
    def _store(self) -> Store:
        return self._snapshot.store


def options_in(snapshot: Snapshot, fragment: Fragment, options: WriteOptions) -> WriteOptions:
    """Return the write options for a new data file of a fragment. All 0.1 files of a fragment use the same batch sizes.

    Raises:
        LanceDuckError: A file of the fragment cannot be opened.
    """
    if options.version != LEGACY or not fragment.files:
        return options
    file = snapshot.data_file(fragment.files[0])
    assert isinstance(file, container.LegacyFile)  # no table has files of both formats
    return replace(options, batch_rows=np.diff(file.bounds).tolist())


def refuse_missing_values(snapshot: Snapshot, fragment: Fragment) -> None:
    """Raise UnsupportedError for a 0.1 table if a fragment would not store the new columns in any file.

    Raises:
        UnsupportedError: The table uses file format 0.1. Its readers expect a file for each column.
    """
    if snapshot.manifest.has_legacy_files:
        raise UnsupportedError(
            "tables of version 0.1 cannot add columns without values",
            where=f"fragment {fragment.id}",
            remedy="pass values, or call optimize.compact_files() first",
        )


def with_file(fragment: Fragment, file: DataFile | None, schema: Schema) -> Fragment:
    """Return the fragment with an additional data file, and without files that only hold dropped fields."""
    live = {field.id for field in schema.walk()}
    files = [*fragment.files, *([] if file is None else [file])]
    overlays = tuple(overlay for overlay in fragment.overlays if not live.isdisjoint(overlay.file.fields))
    return replace(fragment, files=tuple(file for file in files if not live.isdisjoint(file.fields)), overlays=overlays)


def with_fields_of(fragment: Fragment, file: DataFile, field_ids: Set[int]) -> Fragment:
    """Return the fragment after a file has taken over some fields from earlier files.

    Raises:
        UnsupportedError: A 0.1 file would lose its lowest field. Other readers number the pages of the file from that
            field.
    """
    files = []
    for old in fragment.files:
        fields = tuple(TOMBSTONE if i in field_ids else i for i in old.fields)
        if all(i == TOMBSTONE for i in fields):
            continue
        if old.version == LEGACY and fields[0] == TOMBSTONE and old.fields[0] != TOMBSTONE:
            raise UnsupportedError(
                "tables of version 0.1 cannot rewrite this column in place",
                where=f"fragment {fragment.id}: {old.path}",
                remedy='update with update_mode="rewrite_rows", or call optimize.compact_files() first',
            )
        files.append(replace(old, fields=fields))
    return replace(fragment, files=(*files, file), overlays=without_fields(fragment.overlays, field_ids))


def _discard(store: Store, files: Iterable[DataFile]) -> None:
    discard_fragments(store, [Fragment(0, (file,), None, 0, None, None, None) for file in files])


def _wrong_rows(where: str, expected: int, count: object) -> DataMismatchError:
    return DataMismatchError(
        "the new columns do not have the row count of the table", where=where, expected=expected, found=count
    )
