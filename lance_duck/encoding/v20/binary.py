"""Byte strings: an array of end offsets, and the joined bytes.

binary               indices: the end of each value in the bytes, plus null_adjustment if the value is null
fsst                 the same with compressed bytes, one symbol table for the page
fixed_size_binary    bytes only: all values are of one length

Each end is an unsigned integer of 64 bits. The first value begins at 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_duck.encoding.block import FixedWidth, VariableWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codec_checks import narrow_offsets
from lance_duck.encoding.v20.array import EncodedArray, PageValues, both_valid
from lance_duck.encoding.v20.ends import Ends
from lance_duck.encoding.v20.runs import RowRuns, merged_runs
from lance_duck.errors import CorruptError
from lance_duck.store.request import Request


@dataclass(frozen=True, slots=True)
class Binary:
    """Values that end at `ends` in `data`."""

    ends: Ends
    data: EncodedArray

    @property
    def capacity(self) -> int | None:
        """Number of values whose ends the bytes can hold."""
        return self.ends.capacity

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return VariableWidth values with offsets from 0. Reads the ends first, then the bytes between them."""
        ends = yield from self.ends.read(runs)
        item_runs = merged_runs(ends.item_starts, ends.item_stops)
        if self.data.capacity is not None and item_runs.stop > self.data.capacity:
            raise CorruptError(
                "a value reaches beyond the bytes of its page", expected=self.data.capacity, found=item_runs.stop
            )
        items = yield from self.data.read(item_runs)
        if not isinstance(items.block, FixedWidth) or items.block.bits != 8:
            raise CorruptError("the bytes of a binary array have the wrong width", expected="8 bits")
        offsets = narrow_offsets(ends.offsets, len(items.block.data))
        return PageValues(VariableWidth(offsets, items.block.data), ends.validity, runs.count)


@dataclass(frozen=True, slots=True)
class FsstArray:
    """Binary values, each compressed with the page's symbol table."""

    binary: EncodedArray
    codec: Codec

    @property
    def capacity(self) -> int | None:
        """Number of compressed values that the bytes can hold."""
        return self.binary.capacity

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return VariableWidth values."""
        values = yield from self.binary.read(runs)
        if values.block is None:
            return values
        return PageValues(self.codec.decode_values(values.block), values.validity, values.count)


@dataclass(frozen=True, slots=True)
class FixedSizeBinary:
    """Values of `width` bytes each."""

    data: EncodedArray
    width: int

    @property
    def capacity(self) -> int | None:
        """Number of values that the bytes can hold."""
        return None if self.data.capacity is None else self.data.capacity // self.width

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return VariableWidth values with offsets from 0."""
        values = yield from self.data.read(runs.scaled(self.width))
        if not isinstance(values.block, FixedWidth) or values.block.bits != 8:
            raise CorruptError("the bytes of a fixed-size binary array have the wrong width", expected="8 bits")
        count = runs.count
        offsets = narrow_offsets(np.arange(count + 1, dtype=np.int64) * self.width, count * self.width)
        return PageValues(VariableWidth(offsets, values.block.data), both_valid(None, values.validity), count)
