"""Writes data files. `file.reader` describes the layout of the container.

pages, blob bytes           in writing order, each buffer at a multiple of 64
global buffers              added buffers, from 1 upwards
checksums                   see `checksums.container`
global buffer 0             FileDescriptor
column metadata, its table, table of global buffers, footer
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from os import cpu_count
from types import MappingProxyType, TracebackType
from typing import Final

import pyarrow as pa

from lance_duck import interrupts
from lance_duck.checksums.digests import StreamDigests, digests
from lance_duck.checksums.sidecars import sidecar_block
from lance_duck.encoding.arrow.dictionary_union import DictionaryUnion, has_narrow_dictionary
from lance_duck.encoding.layouts.page import Extent
from lance_duck.encoding.write.costs import FEW_VALUES
from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.errors import InternalError, InvalidInputError, UnsupportedError
from lance_duck.file.costs import HELD_BYTES, PAGE_BYTES, ROUND_BYTES
from lance_duck.file.physical import physical_columns
from lance_duck.file.write.blob_options import BlobOptions
from lance_duck.file.write.column import open_v21_column
from lance_duck.file.write.column20 import open_v20_column
from lance_duck.file.write.contract import ColumnWriter, Pages, num_bytes
from lance_duck.file.write.encoder_pool import Encoded, Lane, Lanes, all_done
from lance_duck.file.write.few_rows import flat_columns
from lance_duck.file.write.tail import ColumnTail, Contents, WrittenBuffers, write_tail
from lance_duck.forks import Lock
from lance_duck.store import Buffer, Sink
from lance_duck.wire.schema import Schema

ALIGNMENT: Final = 64
VERSIONS: Final = MappingProxyType({"2.0": (2, 0), "2.1": (2, 1), "2.2": (2, 2)})

_ZEROS: Final = bytes(ALIGNMENT)
_PROCESSORS: Final = cpu_count() or 1


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """The properties of a finished file that a manifest stores.

    Attributes:
        num_rows: Number of rows.
        size: Number of bytes.
        version: (major, minor), as stored in manifests.
        fields: Ids of the fields that have a column, depth first.
        column_indices: Column of each of these fields.
    """

    num_rows: int
    size: int
    version: tuple[int, int]
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]


class FileWriter:
    """Writes one data file, page by page. Memory use does not grow with the file.

    Only one thread at a time may use the writer. It encodes columns in several threads. As a context manager, it
    discards the file if the block fails. The caller must call `finish`.

    Args:
        sink: Sink of the file; closed by `finish`, aborted by `abort`.
        schema: The columns.
        version: "2.0", "2.1" or "2.2".
        page_bytes: Approximate number of bytes of values in a page.
        open_sidecar: Creates a sidecar file for a blob id. None if the file cannot have sidecars.
        blobs: Options for blobs.
        threads: Number of encoder threads. By default one per processor.
        checksums: Whether to write checksums.

    Raises:
        InvalidInputError: The version is unknown.
        UnsupportedError: The version does not support a column.
    """

    def __init__(
        self,
        sink: Sink,
        schema: Schema,
        version: str = "2.2",
        *,
        page_bytes: int = PAGE_BYTES,
        open_sidecar: Callable[[int], Sink] | None = None,
        blobs: BlobOptions | None = None,
        threads: int | None = None,
        checksums: bool = True,
    ) -> None:
        if version not in VERSIONS:
            raise InvalidInputError("unknown data file version", expected=", ".join(VERSIONS), found=repr(version))
        self._sink = sink
        self._schema = schema
        self._version = VERSIONS[version]
        self._space = _Space(sink, open_sidecar, blobs or BlobOptions(), WrittenBuffers() if checksums else None)
        self._metadata: dict[str, str] = {}
        self._global_buffers: list[Buffer] = []
        self._num_rows = 0
        self._page_bytes = page_bytes
        self._flat = None if version == "2.0" else flat_columns(schema, version)
        if self._flat is None:
            self._columns  # noqa: B018  raises for an unsupported column
        self._threads = _PROCESSORS if threads is None else threads
        self._lanes: Lanes | None = None
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._known_bytes = self._new_bytes = 0  # measured file size, bytes added since
        self._rounds: deque[_Round] = deque()
        is_narrow = any(has_narrow_dictionary(f.storage_type) for f in schema.fields)
        self._dictionaries = DictionaryUnion() if is_narrow else None

    @cached_property
    def _columns(self) -> list[_ColumnOutput]:
        version = ".".join(map(str, self._version))
        opener = open_v20_column if version == "2.0" else open_v21_column
        opened = [opener(f, version, self._space, self._page_bytes) for f in self._schema.fields]
        return [_ColumnOutput(w, [ColumnTail() for _ in range(w.num_columns)]) for w in opened]

    @property
    def num_rows(self) -> int:
        """Number of rows written so far."""
        return self._num_rows

    def tell(self) -> int:
        """Return the current size of the file, in bytes, including unencoded values that wait for full pages.

        The finished file will be about this large, or smaller.
        """
        return self._sink.position + self._pending_bytes + sum(later.size for later in self._rounds)

    def reaches(self, size: int) -> bool:
        """Return whether the file has at least `size` bytes, including values that wait for full pages.

        The result depends only on the rows. If necessary, the method waits for pending encoder threads.
        """
        if self._known_bytes + self._new_bytes < size:
            return False
        while self._rounds:
            self._collect()
        waiting = sum(column.writer.waiting_bytes for column in self._columns)
        self._known_bytes, self._new_bytes = self._sink.position + waiting + self._pending_bytes, 0
        return self._known_bytes >= size

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows.

        Args:
            batch: One array per column in schema order, in the column's storage type.

        Raises:
            ArrayLimitError: The file would have more dictionary entries than a column's indices can count. The batch is
                not written.
            StoreError: The disk or the service failed. After this the writer can only be aborted.
        """
        interrupts.check()
        if batch.num_columns != (count := len(self._schema.fields)):
            raise InternalError("the columns of the batch and the file differ", expected=count, found=batch.num_columns)
        if not batch.num_rows:
            return
        if self._dictionaries is not None:
            batch = self._dictionaries.add(batch)
        self._num_rows += batch.num_rows
        size = num_bytes(batch)
        self._new_bytes += size
        rows = max(1, batch.num_rows * ROUND_BYTES // max(size, ROUND_BYTES))
        for start in range(0, batch.num_rows, rows):
            self._pending.append(batch.slice(start, rows))
            self._pending_bytes += size * min(rows, batch.num_rows - start) // batch.num_rows
            if self._pending_bytes >= ROUND_BYTES:
                self._encode()

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Set an entry of the metadata in the file's descriptor."""
        self._metadata[key] = value

    def add_global_buffer(self, data: Buffer) -> int:
        """Add a buffer that belongs to the whole file, and return its index, from 1 upwards."""
        self._global_buffers.append(data)
        return len(self._global_buffers)

    def finish(self) -> WrittenFile:
        """Write all remaining rows and the tail, and publish the file.

        Raises:
            StoreError: The disk or the service failed. The file is removed.
        """
        try:
            tails = self._few_rows() or self._all_rows()
            schema = self._schema
            if self._metadata:
                schema = replace(schema, metadata={**schema.metadata, **self._metadata})
            contents = Contents(
                schema, self._version, tails, self._global_buffers, self._num_rows, self._space.append_sidecars()
            )
            write_tail(self._sink, self._space.append, contents, self._space.written)
            self._sink.close()
        except BaseException:
            self.abort()
            raise
        places = physical_columns(self._schema.fields, self._version)
        return WrittenFile(self._num_rows, self._sink.position, self._version, tuple(places), tuple(places.values()))

    def abort(self) -> None:
        """Discard the file. Never raises."""
        self._close_lanes()
        self._rounds.clear()
        self._space.abort()

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _few_rows(self) -> list[ColumnTail] | None:
        """Write the pages of a file with few rows. Returns None for other files."""
        is_new = self._flat is not None and "_columns" not in self.__dict__ and len(self._pending) == 1
        if not is_new or self._num_rows > FEW_VALUES or self._pending_bytes + 4 * FEW_VALUES >= self._page_bytes:
            return None
        tails = [ColumnTail() for _ in self._flat or ()]
        for tail, column, array in zip(tails, self._flat or (), self._pending[0].columns, strict=True):
            self._put(tail, column.pages(array))
        return tails

    def _all_rows(self) -> list[ColumnTail]:
        """Write all remaining pages, and return the metadata of all physical columns."""
        self._encode(last=True)
        while self._rounds:
            self._collect()
        self._close_lanes()
        return [tail for column in self._columns for tail in column.tails]

    def _encode(self, *, last: bool = False) -> None:
        """Pass the waiting batches to the columns, and write the pages that are ready."""
        batches, size = self._pending, self._pending_bytes
        self._pending, self._pending_bytes = [], 0
        works = [partial(_feed, c.writer, [b.column(i) for b in batches], last) for i, c in enumerate(self._columns)]
        if self._threads < 2 or (self._lanes is None and size < ROUND_BYTES):
            for column, work in zip(self._columns, works, strict=True):
                for index, page in work():
                    self._put(column.tails[index], (page,) if isinstance(page, EncodedPage) else page())
            return
        lanes = self._lanes = self._lanes or Lanes(self._threads)
        encoded = [lanes.submit(c.lane, work) for c, work in zip(self._columns, works, strict=True)]
        self._rounds.append(_Round(size, encoded))
        while sum(r.size for r in self._rounds) > HELD_BYTES or (self._rounds and all_done(self._rounds[0].encoded)):
            self._collect()

    def _collect(self) -> None:
        """Write the pages of the oldest round."""
        for column, future in zip(self._columns, self._rounds.popleft().encoded, strict=True):
            for index, pages in future.result():
                self._put(column.tails[index], pages.result())

    def _put(self, tail: ColumnTail, pages: Iterable[EncodedPage]) -> None:
        for page in pages:
            tail.add(page, [(self._space.append(buffer), len(buffer)) for buffer in page.buffers])

    def _close_lanes(self) -> None:
        if self._lanes is not None:
            self._lanes.close()
            self._lanes = None


@dataclass(frozen=True, slots=True)
class _Round:
    """A group of batches that are encoded together: their size in bytes, and the pages of each column."""

    size: int
    encoded: list[Future[Encoded]]


@dataclass(frozen=True, slots=True)
class _ColumnOutput:
    """A top-level field, and the metadata of its physical columns."""

    writer: ColumnWriter
    tails: list[ColumnTail]
    lane: Lane = field(default_factory=Lane)


class _Space:
    """See `Space`."""

    def __init__(
        self, sink: Sink, open_sidecar: Callable[[int], Sink] | None, blobs: BlobOptions, written: WrittenBuffers | None
    ) -> None:
        self.blobs = blobs
        self.written = written
        self._sink = sink
        self._open_sidecar = open_sidecar
        self._lock = Lock()
        self._sidecars: list[Sink] = []

    def append(self, data: Buffer) -> int:
        block_digests = digests(data) if self.written is not None else None
        with self._lock:
            gap = -self._sink.position % ALIGNMENT
            if gap:
                self._sink.write(_ZEROS[:gap])
            position = self._sink.position
            self._sink.write(data)
            if self.written is not None and block_digests is not None and len(block_digests):
                self.written.add(position, data, block_digests)
            return position

    def sidecar(self) -> tuple[int, Sink]:
        if self._open_sidecar is None:
            raise UnsupportedError(
                "the blob is too large for the data file", where=self._sink.path, remedy="write it to a table"
            )
        with self._lock:
            blob_id = len(self._sidecars) + 1
            sink = self._open_sidecar(blob_id)
            if self.written is not None:
                sink = _DigestedSink(sink)
            self._sidecars.append(sink)
            return blob_id, sink

    def append_sidecars(self) -> Extent | None:
        """Write the digests of the complete sidecars. Returns None if the file does not have sidecars."""
        sidecars = [
            (blob_id, sink.position, sink.digests.digests())
            for blob_id, sink in enumerate(self._sidecars, 1)
            if isinstance(sink, _DigestedSink)
        ]
        if not sidecars:
            return None
        block = sidecar_block(sidecars)
        return self.append(block), len(block)

    def abort(self) -> None:
        """Discard the file and all sidecars that are not closed."""
        for sink in (self._sink, *self._sidecars):
            sink.abort()


def _feed(writer: ColumnWriter, arrays: list[pa.Array], last: bool) -> Pages:
    pages = [page for array in arrays for page in writer.write(array)]
    return [*pages, *writer.finish()] if last else pages


class _DigestedSink(Sink):
    """Wraps a sink, and digests the bytes written to it.

    Args:
        sink: The wrapped sink.

    Attributes:
        digests: Digests of the bytes so far.
    """

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink.path)
        self.digests = StreamDigests()
        self._sink = sink

    def _write(self, data: memoryview) -> None:
        self.digests.update(data)
        self._sink.write(data)

    def _close(self) -> None:
        self._sink.close()

    def _abort(self) -> None:
        self._sink.abort()
