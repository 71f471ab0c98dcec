"""Writes 0.1 data files; `file.v01.container` describes the layout.

The writer does not store batch statistics, with which readers could skip batches.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, MutableMapping
from itertools import chain, repeat
from types import TracebackType
from typing import Final

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import MAX_INT32
from lance_duck.errors import InternalError, UnsupportedError
from lance_duck.file.v01.container import FOOTER
from lance_duck.file.v01.pages_out import Pages
from lance_duck.file.write.contract import num_bytes
from lance_duck.file.write.writer import WrittenFile
from lance_duck.store import Sink
from lance_duck.wire.files.dictionaries import check_values, values_page
from lance_duck.wire.pb import file_pb2, table_pb2
from lance_duck.wire.schema import Field, Schema
from lance_duck.wire.schema_write import metadata_to_proto, schema_to_proto

ROWS_PER_GROUP: Final = 1024
"""Default rows per batch, as in pylance."""

FILE_VERSION: Final = (0, 2)
"""Version in manifests and footers."""

MOST_SPARE_IDS: Final = 4096
"""Maximum number of unused field ids between the lowest and the highest id of a file. The limit stops malicious schemas
from filling disks: each id takes 16 bytes of the page table per batch.
"""

_MAGIC: Final = b"LANC"
_LENGTH: Final = struct.Struct("<I")


class LegacyFileWriter:
    """A writer of one 0.1 data file, with the interface of `FileWriter`. It writes batch by batch.

    Args:
        sink: Sink of the bytes; closed by `finish`, aborted by `abort`.
        schema: Schema of the columns. `schema_from_arrow` has already checked the types.
        rows_per_group: Rows of each batch after the first ones in `batch_rows`.
        batch_rows: Row counts of the first batches.
        dictionaries: Dictionary values by field id, shared by all files of the table. Missing dictionaries are built
            from the first rows and added to this mapping.

    Raises:
        UnsupportedError: The field ids are too far apart.
    """

    def __init__(
        self,
        sink: Sink,
        schema: Schema,
        *,
        rows_per_group: int = ROWS_PER_GROUP,
        batch_rows: Iterable[int] = (),
        dictionaries: MutableMapping[int, pa.Array] | None = None,
    ) -> None:
        self._sink = sink
        self._schema = schema
        self._group_rows = chain((rows for rows in batch_rows if rows), repeat(rows_per_group))
        self._rows_of_group = next(self._group_rows)
        self._dictionaries = {} if dictionaries is None else dictionaries
        for f in schema.walk():
            if f.is_dictionary:
                check_values(f.storage_type.value_type, f"column {f.name!r}")
                if f.dictionary is not None:
                    self._dictionaries.setdefault(f.id, f.dictionary)
        self._pages: dict[int, array[int]] = {f.id: array("q") for f in schema.walk()}
        spare = max(self._pages) - min(self._pages) + 1 - len(self._pages)
        if spare > MOST_SPARE_IDS:
            raise UnsupportedError(
                "the field ids are too far apart for a data file of version 0.1",
                where=sink.path,
                expected=f"at most {MOST_SPARE_IDS} unused ids in between",
                found=spare,
                remedy="write data_storage_version='2.2'",
            )
        self._bounds = [0]
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self._metadata: dict[str, str] = {}

    @property
    def num_rows(self) -> int:
        """Number of rows written so far."""
        return self._bounds[-1] + self._pending_rows

    def tell(self) -> int:
        """Return the current size of the file, in bytes, including buffered rows of an incomplete batch."""
        return self._sink.position + self._pending_bytes

    def reaches(self, size: int) -> bool:
        """Return whether the file has approximately `size` bytes or more."""
        return self.tell() >= size

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows: one array per column in schema order, in the column's storage type.

        Raises:
            UnsupportedError: A value cannot be stored in this version.
            StoreError: The disk or the service failed. After this the writer can only be aborted.
        """
        if batch.num_columns != len(self._schema.fields):
            raise InternalError(
                "the columns of the batch and the file differ",
                expected=len(self._schema.fields),
                found=batch.num_columns,
            )
        start = 0
        while start < batch.num_rows:
            piece = batch.slice(start, self._rows_of_group - self._pending_rows)
            self._pending.append(piece)
            self._pending_rows += piece.num_rows
            self._pending_bytes += num_bytes(piece)
            start += piece.num_rows
            if self._pending_rows == self._rows_of_group:
                self._write_group()
                self._rows_of_group = next(self._group_rows)

    def add_schema_metadata(self, key: str, value: str) -> None:
        """Set an entry of the file's schema metadata."""
        self._metadata[key] = value

    def finish(self) -> WrittenFile:
        """Write the remaining pages and the metadata, and publish the file.

        Raises:
            UnsupportedError: A value cannot be stored in this version. The file is removed.
            StoreError: The disk or the service failed. The file is removed.
        """
        try:
            self._write_group()
            self._write_tail()
            self._sink.close()
        except BaseException:
            self.abort()
            raise
        # Older readers expect the first of these ids to be the lowest, because the page table begins with it.
        return WrittenFile(self.num_rows, self._sink.position, FILE_VERSION, tuple(sorted(self._pages)), ())

    def abort(self) -> None:
        """Remove the file. Never raises."""
        self._pending.clear()
        self._sink.abort()

    def __enter__(self) -> LegacyFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _write_group(self) -> None:
        """Write the pending rows as one batch."""
        if not self._pending_rows:
            return
        if self.num_rows > MAX_INT32:
            raise UnsupportedError(
                "a data file of version 0.1 cannot store this many rows",
                where=self._sink.path,
                expected=f"at most {MAX_INT32}",
                found=self.num_rows,
            )
        pages = Pages(self._sink.position, self._dictionaries)
        for i, f in enumerate(self._schema.fields):
            pages.add(f, [batch.column(i) for batch in self._pending], f.name)
        for buffer in pages.buffers:
            self._sink.write(buffer)
        for field_id, position, length in pages.entries:
            self._pages[field_id].extend((position, length))
        for f in self._schema.walk():
            if f.logical_type == "struct":
                self._pages[f.id].extend((0, 0))
        self._bounds.append(self.num_rows)
        self._pending.clear()
        self._pending_rows = self._pending_bytes = 0

    def _write_tail(self) -> None:
        table = self._sink.position
        low, high = min(self._pages), max(self._pages)
        none = array("q", bytes(16 * (len(self._bounds) - 1)))
        for field_id in range(low, high + 1):
            self._sink.write(np.array(self._pages.get(field_id, none), "<i8"))
        fields = {proto.id: proto for proto in schema_to_proto(self._schema)}
        for f in self._schema.walk():
            if f.is_dictionary:
                self._write_dictionary(f, fields[f.id])
        manifest = table_pb2.Manifest(fields=fields.values(), version=1)
        for key, value in metadata_to_proto({**self._schema.metadata, **self._metadata}).items():
            manifest.schema_metadata[key] = value
        manifest.data_format.file_format, manifest.data_format.version = "lance", "0.1"
        place = self._write_message(manifest.SerializeToString())
        metadata = file_pb2.Metadata(manifest_position=place, batch_offsets=self._bounds, page_table_position=table)
        self._sink.write(FOOTER.pack(self._write_message(metadata.SerializeToString()), *FILE_VERSION, _MAGIC))

    def _write_dictionary(self, f: Field, proto: file_pb2.Field) -> None:
        values = self._dictionaries.get(f.id)
        if values is None:
            values = pa.array([], f.storage_type.value_type)
        data, proto.dictionary.offset = values_page(values, self._sink.position)
        proto.dictionary.length = len(values)
        self._sink.write(data)

    def _write_message(self, data: bytes) -> int:
        position = self._sink.position
        self._sink.write(_LENGTH.pack(len(data)) + data)
        return position
