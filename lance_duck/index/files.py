"""The files of a segment: Lance data files in one directory.

_indices/{uuid}/{name}      files of the kind; some kinds also have small files that are not data files
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.errors import CorruptError, LanceDuckError
from lance_duck.file.column import ColumnReader, Rows, open_column
from lance_duck.file.nested import NestedColumn
from lance_duck.file.physical import physical_columns
from lance_duck.file.reader import LanceFile, open_file
from lance_duck.store import Store, gather, local_path, run
from lance_duck.store.request import Bytes, ByteSource, is_watched
from lance_duck.wire import paths
from lance_duck.wire.schema import Schema, schema_from_proto
from lance_duck.wire.schema_write import schema_from_arrow

if TYPE_CHECKING:
    from lance_duck.file.write import writer as writing
else:
    writing = lazy.modules(globals(), "lance_duck.file.write", "writer")

PAGE_BYTES: Final = 1 << 20
INDEX_BLOCK_BYTES: Final = 16 << 20
"""Size of the blocks in which index data is read, built and written, in bytes. Limits memory."""
INDEX_BLOCK_ROWS: Final = 1 << 20
"""Maximum number of rows, or of (query, partition) pairs, in a block. Limits row addresses to 8 MiB of memory."""
SMALL_FILE_BYTES: Final = 1 << 20
"""Maximum size of a small (non-data) file, in bytes. Larger ones are not read."""
BUFFERS_AHEAD_BYTES: Final = 1 << 20
"""Maximum size of the global buffers of a remote file that are read at once, in bytes."""


class SegmentFile:
    """An open file of a segment. Safe to use from several threads.

    Attributes:
        path: Path of the file, for messages.
        num_rows: Number of rows of the file.
        schema: Columns of the file.
    """

    def __init__(self, file: LanceFile) -> None:
        descriptor = file.descriptor.schema
        self._file = file
        self._schema: Schema = schema_from_proto(descriptor.fields, descriptor.metadata)
        self._places = physical_columns(self._schema.fields, file.version)
        self._readers: dict[str, ColumnReader] = {}
        self._ahead: dict[int, Bytes] = {}
        self.path = file.source.path
        self.num_rows = file.num_rows
        self.schema: pa.Schema = self._schema.arrow

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the file's schema."""
        return dict(self._schema.metadata)

    def column(self, name: str, type_: pa.DataType | None = None) -> ColumnReader:
        """Return the reader of a column. It is opened once; `run` executes its reads.

        Args:
            name: Name of a top-level column.
            type_: Required type. By default, every type is accepted.

        Raises:
            CorruptError: The column does not exist, or does not have the required type.
        """
        reader = self._readers.get(name)
        if reader is None:
            field = next((f for f in self._schema.fields if f.name == name), None)
            if field is None:
                raise CorruptError(
                    f"column {name!r} is missing", where=self.path, found=", ".join(self._schema.arrow.names)
                )
            reader = self._readers[name] = open_column(field, self._locate, self.num_rows)
        if type_ is not None and reader.arrow_type != type_:
            raise CorruptError(
                f"column {name!r} has the wrong type", where=self.path, expected=type_, found=reader.arrow_type
            )
        return reader

    @property
    def is_remote(self) -> bool:
        """Whether each read of the file is a request to an object store."""
        return self._file.source.remote

    def stored_bytes(self, name: str) -> int:
        """Return the stored size of a top-level column's pages, in bytes.

        Raises:
            CorruptError: The column does not exist.
        """
        self.column(name)
        fields = [field for field in self._schema.fields if field.name == name]
        size = 0
        while fields:
            field = fields.pop()
            fields += field.children
            place = self._places.get(field.id)
            pages = () if place is None else self._file.column(place).pages
            size += sum(page_size for page in pages for _, page_size in page.buffers)
        return size

    def read(self, names: Sequence[str], rows: Rows | None = None) -> list[pa.Array]:
        """Read columns together. `rows` is a slice or ascending row positions; all rows by default."""
        selection = slice(0, self.num_rows) if rows is None else rows
        return run(gather([self.column(name).read(selection) for name in names]))

    def read_few(self, names: Sequence[str], rows: NDArray[np.int64]) -> list[pa.Array]:
        """Read columns at a few ascending positions, at least one. Memory-mapped files are read without requests."""
        arrays = {} if is_watched() else {name: self.column(name).read_points(rows) for name in names}
        rest = [name for name in names if arrays.get(name) is None]
        if rest:
            arrays |= dict(zip(rest, self.read(rest, rows), strict=True))
        return [arrays[name] for name in names]

    def read_values(self, name: str, rows: NDArray[np.int64]) -> list[Bytes] | None:
        """Read single values of a binary column. Returns None if reading whole pages is faster.

        Args:
            name: Name of a top-level column of binary values.
            rows: Ascending row positions, at least one.
        """
        reader = self.column(name)
        return reader.read_values(rows) if isinstance(reader, NestedColumn) and not is_watched() else None

    def read_lists(
        self, name: str, rows: NDArray[np.int64]
    ) -> tuple[Bytes, NDArray[np.int64], NDArray[np.int64]] | None:
        """Read a few rows of a column of binary lists. Returns None if the file is in an object store.

        Args:
            name: Name of a top-level column.
            rows: Ascending row positions, at least one.

        Returns:
            The bytes of all values, the offsets of the values in them, and the offsets of the rows' lists among the
            values. Both kinds of offsets end with the total.
        """
        reader = self.column(name)
        return reader.read_lists(rows) if isinstance(reader, NestedColumn) and not is_watched() else None

    def global_buffer(self, index: int) -> bytes:
        """Return a global buffer.

        Raises:
            CorruptError: The buffer does not exist.
        """
        if not 0 < index < self._file.num_global_buffers:
            raise CorruptError(
                "the global buffer does not exist",
                where=self.path,
                expected=f"1 … {self._file.num_global_buffers - 1}",
                found=index,
            )
        if self._file.source.remote and not self._ahead:
            self._ahead = self._small_buffers()
        data = self._ahead.pop(index, None)
        return (run(self._file.global_buffer(index)) if data is None else data).tobytes()

    def _small_buffers(self) -> dict[int, Bytes]:
        """Read all global buffers except the descriptor in one round trip. Returns {} if they are large."""
        extents = self._file.global_extents[1:]
        if sum(size for _, size in extents) > BUFFERS_AHEAD_BYTES:
            return {}
        requests = [self._file.global_buffer(index) for index in range(1, self._file.num_global_buffers)]
        return dict(enumerate(run(gather(requests)), start=1))

    def _locate(self, field_id: int) -> tuple[LanceFile, int] | None:
        place = self._places.get(field_id)
        return None if place is None else (self._file, place)


class SegmentReader:
    """The files of an existing segment.

    Args:
        store: Root of the table, or the base path that contains the segment.
        directory: Directory of the segment below the root.
        sizes: Known file sizes by name, in bytes. A file whose size differs is corrupt.
    """

    def __init__(self, store: Store, directory: str, sizes: Mapping[str, int] | None = None) -> None:
        self._store = store
        self._sizes = dict(sizes or {})
        self._opened: dict[str, Future[SegmentFile]] = {}
        self._read: dict[str, Future[bytes | None]] = {}
        self.directory = directory

    def open(self, name: str) -> SegmentFile:
        """Open a file.

        Raises:
            NotFoundError: The file does not exist.
            CorruptError: The file is not a data file, or its size differs from the size in the manifest.
        """
        size = self._sizes.get(name) or None
        opened = self._opened.pop(name, None)
        if opened is not None:
            return opened.result()
        source = self._store.open(f"{self.directory}/{name}", size)
        return SegmentFile(run(open_file(source, checksums=self._store.checksums)))

    def peek(self, name: str) -> SegmentFile:
        """Open a file that `open` will return next. Raises the errors of `open`."""
        file = self.open(name)
        kept: Future[SegmentFile] = Future()
        kept.set_result(file)
        self._opened[name] = kept
        return file

    def open_ahead(self, names: Sequence[str], small: Sequence[str] = ()) -> None:
        """Open files concurrently before they are needed. Does nothing for local files.

        If a file cannot be opened, `open` raises the error later.

        Args:
            names: Data files.
            small: Files for `bytes_of`.
        """
        if local_path(self._store.uri) is None:
            listed = [name for name in small if name in self._sizes]
            with ThreadPoolExecutor(len(names) + len(listed), thread_name_prefix="lance_duck-open") as pool:
                futures = [pool.submit(self.open, name) for name in names]
                self._read |= {name: pool.submit(self._bytes_of, name) for name in listed}
            self._opened |= dict(zip(names, futures, strict=True))

    def names(self) -> set[str]:
        """Return the names of all files in the directory."""
        return set(self._store.names(self.directory))

    def source(self, name: str) -> ByteSource:
        """Open a file that is not a data file as a source of bytes. Raises NotFoundError."""
        return self._store.open(f"{self.directory}/{name}", self._sizes.get(name) or None)

    def bytes_of(self, name: str) -> bytes | None:
        """Return the bytes of an optional small file.

        Returns:
            The bytes, or None if the file is not listed, is missing or too large, or differs from the listed size.
        """
        read = self._read.pop(name, None)
        return self._bytes_of(name) if read is None else read.result()

    def _bytes_of(self, name: str) -> bytes | None:
        size = self._sizes.get(name, 0)
        if not 0 < size <= SMALL_FILE_BYTES:
            return None
        try:
            data = self._store.open(f"{self.directory}/{name}", size).read([(0, size)])[0].tobytes()
        except LanceDuckError:
            return None
        return data

    def size(self, name: str) -> int:
        """Return the size of a file in bytes. Raises NotFoundError."""
        return self._store.open(f"{self.directory}/{name}").size


class SegmentWriter:
    """The files of a segment that is being written. As a context manager, it removes them if the block fails.

    Attributes:
        uuid: Uuid of the segment.
        files: Name and size in bytes of each finished file.

    Args:
        store: Root of the table.
        version: Version of the data files, "2.0" or newer.
        uuid: Uuid of the segment. Random by default.
        folder: Subfolder of the segment's directory that holds the files.
    """

    def __init__(self, store: Store, version: str = "2.2", uuid: UUID | None = None, folder: str = "") -> None:
        self.uuid = uuid or uuid4()
        self.files: list[tuple[str, int]] = []
        self._store = store
        self._version = version
        self._folder = f"/{folder}" if folder else ""
        self._names: list[str] = []
        self._writers: list[writing.FileWriter] = []

    @property
    def directory(self) -> str:
        """The folder of the files, below the root of the table."""
        return f"{paths.index_directory(self.uuid)}{self._folder}"

    def create(self, name: str, schema: pa.Schema, *, page_bytes: int = PAGE_BYTES) -> writing.FileWriter:
        """Create a file. The caller finishes it with `add`."""
        path = f"{self.directory}/{name}"
        columns = schema_from_arrow(schema, version=self._version)
        self._names.append(path)
        writer = writing.FileWriter(
            self._store.create(path), columns, self._version, page_bytes=page_bytes, checksums=self._store.checksums
        )
        self._writers.append(writer)
        return writer

    def add(self, name: str, writer: writing.FileWriter) -> None:
        """Finish a file, and add it to `files`."""
        self.files.append((name, writer.finish().size))

    def put(self, name: str, data: bytes) -> None:
        """Write a small file that is not a data file, and add it to `files`."""
        path = f"{self.directory}/{name}"
        self._names.append(path)
        self._store.put(path, data)
        self.files.append((name, len(data)))

    def discard(self) -> None:
        """Remove the files, finished or not. Never raises."""
        for writer in self._writers:
            writer.abort()
        with suppress(Exception):  # cleanup removes remaining files
            self._store.delete(self._names)

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
