"""Blob locations: the file and byte range of each blob, from the descriptions in its column.

Each description in a `lance.blob.v2` column is a packed struct:

    field    | type | meaning
    kind     | u8   | 0: in the data file, 1: packed in a sidecar, 2: a separate sidecar, 3: an external file,
             |      | 4: a file of the table that any data file may share
    position | u64  | first byte in that file
    size     | u64  | bytes; 0 with kind 3: from the position to the end of the file
    blob_id  | u32  | kinds 1 and 2: sidecar id; kinds 3 and 4: base path id, or 0 without a base path
    blob_uri | utf8 | kind 3: name below the base path, or URI; kind 4: path below the root of the data file

An older description has only position and size, always in the data file; (p > 0, 0) is a null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.encoding.block import VariableWidth
from lance_duck.errors import CorruptError, NotFoundError, UnsupportedError
from lance_duck.file.costs import OPEN_BLOB_FILES
from lance_duck.file.reader import LanceFile
from lance_duck.kernels.memory import Bytes
from lance_duck.store.request import ByteRange, ByteSource, Request

INLINE: Final = 0
PACKED: Final = 1
DEDICATED: Final = 2
EXTERNAL: Final = 3
MANAGED: Final = 4


class BlobLocation(Protocol):
    """A byte range in a file. The file is not opened before `extent` is called."""

    def extent(self) -> ByteRange:
        """Open the file, and return the range of the bytes in it.

        Raises:
            NotFoundError: The file does not exist.
            CorruptError: The range extends past the end of the file.
        """


@dataclass(frozen=True, slots=True)
class BlobPlace:
    """The location of one blob. The attributes after `file` repeat the blob's description."""

    file: LanceFile
    kind: int
    position: int
    stored_size: int
    blob_id: int = 0
    uri: str = ""

    @property
    def size(self) -> int | None:
        """Bytes of the blob.

        None if the blob extends to the end of a file, whose size is unknown until it is opened.
        """
        return None if self.kind == EXTERNAL and not self.stored_size else self.stored_size

    def extent(self) -> ByteRange:
        """See `BlobLocation.extent`."""
        if self.kind == MANAGED and not self.stored_size:
            return ByteRange(self.file.source, 0, 0)
        try:
            source = self._open()
            file_size = source.size
        except NotFoundError as error:
            if self.kind != EXTERNAL:
                raise
            raise NotFoundError(
                "the file of an external blob does not exist",
                where=error.where,
                remedy="restore the file, set the blob to NULL, or read its description without the bytes",
            ) from None
        size = file_size - self.position if self.size is None else self.size
        if size < 0 or (size and self.position + size > file_size):
            text = f"{self.stored_size} bytes at {self.position}"
            expected = f"within {file_size} bytes"
            raise CorruptError(
                "a blob reaches beyond the end of its file", where=source.path, expected=expected, found=text
            )
        return ByteRange(source, self.position if size else 0, size)

    def _open(self) -> ByteSource:
        if self.kind == INLINE:
            return self.file.source
        beside = self.file.beside
        if beside is None:
            raise UnsupportedError(
                "blobs in separate files need the whole table, not a single data file", where=self.file.source.path
            )
        if self.kind == EXTERNAL:
            return beside.external(self.blob_id, self.uri)
        if self.kind == MANAGED:
            return beside.managed(self.blob_id, self.uri)
        return beside.sidecar(self.blob_id)


def blob_places(descriptions: pa.StructArray, file: LanceFile) -> list[BlobPlace | None]:
    """Return the location of each blob, or None for a null. Files are not opened.

    Args:
        descriptions: Descriptions from a scan: (position, size), or with kind, blob_id and blob_uri.
        file: The data file that contains the descriptions.

    Raises:
        CorruptError: A description is invalid.
    """
    if len(descriptions) == 0:
        return []
    position, size = (descriptions.field(name).to_pylist() for name in ("position", "size"))
    valid = descriptions.is_valid().to_numpy(zero_copy_only=False)
    if descriptions.type.get_field_index("kind") < 0:
        rows = zip(valid.tolist(), position, size, strict=True)
        return [BlobPlace(file, INLINE, p, s) if v and (s or not p) else None for v, p, s in rows]
    kinds = descriptions.field("kind").to_numpy(zero_copy_only=False)
    _check_kinds(kinds[valid], file.source.path)
    ids = descriptions.field("blob_id").to_pylist()
    try:
        uris = descriptions.field("blob_uri").to_pylist()
    except UnicodeDecodeError as error:
        raise CorruptError("the blob URI is not UTF-8", where=file.source.path) from error
    entries = zip(valid.tolist(), kinds.tolist(), position, size, ids, uris, strict=True)
    return [BlobPlace(file, *place) if v else None for v, *place in entries]


def inline_extents(descriptions: pa.StructArray) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
    """Return the positions and sizes of blobs, uint64 each.

    Returns None if any blob is outside the data file.
    """
    kinds, positions, sizes = (
        descriptions.field(name).to_numpy(zero_copy_only=False) for name in ("kind", "position", "size")
    )
    if descriptions.null_count:
        valid = descriptions.is_valid().to_numpy(zero_copy_only=False)
        kinds, sizes = np.where(valid, kinds, INLINE), np.where(valid, sizes, np.uint64(0))
    return (positions, sizes) if not kinds.any() else None


def read_places(places: Sequence[BlobLocation | None]) -> Request[list[Bytes]]:
    """Read whole blobs. The result for None is empty. The number of open files is limited.

    Raises:
        NotFoundError: A blob's file is missing.
        CorruptError: A blob extends past the end of its file.
    """
    pieces: list[Bytes] = []
    at = 0
    while at < len(places):
        extents: list[ByteRange | None] = []
        opened: set[int] = set()
        while at < len(places) and len(opened) < OPEN_BLOB_FILES:
            place = places[at]
            extents.append(None if place is None else place.extent())
            if (extent := extents[-1]) is not None:
                opened.add(id(extent.source))
            at += 1
        data = iter((yield [extent for extent in extents if extent is not None and extent.size]))
        parts = [next(data) if extent is not None and extent.size else _NONE for extent in extents]
        # A view keeps its file open, so all blobs except the last group are copied.
        pieces += parts if at == len(places) else [part.copy() for part in parts]
    return pieces


def as_values(parts: Sequence[Bytes]) -> VariableWidth:
    """Concatenate blobs into the values of a column."""
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return VariableWidth(offsets, joined(parts, np.uint8))


def _check_kinds(kinds: np.ndarray, where: str) -> None:
    if (kinds > MANAGED).any():
        raise CorruptError("unknown blob kind", where=where, expected=f"<= {MANAGED}", found=int(kinds.max()))


_NONE: Final[Bytes] = np.empty(0, np.uint8)
