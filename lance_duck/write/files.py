"""Batches to data files, and data files to fragments.

A fragment is written to one file with a new name: see `wire.paths`. This module does not commit. Files that no manifest
lists are invisible.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from lance_duck import lazy
from lance_duck.errors import ArrayLimitError, DataMismatchError, LanceDuckError
from lance_duck.file.write.contract import page_bytes
from lance_duck.file.write.writer import VERSIONS, FileWriter, WrittenFile
from lance_duck.store import Sink, Store
from lance_duck.wire import paths
from lance_duck.wire.fragment import LEGACY, DataFile, Fragment
from lance_duck.wire.schema import Schema
from lance_duck.write.coerce import coerce
from lance_duck.write.options import Base, WriteOptions, WriteProgress

if TYPE_CHECKING:
    from lance_duck.file.v01 import writer as writer01
else:
    writer01 = lazy.modules(globals(), "lance_duck.file.v01", "writer")


def write_new_fragments(
    store: Store, schema: Schema, batches: Iterable[pa.RecordBatch], options: WriteOptions | None = None
) -> list[Fragment]:
    """Write rows as new fragments with the id 0, which the commit replaces. Returns an empty list if there are no rows.

    A new fragment also starts before a dictionary would have more entries than its index type can represent.

    Args:
        store: Root of the table.
        schema: Schema of the table. The batches are converted to it: see `coerce`.
        batches: The rows. They are consumed during the write.
        options: Sizes, version and locations of the files.

    Raises:
        InvalidInputError: A batch does not fit the schema.
        StoreError: A file cannot be written. After any error, the files written so far are deleted.
    """
    options = options or WriteOptions()
    run = _FragmentWrite(store, schema, options)
    try:
        for batch in coerce(batches, schema, options.jsonb):
            run.write(batch)
        return run.finish()
    except BaseException:
        run.discard()
        raise


def write_columns(
    store: Store,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    num_rows: int | None,
    options: WriteOptions | None = None,
) -> DataFile:
    """Write columns for rows of an existing fragment as one data file.

    Args:
        store: Root of the table.
        schema: Schema of only the new columns, with their field ids.
        batches: One row for each physical row of the fragment, including deleted rows. For an overlay, one row for each
            row of the overlay.
        num_rows: Expected number of rows. None allows any number.
        options: Version and location of the file. Its size limits are ignored.

    Raises:
        InvalidInputError: A batch does not fit the schema, or the batches have more or fewer rows than expected.
        ArrayLimitError: A dictionary would have more entries than its index type can represent.
        StoreError: The file cannot be written. After any error, it is deleted.
    """
    options = options or WriteOptions()
    run = _FragmentWrite(store, schema, options, rolls=False)
    try:
        for batch in coerce(batches, schema, options.jsonb):
            run.write(batch)
            if num_rows is not None and run.rows > num_rows:
                break
        if num_rows is not None and run.rows != num_rows:
            row_count = "more" if run.rows > num_rows else run.rows
            raise DataMismatchError(
                "the new columns have the wrong row count",
                expected=f"{num_rows} rows, as in the fragment",
                found=row_count,
            )
        (fragment,) = run.finish(empty=True)
        return fragment.files[0]
    except BaseException:
        run.discard()
        raise


def discard_fragments(store: Store, fragments: Iterable[Fragment], bases: Sequence[Base | None] = ()) -> None:
    """Delete the data files and blob files of fragments that will not be committed. Never raises."""
    stores = {base.id: base for base in bases if base is not None}
    for fragment in fragments:
        for file in fragment.files:
            base = stores.get(file.base_id) if file.base_id is not None else None
            if file.base_id is None or base is not None:
                _delete(base.store if base else store, file.path, base is None or base.is_dataset_root)


class _FragmentWrite:
    """A write of fragments in progress: the open file and the finished files."""

    def __init__(self, store: Store, schema: Schema, options: WriteOptions, *, rolls: bool = True) -> None:
        self._schema = schema
        self._options = options
        self._rolls = rolls
        self._places: Iterator[tuple[Store, Base | None]] = cycle(
            [(store, None) if base is None else (base.store, base) for base in options.bases] or [(store, None)]
        )
        self._open: _OpenFile | None = None
        self._closed: list[tuple[_OpenFile, WrittenFile]] = []
        self._dictionaries: dict[int, pa.Array] = {}
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows. A full file is finished, and a new one is started."""
        start = 0
        while start < batch.num_rows:
            if self._open is None:
                self._begin()
            writer = self._open.writer if self._open else None
            assert writer is not None
            capacity = self._options.max_rows_per_file - writer.num_rows if self._rolls else batch.num_rows
            piece = batch.slice(start, capacity)
            try:
                writer.write(piece)
            except ArrayLimitError:
                if not self._rolls or not writer.num_rows:
                    raise
                self._finish_file()
                continue
            start += piece.num_rows
            self.rows += piece.num_rows
            if self._rolls and self._is_full(writer):
                self._finish_file()
        self._tell()

    def finish(self, *, empty: bool = False) -> list[Fragment]:
        """Finish the last file. If `empty` is true, a file is written even without rows."""
        if empty and self._open is None and not self._closed:
            self._begin()
        self._finish_file()
        self._tell()
        self._sync()
        return [_fragment(file, written_file) for file, written_file in self._closed]

    def discard(self) -> None:
        """Delete all files of this write. Never raises."""
        if self._open is not None:
            self._open.writer.abort()
            self._open.delete()
        for file, _ in self._closed:
            file.delete()

    def _sync(self) -> None:
        """Flush file names, unless the commit flushes them.

        The commit does not flush names outside the table's root. A commit by a different process does not flush any.
        """
        files = [file for file, _ in self._closed if not (self._options.committed_here and file.is_in_table)]
        for store in {id(file.store): file.store for file in files}.values():
            store.sync()

    def _begin(self) -> None:
        store, base = next(self._places)
        self._open = _OpenFile(store, base, self._schema, self._options, self._dictionaries)
        if self._options.watch is not None:
            version = VERSIONS.get(self._options.version) or writer01.FILE_VERSION
            self._options.watch.begin(_fragment(self._open, WrittenFile(0, 0, version, (), ())))

    def _is_full(self, writer: FileWriter | writer01.LegacyFileWriter) -> bool:
        return writer.num_rows >= self._options.max_rows_per_file or writer.reaches(self._options.max_bytes_per_file)

    def _finish_file(self) -> None:
        if self._open is not None:
            self._closed.append((self._open, self._open.writer.finish()))
            self._open = None
            if self._options.watch is not None:
                self._options.watch.complete(_fragment(*self._closed[-1]))

    def _tell(self) -> None:
        if self._options.progress is not None:
            size = sum(written_file.size for _, written_file in self._closed) + (
                self._open.writer.tell() if self._open else 0
            )
            self._options.progress(WriteProgress(self.rows, size, len(self._closed)))


class _OpenFile:
    """A data file that is being written, and its blob files."""

    def __init__(
        self,
        store: Store,
        base: Base | None,
        schema: Schema,
        options: WriteOptions,
        dictionaries: MutableMapping[int, pa.Array],
    ) -> None:
        self.store = store
        self._base = base
        whole = options.transaction
        self._name = paths.new_data_file(uuid4()) if whole is None else paths.transaction_data_file(whole, uuid4())
        self.is_in_table = base is None
        self._is_root = base is None or base.is_dataset_root
        sink = store.create(paths.data_file(self._name, is_dataset_root=self._is_root), late=True)
        try:
            self.writer = self._writer(sink, schema, options, dictionaries)
        except BaseException:
            sink.abort()
            raise
        for key, value in options.metadata.items():
            self.writer.add_schema_metadata(key, value)

    def _writer(
        self, sink: Sink, schema: Schema, options: WriteOptions, dictionaries: MutableMapping[int, pa.Array]
    ) -> FileWriter | writer01.LegacyFileWriter:
        if options.version == LEGACY:
            return writer01.LegacyFileWriter(
                sink,
                schema,
                rows_per_group=options.max_rows_per_group,
                batch_rows=options.batch_rows,
                dictionaries=dictionaries,
            )
        return FileWriter(
            sink,
            schema,
            options.version,
            page_bytes=page_bytes(len(schema.fields), options.data_cache_bytes, options.max_page_bytes),
            open_sidecar=self._sidecar,
            blobs=options.blobs,
            threads=options.threads,
            checksums=self.store.checksums,
        )

    def described(self, written_file: WrittenFile) -> DataFile:
        """Return the file's manifest entry."""
        base_id = None if self._base is None else self._base.id
        return DataFile(
            self._name,
            written_file.fields,
            written_file.column_indices,
            written_file.version,
            written_file.size,
            base_id,
        )

    def delete(self) -> None:
        """Delete the file and its blob files. Never raises."""
        _delete(self.store, self._name, self._is_root)

    def _sidecar(self, blob_id: int) -> Sink:
        return self.store.create(paths.blob_file(self._name, blob_id, is_dataset_root=self._is_root))


def _fragment(file: _OpenFile, written_file: WrittenFile) -> Fragment:
    return Fragment(0, (file.described(written_file),), None, written_file.num_rows, None, None, None)


def _delete(store: Store, name: str, is_root: bool) -> None:
    directory = paths.blob_directory(name, is_dataset_root=is_root)
    with contextlib.suppress(LanceDuckError):
        blobs = [entry.path for entry in store.walk(directory)]
        store.delete([paths.data_file(name, is_dataset_root=is_root), *blobs])
