"""Fields of 0.1 files as trees: nodes of values, dictionaries and lists. Struct nodes are in `file/v20`.

The format does not store validity. The slot of a fixed-width null holds an undefined value. In nullable variable-length
fields, all readers of the format treat an empty value as null.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import storage_type, with_type
from lance_duck.encoding.arrow.blocks import block_to_arrow
from lance_duck.encoding.arrow.jsonb import jsonb_to_text
from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, VariableWidth
from lance_duck.encoding.v20.runs import RowRuns, merged_runs, span
from lance_duck.errors import CorruptError
from lance_duck.file.v01.pages import Batches, read_flags, read_offsets, read_texts, read_values
from lance_duck.file.v20.lists import list_offsets
from lance_duck.file.v20.nodes import PlainNode, V20Node
from lance_duck.kernels.memory import Bytes
from lance_duck.store.request import Request

ReadBlock = Callable[[Batches, RowRuns], Request[Block]]
"""Reads runs of a field's values."""


def block_reader(stored: pa.DataType) -> ReadBlock:
    """Return the reader for values of a storage type other than dictionary and null."""
    if pa.types.is_fixed_size_list(stored):
        return _list_reader(int(stored.list_size), block_reader(storage_type(stored.value_type)))
    if pa.types.is_boolean(stored):
        return _read_bits
    return _fixed_reader(stored.bit_width // 8)


def _list_reader(size: int, items: ReadBlock) -> ReadBlock:
    def read(pages: Batches, runs: RowRuns) -> Request[Block]:
        block = yield from items(pages.scaled(size), runs.scaled(size))
        return FixedSizeList(size, block, None, runs.count)

    return read


def _fixed_reader(width: int) -> ReadBlock:
    def read(pages: Batches, runs: RowRuns) -> Request[Block]:
        data = yield from read_values(pages, runs, width)
        return FixedWidth(8 * width, data, runs.count)

    return read


def _read_bits(pages: Batches, runs: RowRuns) -> Request[Block]:
    return FixedWidth(1, (yield from read_flags(pages, runs)), runs.count)


@dataclass(frozen=True, slots=True)
class BatchedNode(PlainNode):
    """A field that has pages.

    Attributes:
        arrow_type: Type of the returned arrays.
        pages: The pages.
    """

    arrow_type: pa.DataType
    pages: Batches

    @property
    def num_rows(self) -> int:
        """Number of values of all batches."""
        return self.pages.num_rows


@dataclass(frozen=True, slots=True)
class NullNode(BatchedNode):
    """A field of the null type. It does not have pages."""

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return a null for each row."""
        yield from ()
        return pa.nulls(runs.count, self.arrow_type)


@dataclass(frozen=True, slots=True)
class ValueNode(BatchedNode):
    """Fixed-width values, including fixed-size lists, without nulls.

    Attributes:
        stored: Storage type of the values in the file.
    """

    stored: pa.DataType

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the values of the rows."""
        block = yield from block_reader(self.stored)(self.pages, runs)
        array = block_to_arrow(block, storage_type(self.arrow_type), None, self.pages.where, self.stored)
        return with_type(array, self.arrow_type)


@dataclass(frozen=True, slots=True)
class LengthyNode(BatchedNode):
    """Variable-length values.

    Attributes:
        nullable: Whether an empty value is null.
        is_json: Whether values are JSONB to return as text.
    """

    nullable: bool
    is_json: bool

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the values of the rows."""
        block: Block = yield from read_texts(self.pages, runs)
        valid = _filled(block) if self.nullable else None
        shown = block
        if self.is_json:
            shown = jsonb_to_text(block, self.pages.where, lambda i: f"value {runs.value_at(i)}", valid)
        array = block_to_arrow(shown, storage_type(self.arrow_type), valid, self.pages.where)
        return with_type(array, self.arrow_type)


@dataclass(frozen=True, slots=True)
class DictionaryNode(BatchedNode):
    """Indices into a dictionary that all batches share.

    Attributes:
        values: The dictionary's values, which form one batch.
        stored: Storage type of the field, a dictionary.
        is_text: Whether the values are of variable length.
        nullable: Whether an empty value of variable length is null.
    """

    values: Batches
    stored: pa.DataType
    is_text: bool
    nullable: bool
    _read: list[Block] = field(default_factory=list, repr=False)

    @property
    def is_dictionary(self) -> bool:
        """Always True, because all pages hold indices into one dictionary."""
        return True

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the values of the rows, in the requested type."""
        width = self.stored.index_type.bit_width // 8
        data = yield from read_values(self.pages, runs, width)
        items = self._read[0] if self._read else (yield from self._items())
        places = data.view(f"<u{width}")
        if len(places) and int(places.max()) >= items.count:
            raise CorruptError(
                "a dictionary index is too high",
                where=self.pages.where,
                expected=f"< {items.count}",
                found=int(places.max()),
            )
        filled = _filled(items) if self.nullable else None
        valid = None if filled is None else filled[places]
        block = Dictionary(places, items)
        array = block_to_arrow(
            block, storage_type(self.arrow_type), valid, self.pages.where, storage_type(self.stored.value_type)
        )
        return with_type(array, self.arrow_type)

    def _items(self) -> Request[Block]:
        everything = span(0, self.values.num_rows)
        if self.is_text:
            items: Block = yield from read_texts(self.values, everything)
        else:
            items = yield from block_reader(storage_type(self.stored.value_type))(self.values, everything)
        self._read.append(items)
        return items


@dataclass(frozen=True, slots=True)
class BatchedLists(BatchedNode):
    """Lists without nulls.

    Attributes:
        offset: Dtype of the offsets.
        items: Node of the items. Its `num_rows` is None if no file stores the items.
        item_bounds: int64 (num_batches + 1,), number of items before each batch, then the total.
    """

    offset: np.dtype[Any]
    items: V20Node
    item_bounds: np.ndarray[Any, np.dtype[np.int64]]

    def read(self, runs: RowRuns) -> Request[pa.Array]:
        """Return the lists of the rows. Reads their offsets first, then their items."""
        pieces = self.pages.cut(runs)
        firsts, lasts, lengths = yield from read_offsets(self.pages, pieces, self.offset)
        bases = self.item_bounds[pieces.batches]
        if (lasts > self.item_bounds[pieces.batches + 1] - bases).any():
            raise CorruptError(
                "invalid list offsets", where=self.pages.where, expected="within the items of their batch"
            )
        items = yield from self.items.read(merged_runs(bases + firsts, bases + lasts))
        storage = storage_type(self.arrow_type)
        ends = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=ends[1:])
        offsets = pa.py_buffer(list_offsets(ends, storage, self.pages.where))
        return with_type(pa.Array.from_buffers(storage, runs.count, [None, offsets], children=[items]), self.arrow_type)


def _filled(block: Block) -> Bytes | None:
    """Return a flag for each value: 1 unless it is empty. Returns None if no value is empty, or for fixed widths."""
    if not isinstance(block, VariableWidth):
        return None
    filled = np.not_equal(block.offsets[1:], block.offsets[:-1])
    return None if filled.all() else filled.view(np.uint8)
