"""LanceFileWriter: writes a data file without a table."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import pyarrow as pa

from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError
from lance_duck.file.write.contract import page_bytes
from lance_duck.file.write.nulls import check_nulls
from lance_duck.file.write.writer import FileWriter
from lance_duck.store import Store, local_path, open_store
from lance_duck.wire.schema import Schema
from lance_duck.wire.schema_write import schema_from_arrow

_STABLE = "2.2"


@checked_calls
class LanceFileWriter:
    """A writer of one data file.

    The file becomes visible, complete, when the writer is closed. If a `with` block fails, no file is left behind.

    Args:
        path: Path or URI of the file.
        schema: Columns of the file. By default the schema of the first batch.
        data_cache_bytes: Maximum size of buffered values over all columns, in bytes. By default 8 MiB for each column.
        version: "2.0", "2.1", "2.2" or "stable". By default "2.2".
        storage_options: Settings of the object store.
        max_page_bytes: Maximum size of a page's values, in bytes.
        store: Store that contains the path, if it is already open.

    Attributes:
        closed: Whether `close` was called.
        size_bytes: Size of the file, in bytes. None until the file is closed.

    Raises:
        InvalidInputError: The version is unknown, or the schema has duplicate names.
        UnsupportedError: Lance or the requested file version does not support a type.
        StoreError: The path cannot be written to.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: pa.Schema | None = None,
        *,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        max_page_bytes: int | None = None,
        store: Store | None = None,
    ) -> None:
        self.closed = False
        self.size_bytes: int | None = None
        self._store, self._name = file_place(path, storage_options) if store is None else (store, os.fspath(path))
        self._version = _STABLE if version in (None, "stable") else str(version)
        self._limits = data_cache_bytes, max_page_bytes
        self._metadata: dict[str, str] = {}
        self._global_buffers: list[bytes] = []
        self._writer: FileWriter | None = None
        self._schema: Schema | None = None
        self._arrow: pa.Schema | None = None
        if schema is not None:
            self._begin(schema)

    def write_batch(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows.

        Raises:
            InvalidInputError: The batch's schema differs from the file's, the batch is corrupt, or a null is in a
                non-nullable column. The batch is not written.
            StoreError: The file cannot be written. It is removed.
        """
        if self.closed:
            raise InvalidInputError("the file is closed", where=self._name)
        for part in batch.to_batches() if isinstance(batch, pa.Table) else [batch]:
            self._write(part)

    def close(self) -> int | None:
        """Finish the file and return its row count. Returns None if the file was closed before.

        Raises:
            InvalidInputError: Neither a schema nor a batch was given.
            StoreError: The file cannot be written. It is removed.
        """
        if self.closed:
            return None
        self.closed = True
        if self._writer is None:
            raise InvalidInputError(
                "Schema is unknown and file cannot be created",
                where=self._name,
                remedy="pass schema=, or write a batch",
            )
        for key, value in self._metadata.items():
            self._writer.add_schema_metadata(key, value)
        for data in self._global_buffers:
            self._writer.add_global_buffer(data)
        written_file = self._writer.finish()
        self.size_bytes = written_file.size
        return written_file.num_rows

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Set an entry of the schema's metadata."""
        self._metadata[key] = value

    def add_global_buffer(self, data: bytes) -> int:
        """Add a buffer that belongs to the whole file, and return its index, from 1 upwards."""
        self._global_buffers.append(bytes(data))
        return len(self._global_buffers)

    def __enter__(self) -> LanceFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
            return
        self.closed = True
        if self._writer is not None:
            self._writer.abort()

    def _begin(self, arrow: pa.Schema) -> FileWriter:
        self._arrow = arrow
        self._schema = schema_from_arrow(arrow, self._version, old_blobs=True)
        each = page_bytes(len(arrow), *self._limits)
        sink = self._store.create(self._name)
        try:
            self._writer = FileWriter(
                sink, self._schema, self._version, page_bytes=each, checksums=self._store.checksums
            )
        except BaseException:
            sink.abort()
            raise
        return self._writer

    def _write(self, batch: Any) -> None:
        if not isinstance(batch, pa.RecordBatch):
            raise InvalidInputError("not a batch", where=self._name, found=type(batch).__name__)
        writer = self._writer or self._begin(batch.schema)
        assert self._arrow is not None
        assert self._schema is not None
        self._check(batch, self._arrow, self._schema)
        try:
            writer.write(batch)
        except BaseException:
            self.closed = True
            writer.abort()
            raise

    def _check(self, batch: pa.RecordBatch, arrow: pa.Schema, schema: Schema) -> None:
        if batch.schema.names != arrow.names or batch.schema.types != arrow.types:
            raise InvalidInputError(
                "the batch has a different schema", where=self._name, expected=_short(arrow), found=_short(batch.schema)
            )
        try:
            batch.validate(full=True)
        except pa.ArrowException as error:
            raise InvalidInputError("the batch is invalid", where=self._name, found=error) from error
        for array, field in zip(batch.columns, schema.fields, strict=True):
            check_nulls(array, field)


def stable_version() -> str:
    """Return the default version of data files."""
    return _STABLE


def file_place(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> tuple[Store, str]:
    """Return a store for the directory of a file, and the file's name."""
    text = os.fspath(path)
    local = local_path(text)
    whole = text if local is None else os.path.abspath(local)
    directory, name = posixpath.split(whole)
    if not name:
        raise InvalidInputError("invalid file path", where=repr(text), expected="a path that ends with a file name")
    return open_store(directory, storage_options), name


def _short(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name}: {f.type}" for f in schema)
