"""Columns of 2.0 files as trees: the interface of nodes, and nodes of values, structs, blobs and missing fields."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import storage_type, with_type
from lance_duck.encoding.arrow.blocks import block_to_arrow
from lance_duck.encoding.arrow.dictionaries import concatenate
from lance_duck.encoding.arrow.jsonb import jsonb_to_text
from lance_duck.encoding.layouts.blob import read_extents
from lance_duck.encoding.v20.array import EncodedArray
from lance_duck.encoding.v20.buffers import PageBuffers, recent_buffers
from lance_duck.encoding.v20.dictionary import DictionaryArray
from lance_duck.encoding.v20.ends import Ints
from lance_duck.encoding.v20.registry import Context, array_from_proto, parse_encoding
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.errors import CorruptError, FormatError
from lance_duck.file.metadata import ColumnMetadata
from lance_duck.store.request import ByteSource, Request, gather

T = TypeVar("T")

MAX_ROWS = 2**62
DESCRIPTORS = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
"""Type of blob descriptors: position and size in the file."""


def _name_value(runs: RowRuns, first: int, position: int) -> str:
    return f"value {runs.value_at(first + position)}"


class V20Node(Protocol):
    """The tree of a field and all fields below it."""

    @property
    def num_rows(self) -> int | None:
        """Number of rows. None if the field is missing, and every row is null."""

    @property
    def is_dictionary(self) -> bool:
        """Whether all pages are dictionary-encoded."""

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Read runs of rows. The caller has checked that they are within `num_rows`."""


class PlainNode:
    """A base for nodes whose values are not dictionary-encoded."""

    __slots__ = ()

    @property
    def is_dictionary(self) -> bool:
        """Always False: pages are not dictionary-encoded."""
        return False


class LeafNode:
    """A field with stored values. Its pages are opened on demand.

    Args:
        column: The physical column.
        stored_type: Arrow type that the values have in the file.
        arrow_type: Type of the returned arrays.
        where: Name of the column, for messages.
        is_json: Whether the values are JSONB to return as text.

    Raises:
        CorruptError: The pages declare more rows than a file can have.
    """

    def __init__(
        self,
        column: ColumnMetadata,
        stored_type: pa.DataType,
        arrow_type: pa.DataType,
        where: str,
        *,
        is_json: bool = False,
    ) -> None:
        self.arrow_type = arrow_type
        self._stored_type = storage_type(stored_type)
        self._where = where
        self._is_json = is_json
        self._column = column
        self._bounds = page_bounds(column, where)
        self._arrays: list[EncodedArray | None] = [None] * len(column.pages)
        self._recent = recent_buffers()

    @property
    def num_rows(self) -> int:
        """Number of rows of all pages."""
        return int(self._bounds[-1])

    @property
    def is_dictionary(self) -> bool:
        """Whether all pages are dictionary-encoded."""
        pages = range(len(self._arrays))
        return bool(pages) and all(isinstance(self._array(page), DictionaryArray) for page in pages)

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the values of the rows."""
        parts = runs.split(self._bounds)
        pages = self._column.pages
        results = yield from gather([located(self._array(page).read(part), pages[page].where) for page, part in parts])
        storage = storage_type(self.arrow_type)
        first, arrays = 0, []
        for values in results:
            if values.block is None:
                arrays.append(pa.nulls(values.count, storage))
            else:
                block = values.block
                if self._is_json:
                    name_value = partial(_name_value, runs, first)
                    block = jsonb_to_text(block, self._where, name_value, values.validity)
                arrays.append(block_to_arrow(block, storage, values.validity, self._where, self._stored_type))
            first += values.count
        return with_type(_joined(arrays, storage), self.arrow_type)

    def _array(self, index: int) -> EncodedArray:
        array = self._arrays[index]
        if array is None:
            page = self._column.pages[index]
            buffers = PageBuffers(page, self._column.buffers, self._recent)
            context = Context(buffers, page.num_rows, self._stored_type)
            array = self._arrays[index] = array_from_proto(parse_encoding(page.encoding, buffers), context)
        return array


def page_bounds(column: ColumnMetadata, where: str) -> Ints:
    """Return the first row of each page, and one past the last row; int64 (pages + 1,).

    Raises:
        CorruptError: The pages declare more rows than a file can have.
    """
    if column.num_rows > MAX_ROWS:
        raise CorruptError(
            "too many rows in a column", where=where, expected=f"at most {MAX_ROWS}", found=column.num_rows
        )
    return np.cumsum([0, *(page.num_rows for page in column.pages)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class MissingNode(PlainNode):
    """A field that the file lacks. Its values are null."""

    arrow_type: pa.DataType

    @property
    def num_rows(self) -> None:
        """Always None, because every row is null."""
        return None

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return a null for each row."""
        yield from ()
        return pa.nulls(runs.count, self.arrow_type)


@dataclass(frozen=True, slots=True)
class StructNode(PlainNode):
    """Structs without nulls."""

    arrow_type: pa.DataType
    children: tuple[V20Node, ...]
    num_rows: int | None

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the structs of the rows, made of the children's arrays."""
        children = yield from gather([child.read(runs) for child in self.children])
        storage = storage_type(self.arrow_type)
        return with_type(pa.Array.from_buffers(storage, runs.count, [None], children=children), self.arrow_type)


@dataclass(frozen=True, slots=True)
class BlobNode(PlainNode):
    """A field of blobs. Its pages hold descriptors, and the bytes are outside the pages.

    A descriptor is a row of a packed struct: the position in the file and the size, 8 bytes each. (1, 0) is a null, and
    (0, 0) is an empty value.
    """

    arrow_type: pa.DataType
    descriptors: LeafNode
    source: ByteSource
    where: str

    @property
    def num_rows(self) -> int:
        """Number of descriptors."""
        return self.descriptors.num_rows

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the bytes of the rows."""
        descriptors = yield from self.descriptors.read(runs)
        if descriptors.null_count:
            raise CorruptError("the blob descriptors contain nulls", where=self.where, found=descriptors.null_count)
        positions, sizes = (descriptors.field(i).to_numpy() for i in range(2))
        block = yield from read_extents(positions, sizes, self.source, self.where)
        valid = (sizes > 0) | (positions != 1)
        array = block_to_arrow(block, storage_type(self.arrow_type), None if valid.all() else valid, self.where)
        return with_type(array, self.arrow_type)


def located(request: Request[T], where: str) -> Request[T]:
    """Run a request, and add `where` to errors that do not name the page."""
    try:
        return (yield from request)
    except FormatError as error:
        if not str(error.where).startswith(where):
            error.where = where if error.where is None else f"{where}: {error.where}"
        raise


def _joined(arrays: list[pa.Array], storage: pa.DataType) -> pa.Array:
    if not arrays:
        return pa.nulls(0, storage)
    return concatenate(arrays)
