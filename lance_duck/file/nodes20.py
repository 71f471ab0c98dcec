"""Columns of 2.0 files as trees: what a node of one is, and the nodes of values, structs and missing fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from lance_duck.encoding.arrow import block_to_arrow
from lance_duck.encoding.v20.array import Array
from lance_duck.encoding.v20.buffers import PageBuffers
from lance_duck.encoding.v20.dictionary import DictionaryArray
from lance_duck.encoding.v20.recent import Recent
from lance_duck.encoding.v20.registry import Context, array_from_proto, parse_encoding
from lance_duck.encoding.v20.runs import Runs
from lance_duck.errors import FormatError
from lance_duck.file.metadata import ColumnMetadata
from lance_duck.store.request import Request, gather

T = TypeVar("T")

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
    where: str


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
            pages.append(ValuePage(at, at + page.num_rows, array, page.where))
        at += page.num_rows
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
        found = yield from gather([located(page.values.read(part), page.where) for page, part in parts])
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


def located(request: Request[T], where: str) -> Request[T]:
    """The same request; errors about bytes that do not name the page say `where`."""
    try:
        return (yield from request)
    except FormatError as error:
        if not str(error.where).startswith(where):
            error.where = where if error.where is None else f"{where}: {error.where}"
        raise


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
