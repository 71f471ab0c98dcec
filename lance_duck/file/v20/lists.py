"""Lists of 2.0 files: reads end offsets first, then the items."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.limits import check_count
from lance_duck.arrow.types import storage_type, with_type
from lance_duck.encoding.arrow.blocks import block_to_arrow, validity_buffer
from lance_duck.encoding.block import VariableWidth
from lance_duck.encoding.v20.buffers import PageBuffers, recent_buffers
from lance_duck.encoding.v20.ends import Ends, Ints
from lance_duck.encoding.v20.ends import Rows as EndRows
from lance_duck.encoding.v20.registry import Context, list_from_proto, parse_encoding
from lance_duck.encoding.v20.runs import RowRuns, merged_runs
from lance_duck.errors import CorruptError
from lance_duck.file.metadata import ColumnMetadata
from lance_duck.file.v20.nodes import MAX_ROWS, LeafNode, PlainNode, V20Node, located, page_bounds
from lance_duck.kernels.memory import Bytes
from lance_duck.store.request import Request, gather


@dataclass(frozen=True, slots=True)
class ListPages:
    """Pages of list end offsets.

    Attributes:
        bounds: int64 (pages + 1,), first list of each page, and one past the last list.
        items: int64 (pages + 1,), first row of the item's column for each page, and one past the last row.
        ends: End offsets of each page.
        where: Name of each page, for messages.
    """

    bounds: Ints
    items: Ints
    ends: tuple[Ends, ...]
    where: tuple[str, ...]

    @property
    def num_rows(self) -> int:
        """Number of lists of all pages."""
        return int(self.bounds[-1])

    @property
    def num_items(self) -> int:
        """Number of items of all lists."""
        return int(self.items[-1])

    def read(self, runs: RowRuns) -> Request[EndRows]:
        """Read runs of lists. Item positions are relative to the first item of all pages."""
        parts = runs.split(self.bounds)
        ends = yield from gather([located(self.ends[page].read(part), self.where[page]) for page, part in parts])
        if not ends:
            return EndRows(np.zeros(1, np.int64), None, np.empty(0, np.int64), np.empty(0, np.int64))
        bases = accumulate((int(rows.offsets[-1]) for rows in ends), initial=0)
        offsets = [rows.offsets[1:] + base for rows, base in zip(ends, bases, strict=False)]
        validity: Bytes | None = None
        if any(rows.validity is not None for rows in ends):
            validity = np.concatenate([_flags(rows) for rows in ends])
        firsts = [self.items[page] for page, _ in parts]
        return EndRows(
            np.concatenate([np.zeros(1, np.int64), *offsets]),
            validity,
            np.concatenate([rows.item_starts + first for rows, first in zip(ends, firsts, strict=True)]),
            np.concatenate([rows.item_stops + first for rows, first in zip(ends, firsts, strict=True)]),
        )


def list_pages(column: ColumnMetadata, where: str) -> ListPages:
    """Open the pages of a list column.

    Raises:
        CorruptError: A page does not hold lists, or pages declare more rows than a file can have.
    """
    recent = recent_buffers()
    bounds = page_bounds(column, where)
    ends = []
    for page in column.pages:
        buffers = PageBuffers(page, column.buffers, recent)
        encoding = parse_encoding(page.encoding, buffers)
        ends.append(list_from_proto(encoding, Context(buffers, page.num_rows, pa.uint64())))
    if sum(end.limit for end in ends) > MAX_ROWS:
        raise CorruptError("too many items in a list column", where=where, expected=f"at most {MAX_ROWS}")
    items = np.cumsum([0, *(end.limit for end in ends)], dtype=np.int64)
    return ListPages(bounds, items, tuple(ends), tuple(page.where for page in column.pages))


@dataclass(frozen=True, slots=True)
class _ListedNode(PlainNode):
    """A base class for variable-length rows: pages of end offsets, and the node of all items."""

    arrow_type: pa.DataType
    pages: ListPages

    @property
    def num_rows(self) -> int:
        """Number of rows of all pages."""
        return self.pages.num_rows


@dataclass(frozen=True, slots=True)
class ListNode(_ListedNode):
    """Lists: pages of end offsets, and the node of their items."""

    items: V20Node
    where: str

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the lists of the rows. Reads their ends first, then the items in between."""
        rows = yield from self.pages.read(runs)
        items = yield from self.items.read(merged_runs(rows.item_starts, rows.item_stops))
        storage = storage_type(self.arrow_type)
        offsets = pa.py_buffer(list_offsets(rows.offsets, storage, self.where))
        array = pa.Array.from_buffers(storage, runs.count, [validity_buffer(rows.validity), offsets], children=[items])
        return with_type(array, self.arrow_type)


@dataclass(frozen=True, slots=True)
class TextNode(_ListedNode):
    """Strings that are stored as lists of bytes."""

    items: LeafNode
    where: str

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the strings of the rows."""
        rows = yield from self.pages.read(runs)
        items = yield from self.items.read(merged_runs(rows.item_starts, rows.item_stops))
        data = np.frombuffer(items.buffers()[1] or b"", np.uint8, len(items), items.offset)
        block = VariableWidth(rows.offsets, data)
        values = block_to_arrow(block, storage_type(self.arrow_type), rows.validity, self.where)
        return with_type(values, self.arrow_type)


def _flags(rows: EndRows) -> Bytes:
    return np.ones(len(rows.offsets) - 1, np.uint8) if rows.validity is None else rows.validity


def list_offsets(offsets: Ints, storage: pa.DataType, where: str) -> NDArray[np.int32] | Ints:
    """Return offsets in the width of an Arrow type.

    Raises:
        ArrayLimitError: There are more items than 32 bits can count.
    """
    if pa.types.is_large_list(storage):
        return offsets
    check_count(int(offsets[-1]), where)
    return offsets.astype(np.int32)
