"""Writes one physical column: collects rows until they fill a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import has_offsets
from lance_duck.encoding.block import FixedWidth, VariableWidth
from lance_duck.encoding.write.blocks import array_to_block
from lance_duck.encoding.write.codecs.dictionary import expected_distinct, sample_places
from lance_duck.encoding.write.layouts.blob import encode_blobs
from lance_duck.encoding.write.layouts.leaf import LeafRows, encode_leaf
from lance_duck.encoding.write.layouts.levels import FLAT, LeafShape
from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.encoding.write.shred import Outline, unfold_items
from lance_duck.errors import UnsupportedError
from lance_duck.file.costs import GROWN_PAGE_BYTES, PAGE_BYTES
from lance_duck.file.write.blobs import open_blobs
from lance_duck.file.write.contract import Deferred, Space
from lance_duck.file.write.pending_rows import PendingRows, join_pending_rows, values_bytes
from lance_duck.file.write.stored import stored_array, stored_type
from lance_duck.wire.schema import Field

_NOTHING = np.empty(0, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of a column.

    Attributes:
        is_list: Whether it is a variable-size list.
        nullable: Whether the schema allows nulls in it.
        dimension: Number of inner slots per slot of this layer: 1 except for fixed-size lists.
    """

    is_list: bool
    nullable: bool
    dimension: int = 1


class LeafWriter:
    """A writer of a physical column, which collects rows into pages.

    Args:
        field: Field of the column.
        layers: The layer of the values and all enclosing layers, innermost first.
        choice: Encoding options of the field.
        space: Space for the bytes of blobs.
        page_bytes: Page size, in bytes.
        where: Name of the column, for messages.
    """

    def __init__(
        self,
        field: Field,
        layers: tuple[Layer, ...],
        choice: EncodingOptions,
        space: Space,
        page_bytes: int,
        where: str,
    ) -> None:
        self.field = field
        self._blobs = open_blobs(field, space, where) if field.blob_version else None
        self._is_empty = field.logical_type == "struct" and not field.children
        lists, nullable = (tuple(flags) for flags in zip(*((a.is_list, a.nullable) for a in layers), strict=True))
        shape = LeafShape.of(
            lists,
            nullable,
            in_fixed=any(layer.dimension != 1 for layer in layers),
            has_dense_nulls=choice.grammar.has_dense_nulls,
        )
        self._shape = FLAT if self._is_empty else shape
        self._stride = prod(layer.dimension for layer in layers)
        if self._stride == 0:
            raise UnsupportedError("fixed-size lists of zero structs are not supported", where=where)
        self._choice = choice
        self._page_bytes = self._limit = page_bytes
        self._most = GROWN_PAGE_BYTES if page_bytes >= PAGE_BYTES else page_bytes
        self._where = where
        self._type = stored_type(field)
        self._parts: list[PendingRows] = []
        self._size = 0
        self._first_row = 0

    def add(self, array: pa.Array, outline: Outline, num_rows: int) -> None:
        """Add rows: an array of slots, and the entries of the enclosing layers."""
        values = self._stored(array)
        inside = unfold_items(outline, values)
        if self._is_empty and (inside.holes is not None or inside.begins is not None):
            raise UnsupportedError("structs without fields cannot be null or in lists", where=self._where)
        if self._is_empty:
            inside = unfold_items(Outline(len(values)), pa.nulls(len(values)))  # written as all-null pages
        part = PendingRows(values, inside, num_rows, self._stride)
        self._parts.append(part)
        self._size += part.num_bytes

    @property
    def waiting_bytes(self) -> int:
        """Number of bytes of the rows that wait for a full page."""
        return self._size

    def full(self) -> Iterator[Deferred]:
        """Yield the full pages, to be encoded in any thread."""
        while self._size >= self._limit:
            if self._limit * 2 <= self._most and come_again(
                [part.values for part in self._parts], self._page_bytes // 4
            ):
                self._limit *= 2
                continue
            last = self._parts.pop()
            room = self._limit - (self._size - last.num_bytes)
            head, tail = last.cut(room, at_least=0 if self._parts else 1)
            if head is not None:
                self._parts.append(head)
            yield self._flush()
            if tail is not None:
                self._parts.append(tail)
                self._size = tail.num_bytes

    def rest(self) -> Iterator[Deferred]:
        """Yield pages of all remaining rows."""
        if self._parts:
            yield self._flush()
        if self._blobs is not None:
            self._blobs.close()

    def own(self) -> None:
        """Copy the most recently added rows, to release their source arrays."""
        if self._parts:
            self._parts[-1] = self._parts[-1].owned()

    def _stored(self, array: pa.Array) -> pa.Array:
        if self._blobs is not None:
            return self._blobs.describe(array)
        return stored_array(array, self.field, self._type, self._where)

    def _flush(self) -> Deferred:
        parts, self._parts, self._size = self._parts, [], 0
        self._limit = self._page_bytes
        first = self._first_row
        self._first_row += sum(part.num_rows for part in parts)
        return partial(self._pages, parts, first)

    def _pages(self, parts: list[PendingRows], first_row: int) -> list[EncodedPage]:
        pages: list[EncodedPage] = []
        try:
            for part in join_pending_rows(parts):
                pages += self._encode(part, first_row)
                first_row += part.num_rows
        except UnsupportedError as error:
            if self._where not in str(error.where):
                error.where = self._where if error.where is None else f"{self._where}: {error.where}"
            raise
        return pages

    def _encode(self, part: PendingRows, first_row: int) -> Iterator[EncodedPage]:
        block = FixedWidth(0, _NOTHING, part.num_rows) if self._is_empty else array_to_block(part.values, self._where)
        rows = LeafRows(
            block,
            self._shape,
            part.outline.begins,
            part.outline.holes,
            part.outline.hidden,
            part.num_rows * self._stride,
        )
        if self.field.blob_version == 1:
            yield encode_blobs(rows, first_row, self._choice.version)
        else:
            yield from encode_leaf(rows, first_row, self._choice)


def come_again(arrays: list[pa.Array], worth: int) -> bool:
    """Return whether strings repeat in a sample, and the distinct strings take at least about `worth` bytes.

    Args:
        arrays: The sample: arrays of the same type.
        worth: Minimum total size of the distinct strings, in bytes, for which a dictionary saves space.
    """
    if not arrays or not has_offsets(arrays[0].type):
        return False
    chunked = pa.chunked_array([array for array in arrays if len(array)], arrays[0].type)
    count = len(chunked)
    size = sum(values_bytes(array) for array in arrays)
    places = sample_places(count)
    if places is None:
        return False
    sample = chunked.take(pa.array(places)).drop_null().combine_chunks()
    if not len(sample):
        return False
    block = array_to_block(sample, "sample")
    assert isinstance(block, VariableWidth)
    distinct = expected_distinct(block)
    return distinct is not None and min(distinct, count) * (size / count) >= worth
