"""LanceFileReader: reads a data file without a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.arguments import checked_calls
from lance_duck.encoding.layouts.page import Rows
from lance_duck.errors import InvalidInputError
from lance_duck.file.column import open_column
from lance_duck.file.costs import BATCH_ROWS, READ_AHEAD
from lance_duck.file.describe import FileMetadata, FileStatistics, describe_file, file_statistics
from lance_duck.file.open import open_data_file
from lance_duck.file.physical import physical_columns
from lance_duck.file.reader import LanceFile
from lance_duck.store import ByteSource, Store, boolean_option, gather, local_path, open_source, run
from lance_duck.wire.column_path import split_path
from lance_duck.wire.schema import Schema, schema_from_proto


@dataclass(frozen=True)
class ReaderResults:
    """Rows of a file. They can be read only once.

    Attributes:
        reader: The rows as a stream.
    """

    reader: pa.RecordBatchReader

    def to_batches(self) -> pa.RecordBatchReader:
        """Return the rows as a stream."""
        return self.reader

    def to_table(self) -> pa.Table:
        """Return the rows in memory."""
        return self.reader.read_all()


@checked_calls
class LanceFileReader:
    """A reader of one data file, which returns blobs as bytes. Safe to use from several threads.

    Args:
        path: Path or URI of the file.
        storage_options: Settings of the object store.
        columns: Names of the columns to read ("a.b" for a field of a struct), in the order of the result. By default
            all columns are read.
        store: Store that resolves a relative path. By default `path` is opened without a shared store.

    Raises:
        NotFoundError: The file does not exist.
        FormatError: The file is not a Lance data file, or its version is not supported.
        InvalidInputError: A column is unknown, or `columns` is empty.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        columns: Iterable[str] | None = None,
        *,
        store: Store | None = None,
    ) -> None:
        checksums = boolean_option(storage_options, "checksums", default=True) if store is None else store.checksums
        source = _source(path, storage_options) if store is None else store.open(os.fspath(path))
        self._file = run(open_data_file(source, checksums=checksums))
        descriptor = self._file.descriptor.schema
        self._whole = schema_from_proto(descriptor.fields, descriptor.metadata)
        self._places = physical_columns(self._whole.fields, self._file.version)
        schema = self._whole if columns is None else _selection(self._whole, columns)
        fields = schema.with_blob_bytes().fields
        self._schema = pa.schema([f.to_arrow(scan=True) for f in fields], self._whole.arrow.metadata)
        self._columns = [open_column(f, self._locate, self._file.num_rows) for f in fields]

    def read_all(self, *, batch_size: int = BATCH_ROWS, batch_readahead: int = 16) -> ReaderResults:
        """Read all rows.

        Args:
            batch_size: Maximum rows per batch.
            batch_readahead: Without effect: rows are read on demand.
        """
        return self.read_range(0, self._file.num_rows, batch_size=batch_size, batch_readahead=batch_readahead)

    def read_range(
        self, start: int, num_rows: int, *, batch_size: int = BATCH_ROWS, batch_readahead: int = 16
    ) -> ReaderResults:
        """Read `num_rows` rows from `start`.

        Args:
            start: First row.
            num_rows: Number of rows.
            batch_size: Maximum rows per batch.
            batch_readahead: Without effect: rows are read on demand.

        Raises:
            InvalidInputError: The range extends past the file's rows.
        """
        total = self._file.num_rows
        if not 0 <= start <= start + num_rows <= total:
            rows = f"{num_rows} from {start}"
            raise InvalidInputError(
                "the row range is outside the file", where=self._path, expected=f"within {total} rows", found=rows
            )
        step, stop = _batch_rows(batch_size), start + num_rows if self._columns else start
        return self._stream(self._spans(start, stop, step))

    def take_rows(self, indices: Any, *, batch_size: int = BATCH_ROWS, batch_readahead: int = 16) -> ReaderResults:
        """Read rows by position.

        Args:
            indices: Row positions, in ascending order.
            batch_size: Maximum rows per batch.
            batch_readahead: Without effect: rows are read on demand.

        Raises:
            InvalidInputError: Positions do not ascend, or are beyond the file's rows.
        """
        rows = _positions(indices, self._file.num_rows, self._path)
        step = _batch_rows(batch_size)
        return self._stream(self._batch(rows[at : at + step]) for at in range(0, len(rows), step))

    def metadata(self) -> FileMetadata:
        """Describe the file: its schema, columns, pages and buffers."""
        return describe_file(self._file, self._whole.arrow)

    def file_statistics(self) -> FileStatistics:
        """Return the number of pages and bytes of each physical column."""
        return file_statistics(self._file)

    def read_global_buffer(self, index: int) -> bytes:
        """Return the bytes of a global buffer; buffer 0 is the descriptor, which contains the schema.

        Raises:
            InvalidInputError: The index is out of range.
        """
        return run(self._file.global_buffer(index)).tobytes()

    def num_rows(self) -> int:
        """Return the number of rows of the file."""
        return self._file.num_rows

    @property
    def _path(self) -> str:
        return self._file.source.path

    def _locate(self, field_id: int) -> tuple[LanceFile, int] | None:
        place = self._places.get(field_id)
        return None if place is None else (self._file, place)

    def _stream(self, batches: Iterator[pa.RecordBatch]) -> ReaderResults:
        return ReaderResults(pa.RecordBatchReader.from_batches(self._schema, batches))

    def _spans(self, start: int, stop: int, step: int) -> Iterator[pa.RecordBatch]:
        """Yield batches of `step` rows. Several small batches are read together."""
        span = step
        while start < stop:
            batch = self._batch(slice(start, min(start + span, stop)))
            yield from (batch.slice(at, step) for at in range(0, batch.num_rows, step))
            start += batch.num_rows
            if batch.nbytes < READ_AHEAD:
                span *= 2

    def _batch(self, rows: Rows) -> pa.RecordBatch:
        arrays = run(gather([column.read(rows) for column in self._columns]))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _source(path: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> ByteSource:
    text = os.fspath(path)
    local = local_path(text)
    return open_source(text if local is None else os.path.abspath(local), storage_options)


def _selection(schema: Schema, columns: Iterable[str]) -> Schema:
    if isinstance(columns, str | bytes):
        raise InvalidInputError("bad columns", expected="a list of names", found=type(columns).__name__)
    tops = {field.id: field for field in schema.fields}
    below: dict[int, list[tuple[str, ...]]] = {}
    for name in columns:
        schema.by_path(name)
        path = (name,) if name in schema.names else tuple(split_path(name))
        top = next(field for field in schema.fields if field.name == path[0])
        below.setdefault(top.id, []).append(path[1:])
    if not below:
        raise InvalidInputError("no columns to read", where="columns", expected="at least one")
    return replace(schema, fields=tuple(tops[field_id].pruned(paths) for field_id, paths in below.items()))


def _batch_rows(batch_size: int) -> int:
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InvalidInputError("batch_size", expected="at least 1", found=batch_size)
    return batch_size


def _positions(indices: Any, num_rows: int, where: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    values = indices.to_numpy(zero_copy_only=False) if isinstance(indices, pa.Array) else np.asarray(indices)
    rows = values.astype(np.int64) if values.size == 0 or values.dtype.kind in "iu" else None
    if rows is None or rows.ndim != 1:
        raise InvalidInputError("invalid row positions", expected="whole numbers", found=repr(indices))
    if len(rows) and (rows[0] < 0 or rows[-1] >= num_rows or np.any(rows[1:] <= rows[:-1])):
        raise InvalidInputError("invalid row positions", where=where, expected=f"ascending, within {num_rows} rows")
    return rows
