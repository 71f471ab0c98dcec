"""Readers of the parts of a column of a 2.0 file; a list reads its ends, then the rows of its items."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.encoding.arrow import block_to_arrow, validity_buffer
from lance_duck.encoding.block import Bytes, VariableWidth
from lance_duck.encoding.v20.array import Array
from lance_duck.encoding.v20.buffers import PageBuffers
from lance_duck.encoding.v20.dictionary import DictionaryArray
from lance_duck.encoding.v20.ends import Ends, Ints
from lance_duck.encoding.v20.ends import Rows as EndRows
from lance_duck.encoding.v20.recent import Recent
from lance_duck.encoding.v20.registry import Context, array_from_proto, list_from_proto, parse_encoding
from lance_duck.encoding.v20.runs import Runs, merged
from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.file.metadata import ColumnMetadata
from lance_duck.store.request import ByteRange, ByteSource, Request, gather

DESCRIPTORS = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
"""Where the bytes of a blob lie in the file."""

MAX_ROWS = 2**62


class Node(Protocol):
    """A field with all below it."""

    @property
    def num_rows(self) -> int | None:
        """Rows, None when any row can be read (as null)."""

    @property
    def is_dictionary(self) -> bool:
        """Whether all pages hold distinct values and indices."""

    def read(self, runs: Runs) -> Request[pa.Array]:
        """Read runs of rows, which the caller has checked against num_rows."""


@dataclass(frozen=True, slots=True)
class ValuePage:
    """Rows start:stop of a column."""

    start: int
    stop: int
    values: Array


@dataclass(frozen=True, slots=True)
class ListPage:
    """Lists start:stop of a column, whose items begin at row `first_item` of the item's column."""

    start: int
    stop: int
    first_item: int
    ends: Ends


def value_pages(column: ColumnMetadata, arrow_type: pa.DataType) -> tuple[ValuePage, ...]:
    """Pages of a column of values of `arrow_type`; empty ones are left out."""
    recent = Recent()
    pages: list[ValuePage] = []
    at = 0
    for page in column.pages:
        buffers = PageBuffers(page, column.buffers, recent)
        if page.num_rows > MAX_ROWS - at:
            raise buffers.corrupt("rows of a page", found=page.num_rows)
        if page.num_rows:
            context = Context(buffers, page.num_rows, arrow_type)
            array = array_from_proto(parse_encoding(page.encoding, buffers), context)
            pages.append(ValuePage(at, at + page.num_rows, array))
        at += page.num_rows
    return tuple(pages)


def list_pages(column: ColumnMetadata) -> tuple[ListPage, ...]:
    """Pages of the ends of lists; empty ones are left out."""
    recent = Recent()
    pages: list[ListPage] = []
    at = first_item = 0
    for page in column.pages:
        buffers = PageBuffers(page, column.buffers, recent)
        if page.num_rows > MAX_ROWS - at:
            raise buffers.corrupt("rows of a page", found=page.num_rows)
        if page.num_rows:
            context = Context(buffers, page.num_rows, pa.uint64())
            ends = list_from_proto(parse_encoding(page.encoding, buffers), context)
            pages.append(ListPage(at, at + page.num_rows, first_item, ends))
            first_item += ends.limit
        at += page.num_rows
    if first_item > MAX_ROWS:
        raise CorruptError("items of a list column", expected=f"at most {MAX_ROWS}", found=first_item)
    return tuple(pages)


@dataclass(frozen=True, slots=True)
class LeafNode:
    """Values, in pages."""

    arrow_type: pa.DataType
    pages: tuple[ValuePage, ...]
    where: str

    @property
    def num_rows(self) -> int:
        """Rows of all pages."""
        return self.pages[-1].stop if self.pages else 0

    @property
    def is_dictionary(self) -> bool:
        """Whether all pages hold distinct values and indices."""
        return bool(self.pages) and all(isinstance(page.values, DictionaryArray) for page in self.pages)

    def read(self, runs: Runs) -> Request[pa.Array]:
        """Values of the rows."""
        parts = [(page, runs.clipped(page.start, page.stop)) for page in self.pages]
        parts = [(page, part) for page, part in parts if len(part.starts)]
        found = yield from gather([page.values.read(part) for page, part in parts])
        storage = storage_type(self.arrow_type)
        arrays = [
            pa.nulls(values.count, storage)
            if values.block is None
            else block_to_arrow(values.block, storage, values.validity, self.where)
            for values in found
        ]
        return wrapped(_joined(arrays, storage), self.arrow_type)


@dataclass(frozen=True, slots=True)
class MissingNode:
    """A field that the file does not have: nulls."""

    arrow_type: pa.DataType

    @property
    def num_rows(self) -> None:
        """As many as one likes."""
        return None

    @property
    def is_dictionary(self) -> bool:
        """No."""
        return False

    def read(self, runs: Runs) -> Request[pa.Array]:
        """Nulls."""
        yield from ()
        return pa.nulls(runs.count, self.arrow_type)


@dataclass(frozen=True, slots=True)
class StructNode:
    """Structs, none of them null."""

    arrow_type: pa.DataType
    children: tuple[Node, ...]
    num_rows: int | None

    @property
    def is_dictionary(self) -> bool:
        """No."""
        return False

    def read(self, runs: Runs) -> Request[pa.Array]:
        """Structs of what the children give."""
        children = yield from gather([child.read(runs) for child in self.children])
        storage = storage_type(self.arrow_type)
        return wrapped(pa.Array.from_buffers(storage, runs.count, [None], children=children), self.arrow_type)


@dataclass(frozen=True, slots=True)
class ListNode:
    """Lists: their ends, in pages, and the node of their items."""

    arrow_type: pa.DataType
    pages: tuple[ListPage, ...]
    items: Node
    where: str

    @property
    def num_rows(self) -> int:
        """Lists of all pages."""
        return self.pages[-1].stop if self.pages else 0

    @property
    def is_dictionary(self) -> bool:
        """No."""
        return False

    def read(self, runs: Runs) -> Request[pa.Array]:
        """Lists of the rows: first their ends, then the rows of the items between."""
        rows = yield from read_ends(self.pages, runs)
        items = yield from self.items.read(merged(rows.item_starts, rows.item_stops))
        storage = storage_type(self.arrow_type)
        offsets = pa.py_buffer(list_offsets(rows.offsets, storage, self.where))
        array = pa.Array.from_buffers(storage, runs.count, [validity_buffer(rows.validity), offsets], children=[items])
        return wrapped(array, self.arrow_type)


@dataclass(frozen=True, slots=True)
class TextNode:
    """Strings that are stored as lists of bytes."""

    arrow_type: pa.DataType
    pages: tuple[ListPage, ...]
    items: LeafNode
    where: str

    @property
    def num_rows(self) -> int:
        """Strings of all pages."""
        return self.pages[-1].stop if self.pages else 0

    @property
    def is_dictionary(self) -> bool:
        """No."""
        return False

    def read(self, runs: Runs) -> Request[pa.Array]:
        """Strings of the rows."""
        rows = yield from read_ends(self.pages, runs)
        items = yield from self.items.read(merged(rows.item_starts, rows.item_stops))
        data = np.frombuffer(items.buffers()[1] or b"", np.uint8, len(items), items.offset)
        block = VariableWidth(rows.offsets, data)
        return wrapped(block_to_arrow(block, storage_type(self.arrow_type), rows.validity, self.where), self.arrow_type)


@dataclass(frozen=True, slots=True)
class BlobNode:
    """Byte strings that lie elsewhere in the file."""

    arrow_type: pa.DataType
    descriptors: LeafNode
    source: ByteSource
    where: str

    @property
    def num_rows(self) -> int:
        """Rows of the descriptors."""
        return self.descriptors.num_rows

    @property
    def is_dictionary(self) -> bool:
        """No."""
        return False

    def read(self, runs: Runs) -> Request[pa.Array]:
        """The bytes of the rows."""
        found = yield from self.descriptors.read(runs)
        positions, sizes = (found.field(i).to_numpy() for i in range(2))
        end = np.uint64(self.source.size)
        filled = sizes > 0
        if (positions[filled] > end).any() or (sizes[filled] > end - positions[filled]).any():
            raise CorruptError("blob beyond the end of the file", where=self.where, expected=f"within {end} bytes")
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        if int(offsets[-1]) > self.source.size:
            raise CorruptError("blobs overlap", where=self.where, expected=f"within {end} bytes", found=offsets[-1])
        extents = zip(positions[filled].tolist(), sizes[filled].tolist(), strict=True)
        parts = yield [ByteRange(self.source, position, size) for position, size in extents]
        data = np.concatenate(parts) if parts else np.empty(0, np.uint8)
        valid = filled | (positions != 1)
        block = VariableWidth(offsets, data)
        array = block_to_arrow(block, storage_type(self.arrow_type), None if valid.all() else valid, self.where)
        return wrapped(array, self.arrow_type)


def read_ends(pages: tuple[ListPage, ...], runs: Runs) -> Request[EndRows]:
    """Rows of variable length of several pages; items are counted over all pages."""
    parts = [(page, runs.clipped(page.start, page.stop)) for page in pages]
    parts = [(page, part) for page, part in parts if len(part.starts)]
    found = yield from gather([page.ends.read(part) for page, part in parts])
    if not found:
        return EndRows(np.zeros(1, np.int64), None, np.empty(0, np.int64), np.empty(0, np.int64))
    bases = accumulate((int(rows.offsets[-1]) for rows in found), initial=0)
    offsets = [rows.offsets[1:] + base for rows, base in zip(found, bases, strict=False)]
    validity: Bytes | None = None
    if any(rows.validity is not None for rows in found):
        validity = np.concatenate([_flags(rows) for rows in found])
    return EndRows(
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        validity,
        np.concatenate([rows.item_starts + page.first_item for rows, (page, _) in zip(found, parts, strict=True)]),
        np.concatenate([rows.item_stops + page.first_item for rows, (page, _) in zip(found, parts, strict=True)]),
    )


def _flags(rows: EndRows) -> Bytes:
    return np.ones(len(rows.offsets) - 1, np.uint8) if rows.validity is None else rows.validity


def list_offsets(offsets: Ints, storage: pa.DataType, where: str) -> NDArray[np.int32] | Ints:
    """Offsets of the width that the Arrow type has.

    Raises:
        InvalidInputError: More items than 32 bits can count.
    """
    if pa.types.is_large_list(storage):
        return offsets
    if int(offsets[-1]) > np.iinfo(np.int32).max:
        raise InvalidInputError(
            "too many items for 32-bit offsets", where=where, found=int(offsets[-1]), remedy="read fewer rows at once"
        )
    return offsets.astype(np.int32)


def storage_type(arrow_type: pa.DataType) -> pa.DataType:
    """Type that an extension type is stored as; other types are their own."""
    while isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    return arrow_type


def wrapped(values: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Values of a storage type as its extension type."""
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow_type, wrapped(values, arrow_type.storage_type))
    return values


def _joined(arrays: list[pa.Array], storage: pa.DataType) -> pa.Array:
    if not arrays:
        return pa.nulls(0, storage)
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
