"""Writes blobs: their bytes, and their descriptions for a column. See `file.blobs.places`.

{data file}                 bytes of small blobs, before the page that describes them
{data file's stem}/…blob    one large blob, or many concatenated medium-sized blobs
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.encoding.arrow.blocks import validity_buffer
from lance_duck.encoding.write.blocks import valid_flags
from lance_duck.errors import InvalidInputError
from lance_duck.file.blobs.places import DEDICATED, EXTERNAL, INLINE, PACKED
from lance_duck.file.write.blob_options import BlobOptions, Thresholds
from lance_duck.file.write.contract import Space
from lance_duck.kernels.memory import Bytes
from lance_duck.store import Sink
from lance_duck.store.costs import COPY_BYTES
from lance_duck.wire.schema import BLOB_V1_SCAN, BLOB_V2_SCAN, Field

UInt64s = NDArray[np.uint64]

_NUM_MEMBERS: Final = 4
_NONE: Final = np.empty(0, np.uint8)


def append_values(array: pa.Array, space: Space) -> tuple[UInt64s, UInt64s]:
    """Write the values of a large binary array into the data file, one after the other.

    Returns:
        Position and size of each value, uint64; (0, 0) for a null or empty value.
    """
    offsets, data = _large_binary(array)
    sizes = np.diff(offsets)
    if array.null_count:
        sizes = np.where(np.asarray(array.is_valid()), sizes, 0)
    filled = sizes > 0
    if not filled.any():
        nothing = np.zeros(len(array), np.uint64)
        return nothing, nothing.copy()
    start, stop = int(offsets[0]), int(offsets[-1])
    base = space.append(data[start:stop])
    positions = np.where(filled, offsets[:-1] - start + base, 0)
    return positions.astype(np.uint64), sizes.astype(np.uint64)


class Blobs(Protocol):
    """A writer of one column's blobs, which returns their descriptions."""

    def describe(self, array: pa.Array) -> pa.StructArray:
        """Write blobs in their column's storage type. Returns their descriptions, with null for a null blob."""

    def close(self) -> None:
        """Finish the open sidecar, if any."""


def open_blobs(field: Field, space: Space, where: str) -> Blobs:
    """Return a writer of the blobs of a column.

    Args:
        field: The column, a blob.
        space: Space for the bytes.
        where: Name of the column, for messages.

    Raises:
        InvalidInputError: The metadata of the field is invalid.
    """
    return BlobWriter(field, space, where) if field.blob_version == 2 else PlainBlobWriter(space)


class PlainBlobWriter:
    """A writer of one binary column, which stores all blobs in the data file.

    Args:
        space: Space for the bytes.
    """

    def __init__(self, space: Space) -> None:
        self._space = space

    def describe(self, array: pa.Array) -> pa.StructArray:
        """Write blobs. Returns their positions and sizes, with (0, 0) for an empty blob."""
        positions, sizes = append_values(_binary(array), self._space)
        return _struct(BLOB_V1_SCAN, [pa.array(positions), pa.array(sizes)], array)

    def close(self) -> None:
        """Do nothing, because plain blobs do not use sidecars."""


class BlobWriter:
    """A writer of one `lance.blob.v2` column.

    Args:
        field: The column.
        space: Space for the bytes.
        where: Name of the column, for messages.

    Raises:
        InvalidInputError: The metadata of the field is invalid.
    """

    def __init__(self, field: Field, space: Space, where: str) -> None:
        self._space = space
        self._where = where
        self._options: BlobOptions = space.blobs
        self._thresholds = Thresholds.from_metadata(field.metadata, self._options.pack_file_bytes)
        self._pack: Sink | None = None
        self._pack_id = 0
        self._rows = 0

    def describe(self, array: pa.Array) -> pa.StructArray:
        """Write blobs. Returns their descriptions, with null for a null blob.

        Args:
            array: Structs with data (large_binary) or uri (string), exactly one of them not null. Ranges of external
                files also have position and size.

        Raises:
            InvalidInputError: A blob has both or neither of data and uri, or its URI is not allowed.
            UnsupportedError: A blob needs a sidecar, but this file cannot have sidecars.
            StoreError: The disk or the service failed.
            NotFoundError: An external file to be copied is missing.
        """
        while isinstance(array, pa.ExtensionArray):
            array = array.storage
        valid = np.asarray(array.is_valid())
        data, uris = _binary(array.field("data")), array.field("uri")
        is_external = np.asarray(uris.is_valid()) & valid
        self._check(valid, np.asarray(data.is_valid()), is_external)
        columns = _Columns(len(array))
        self._inline(data, valid & ~is_external, columns)
        self._external(array, np.flatnonzero(is_external), columns)
        self._rows += len(array)
        return _struct(BLOB_V2_SCAN, columns.arrays(), array)

    def close(self) -> None:
        """Finish the open shared sidecar, if any."""
        if self._pack is not None:
            self._pack.close()
            self._pack = None

    def _check(self, valid: NDArray[np.bool_], has_data: NDArray[np.bool_], is_external: NDArray[np.bool_]) -> None:
        wrong = valid & (has_data == is_external)
        if wrong.any():
            row = int(wrong.argmax())
            raise InvalidInputError(
                "a blob needs either data or a uri",
                where=f"{self._where}, row {self._rows + row}",
                expected="one of them",
                found="both" if has_data[row] else "neither",
            )

    def _inline(self, data: pa.LargeBinaryArray, has_data: NDArray[np.bool_], columns: _Columns) -> None:
        offsets, raw = _large_binary(data)
        sizes = np.where(has_data, np.diff(offsets), 0)
        small = sizes <= self._thresholds.inline
        large = np.flatnonzero(~small)
        for row in large.tolist():
            self._put(raw[offsets[row] : offsets[row + 1]], row, columns)
        inline = data if len(large) == 0 else data.filter(pa.array(small))
        columns.positions[small], columns.sizes[small] = append_values(inline, self._space)

    def _put(self, data: Bytes, row: int, columns: _Columns) -> None:
        """Write one blob to a sidecar."""
        sink = self._begin(len(data), row, columns)
        sink.write(data)
        self._end(sink)

    def _begin(self, size: int, row: int, columns: _Columns) -> Sink:
        """Choose the sidecar for a blob of `size` bytes, and return the sink for its bytes."""
        if size > self._thresholds.packed:
            columns.ids[row], sink = self._space.sidecar()
            columns.kinds[row], columns.sizes[row] = DEDICATED, size
            return sink
        if self._pack is not None and self._pack.position + size > self._thresholds.pack_file:
            self.close()
        if self._pack is None:
            self._pack_id, self._pack = self._space.sidecar()
        columns.kinds[row], columns.ids[row], columns.sizes[row] = PACKED, self._pack_id, size
        columns.positions[row] = self._pack.position
        return self._pack

    def _end(self, sink: Sink) -> None:
        if sink is not self._pack:
            sink.close()

    def _external(self, array: pa.StructArray, rows: NDArray[np.int64], columns: _Columns) -> None:
        if not len(rows):
            return
        uris = array.field("uri").take(pa.array(rows)).to_pylist()
        positions, sizes = self._parts(array, rows)
        if self._options.external_mode == "ingest":
            for uri, position, size, row in zip(uris, positions.tolist(), sizes.tolist(), rows.tolist(), strict=True):
                self._ingest(uri, position, size, row, columns)
            return
        places = [self._options.place(uri, self._where) for uri in uris]
        columns.kinds[rows], columns.positions[rows], columns.sizes[rows] = EXTERNAL, positions, sizes
        columns.ids[rows] = [base_id for base_id, _ in places]
        columns.uris = dict(zip(rows.tolist(), (name for _, name in places), strict=True))

    def _parts(self, array: pa.StructArray, rows: NDArray[np.int64]) -> tuple[UInt64s, UInt64s]:
        """Return position and size of the ranges in external files, or (0, 0) for a whole file."""
        if array.type.num_fields < _NUM_MEMBERS:
            return np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.uint64)
        position, size = (array.field(name).take(pa.array(rows)) for name in ("position", "size"))
        half = np.asarray(position.is_valid()) != np.asarray(size.is_valid())
        if half.any():
            raise InvalidInputError(
                "invalid byte range of an external blob",
                where=f"{self._where}, row {self._rows + int(rows[half.argmax()])}",
                expected="both position and size, or neither",
            )
        return position.fill_null(0).to_numpy(), size.fill_null(0).to_numpy()

    def _ingest(self, uri: str, position: int, size: int, row: int, columns: _Columns) -> None:
        """Copy a range of an external file. If `size` is 0, all bytes from `position` to the end are copied."""
        source = self._options.open(uri)
        size = size or max(0, source.size - position)
        if position + size > source.size:
            raise InvalidInputError(
                "invalid byte range of an external blob",
                where=uri,
                expected=f"within {source.size} bytes",
                found=f"{size} bytes at {position}",
            )
        if size <= self._thresholds.inline:
            data = source.read([(position, size)])[0] if size else _NONE
            columns.positions[row], columns.sizes[row] = self._space.append(data) if size else 0, size
            return
        sink = self._begin(size, row, columns)
        for start in range(position, position + size, COPY_BYTES):
            sink.write(source.read([(start, min(COPY_BYTES, position + size - start))])[0])
        self._end(sink)


class _Columns:
    """Descriptions under construction. Each starts as an empty blob in the data file."""

    def __init__(self, count: int) -> None:
        self.kinds = np.full(count, INLINE, np.uint8)
        self.positions = np.zeros(count, np.uint64)
        self.sizes = np.zeros(count, np.uint64)
        self.ids = np.zeros(count, np.uint32)
        self.uris: dict[int, str] = {}

    def arrays(self) -> list[pa.Array]:
        """Return the members of the descriptions."""
        count = len(self.kinds)
        uris = pa.repeat("", count)
        if self.uris:
            uris = pa.array([self.uris.get(row, "") for row in range(count)], pa.string())
        return [*map(pa.array, (self.kinds, self.positions, self.sizes, self.ids)), uris]


def _binary(array: pa.Array) -> pa.LargeBinaryArray:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array if pa.types.is_large_binary(array.type) else array.cast(pa.large_binary())


def _large_binary(array: pa.LargeBinaryArray) -> tuple[NDArray[np.int64], Bytes]:
    """Return the offsets and bytes of an array."""
    _, offsets, data = array.buffers()
    raw = _NONE if data is None else np.frombuffer(data, np.uint8)
    if offsets is None or len(array) == 0:
        return np.zeros(1, np.int64), raw
    return np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1], raw


def _struct(kind: pa.StructType, members: list[pa.Array], nulls: pa.Array) -> pa.StructArray:
    """Return structs with these members. A struct is null if `nulls` is null at the same index."""
    return pa.StructArray.from_buffers(kind, len(nulls), [validity_buffer(valid_flags(nulls))], children=members)
