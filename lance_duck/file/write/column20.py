"""Writes columns of 2.0 files: one physical column for each field, parents first. `file.v20.columns` reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.encoding.layouts.page import EncodingDescription
from lance_duck.encoding.v20.write.array import encode_array, encode_ends, encode_json
from lance_duck.encoding.v20.write.binary import Compression
from lance_duck.encoding.v20.write.buffers import BuffersOut, valid_bytes
from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.errors import UnsupportedError
from lance_duck.file.costs import PAGE_BYTES
from lance_duck.file.physical import is_whole
from lance_duck.file.write.blobs import PlainBlobWriter
from lance_duck.file.write.contract import ColumnWriter, Pages, Space
from lance_duck.file.write.paging import Paging
from lance_duck.wire.pb import encodings20_pb2 as pb
from lance_duck.wire.schema import BLOB_V1_SCAN, Field

_VERSION: Final = (2, 0)
_PAGE_URL: Final = "/lance.encodings.ArrayEncoding"

Encode = Callable[[pa.Array, BuffersOut], pb.ArrayEncoding]


def open_v20_column(field: Field, version: str, space: Space, page_bytes: int = PAGE_BYTES) -> ColumnWriter:
    """Begin a top-level field of a 2.0 file.

    Raises:
        UnsupportedError: 2.0 files do not support the type.
    """
    return _Column20(field, space, page_bytes)


class _Column20:
    """See `ColumnWriter`."""

    def __init__(self, field: Field, space: Space, page_bytes: int) -> None:
        self._pages: Pages = []
        self._space = space
        self._page_bytes = page_bytes
        self._num_rows = 0
        self.num_columns = 0
        self._root = self._node(field, field.name)

    def write(self, array: pa.Array) -> Pages:
        self._root.write(array, self._num_rows)
        self._num_rows += len(array)
        return self._taken()

    @property
    def waiting_bytes(self) -> int:
        return self._root.waiting_bytes

    def finish(self) -> Pages:
        self._root.finish()
        return self._taken()

    def _taken(self) -> Pages:
        pages = self._pages[:]
        self._pages.clear()
        return pages

    def _node(self, field: Field, path: str) -> _V20FieldWriter:
        column = self.num_columns
        self.num_columns += 1
        if not is_whole(field, _VERSION):
            children = [self._node(child, f"{path}.{child.name}") for child in field.children]
            if field.logical_type == "struct":
                return _Structs(column, self._pages, children, path)
            if field.logical_type != "map":
                return _Lists(column, self._pages, children[0], self._page_bytes)
        if field.logical_type == "map":
            raise UnsupportedError(
                "data files of version 2.0 cannot store maps",
                where=f"column {path!r}",
                remedy="write with data_storage_version='2.2'",
            )
        if field.logical_type == "struct" and not field.children:
            return _Structs(column, self._pages, [], path)
        values = _Values(column, self._pages, _encoder(field, path), self._page_bytes, is_top=column == 0)
        return _Blobs(values, self._space) if field.blob_version else values


class _V20FieldWriter(Protocol):
    """A writer of a field and all fields below it. It appends full pages to a list."""

    @property
    def waiting_bytes(self) -> int:
        """Number of bytes of values that wait for a full page."""

    def write(self, array: pa.Array, first_row: int) -> None:
        """Add the values of the top-level rows that begin with `first_row`."""

    def finish(self) -> None:
        """Make pages of the remaining values."""


class _Values:
    """A column of values."""

    def __init__(self, column: int, pages: Pages, encode: Encode, page_bytes: int, *, is_top: bool) -> None:
        self._column, self._pages, self._encode = column, pages, encode
        self._paging = Paging(page_bytes, rows_are_top=is_top)
        self._any = False

    def write(self, array: pa.Array, first_row: int) -> None:
        for part, row in self._paging.add(_storage(array), first_row):
            self._put(part, row)

    @property
    def waiting_bytes(self) -> int:
        return self._paging.waiting_bytes

    def finish(self) -> None:
        for part, row in self._paging.rest():
            self._put(part, row)
        if not self._any:
            self._put(pa.nulls(0), 0)

    def _put(self, array: pa.Array, first_row: int) -> None:
        buffers = BuffersOut()
        encoding = self._encode(array, buffers)
        self._pages.append((self._column, _page(encoding, buffers, len(array), first_row)))
        self._any = True


class _Blobs:
    """A column of blobs, as (position, size) in the file. A null is (1, 0)."""

    def __init__(self, places: _Values, space: Space) -> None:
        self._places, self._space = places, space

    @property
    def waiting_bytes(self) -> int:
        return self._places.waiting_bytes

    def write(self, array: pa.Array, first_row: int) -> None:
        descriptors = PlainBlobWriter(self._space).describe(array)
        positions, sizes = (descriptors.field(i).to_numpy() for i in range(2))
        if descriptors.null_count:
            positions = np.where(np.asarray(descriptors.is_valid()), positions, np.uint64(1))
        places = [pa.array(positions), pa.array(sizes)]
        self._places.write(pa.StructArray.from_arrays(places, fields=list(BLOB_V1_SCAN)), first_row)

    def finish(self) -> None:
        self._places.finish()


class _Structs:
    """A struct column and the columns of its members. The struct column stores only the row count."""

    def __init__(self, column: int, pages: Pages, members: list[_V20FieldWriter], path: str) -> None:
        self._column, self._pages, self._members, self._path = column, pages, members, path
        self._count = 0

    @property
    def waiting_bytes(self) -> int:
        return sum(member.waiting_bytes for member in self._members)

    def write(self, array: pa.Array, first_row: int) -> None:
        array = _storage(array)
        if array.null_count:
            raise UnsupportedError(
                "data files of version 2.0 cannot store null structs",
                where=f"column {self._path!r}",
                found=f"{array.null_count} nulls",
                remedy="write with data_storage_version='2.1' or '2.2'",
            )
        self._count += len(array)
        for i, member in enumerate(self._members):
            member.write(array.field(i), first_row)

    def finish(self) -> None:
        encoding = pb.ArrayEncoding(struct=pb.SimpleStruct())
        self._pages.append((self._column, _page(encoding, BuffersOut(), self._count, 0)))
        for member in self._members:
            member.finish()


class _Lists:
    """A column of list end offsets, and the columns of the items."""

    def __init__(self, column: int, pages: Pages, items: _V20FieldWriter, page_bytes: int) -> None:
        self._column, self._pages, self._items = column, pages, items
        self._page_rows = max(1, page_bytes // 8)
        self._ends: list[np.ndarray] = []
        self._nulls: list[np.ndarray] = []
        self._num_rows = self._num_items = self._first_row = 0

    @property
    def waiting_bytes(self) -> int:
        return 8 * self._num_rows + self._items.waiting_bytes

    def write(self, array: pa.Array, first_row: int) -> None:
        array = _storage(array)
        for start in range(0, len(array), self._page_rows):
            self._take(array.slice(start, self._page_rows), first_row + start)

    def finish(self) -> None:
        self._cut()
        self._items.finish()

    def _take(self, array: pa.Array, first_row: int) -> None:
        if self._num_rows == 0:
            self._first_row = first_row
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        null = np.zeros(len(array), np.uint64)
        if array.null_count:
            null = 1 - valid_bytes(array).astype(np.uint64)
        self._ends.append(self._num_items + np.cumsum(lengths))
        self._nulls.append(null)
        self._num_rows += len(array)
        items = array.flatten()
        self._num_items += len(items)
        self._items.write(items, first_row)
        if self._num_rows >= self._page_rows:
            self._cut()

    def _cut(self) -> None:
        if self._num_rows == 0:
            return
        buffers = BuffersOut()
        encoding = encode_ends(np.concatenate(self._ends), np.concatenate(self._nulls), self._num_items, buffers)
        self._pages.append((self._column, _page(encoding, buffers, self._num_rows, self._first_row)))
        self._ends, self._nulls = [], []
        self._num_rows = self._num_items = 0


def _encoder(field: Field, path: str) -> Encode:
    where = f"column {path!r}"
    compression = Compression.from_metadata(field.metadata)
    if field.is_json:
        return lambda array, buffers: encode_json(array, buffers, compression, where)
    return lambda array, buffers: encode_array(array, buffers, compression, where)


def _page(encoding: pb.ArrayEncoding, buffers: BuffersOut, num_rows: int, first_row: int) -> EncodedPage:
    description = EncodingDescription(_PAGE_URL, encoding.SerializeToString())
    return EncodedPage(buffers.taken(), description, num_rows, first_row)


def _storage(array: pa.Array) -> pa.Array:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array
