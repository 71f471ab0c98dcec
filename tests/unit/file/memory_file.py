"""Data files in memory: written and read back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_duck.file.column import open_column
from lance_duck.file.reader import LanceFile, open_file
from lance_duck.file.write.blob_options import BlobOptions
from lance_duck.file.write.writer import FileWriter
from lance_duck.store import Sink
from lance_duck.store.request import Bytes, run
from lance_duck.wire.schema import Schema
from lance_duck.wire.schema_write import schema_from_arrow


class MemorySink(Sink):
    """A file in memory; `data` once it is closed."""

    def __init__(self, path: str = "memory.lance") -> None:
        super().__init__(path)
        self.data: bytes | None = None
        self.aborted = False
        self._parts: list[bytes] = []

    def _write(self, data: memoryview) -> None:
        self._parts.append(bytes(data))

    def _close(self) -> None:
        self.data = b"".join(self._parts)

    def _abort(self) -> None:
        self.aborted = True


class MemorySource:
    """Bytes as a `ByteSource`."""

    remote = False

    def __init__(self, data: bytes, path: str = "memory.lance") -> None:
        self.data, self.path, self.size = data, path, len(data)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        return [np.frombuffer(self.data, np.uint8)[offset : offset + size] for offset, size in ranges]


class WrittenTable:
    """A table in one in-memory file.

    Attributes:
        schema: File schema.
        file: The opened file.
        sidecars: Sidecar files by blob id.
    """

    def __init__(
        self,
        table: pa.Table,
        version: str,
        page_bytes: int = 8 << 20,
        batch: int | None = None,
        blobs: BlobOptions | None = None,
    ) -> None:
        self.schema: Schema = schema_from_arrow(table.schema, version)
        self.sidecars: dict[int, MemorySink] = {}
        sink = MemorySink()
        with FileWriter(
            sink, self.schema, version, page_bytes=page_bytes, open_sidecar=self._sidecar, blobs=blobs
        ) as writer:
            for part in table.to_batches(batch):
                writer.write(part)
            self.written = writer.finish()
        assert sink.data is not None
        self.file: LanceFile = run(open_file(MemorySource(sink.data)))

    def _sidecar(self, blob_id: int) -> Sink:
        return self.sidecars.setdefault(blob_id, MemorySink(f"{blob_id}.blob"))

    def column(self, name: str, rows: slice | np.ndarray | None = None) -> pa.Array:
        """A column as a scan gives it."""
        places = dict(zip(self.written.fields, self.written.column_indices, strict=True))
        reader = open_column(
            self.schema.by_path(name),
            lambda field: (self.file, places[field]) if field in places else None,
            self.file.num_rows,
        )
        return run(reader.read(slice(0, self.file.num_rows) if rows is None else rows))
