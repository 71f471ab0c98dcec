"""Pages of 0.1 files: the byte ranges of rows, and their values.

    page              | bytes
    fixed width       | values at its position, little-endian; for fixed-size lists, the concatenated items
    bool              | bits, the lowest of each byte first
    variable length   | the values, then int64 (n + 1): file offsets of the values; the page position points at these
    offsets list, large_list  | int32 or int64 (n + 1): offsets of the lists into the items of the batch
    null, struct      | nothing

Pages do not share bytes, so a read never returns more bytes than the file has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.join import joined
from lance_duck.encoding.block import VariableWidth
from lance_duck.encoding.layouts.page_rows import expand_ranges
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.errors import CorruptError
from lance_duck.store.request import ByteRange, Bytes, ByteSource, Request

Int64s = NDArray[np.int64]

OFFSET = np.dtype("<i8")


@dataclass(frozen=True, slots=True)
class Batches:
    """The pages of a field.

    Attributes:
        source: The file.
        bounds: int64 (num_batches + 1,), ascending: number of the field's values before each batch, then the total.
        positions: int64 (num_batches,), position of each page in the file.
        where: Name of the field, for messages.
    """

    source: ByteSource
    bounds: Int64s
    positions: Int64s
    where: str

    @property
    def num_rows(self) -> int:
        """Number of values of all batches."""
        return int(self.bounds[-1])

    def scaled(self, factor: int) -> Batches:
        """Return batches with `factor` times as many values. The caller has checked for overflow."""
        return Batches(self.source, self.bounds * factor, self.positions, self.where)

    def cut(self, runs: RowRuns) -> Pieces:
        """Cut runs at batch boundaries."""
        inner = self.bounds[1:-1]
        if len(runs.starts) == 0 or len(inner) == 0:
            batches = np.zeros(len(runs.starts), np.int64)
            return Pieces(batches, runs.starts, runs.stops)
        places = np.searchsorted(runs.starts, inner, side="left") - 1
        cuts = distinct(inner[(places >= 0) & (inner < runs.stops[places])])
        starts = np.sort(np.concatenate([runs.starts, cuts]))
        stops = np.sort(np.concatenate([runs.stops, cuts]))
        batches = np.searchsorted(self.bounds, starts, side="right") - 1
        return Pieces(batches, starts - self.bounds[batches], stops - self.bounds[batches])

    def ranges(self, starts: Int64s, sizes: Int64s) -> list[ByteRange]:
        """Return byte ranges from their starts in the file and their sizes.

        Raises:
            CorruptError: A range lies outside the file, or the ranges are longer in total than the file.
        """
        whole = self.source.size
        if len(starts) and (starts.min() < 0 or sizes.min() < 0 or (starts > whole - sizes).any()):
            raise CorruptError("the page reaches beyond the file", where=self.where, expected=f"within {whole} bytes")
        if sizes.astype(np.float64).sum() > whole:
            raise CorruptError("the pages overlap", where=self.where, expected=f"at most {whole} bytes in all pages")
        source = self.source
        return [ByteRange(source, a, b) for a, b in zip(starts.tolist(), sizes.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Non-empty runs of values, each within one batch.

    Attributes:
        batches: int64 (n,), batch number.
        starts: int64 (n,), first value, counted from the start of the batch.
        stops: int64 (n,), one past the last value.
    """

    batches: Int64s
    starts: Int64s
    stops: Int64s

    @property
    def counts(self) -> Int64s:
        """Number of values of each run, int64."""
        return self.stops - self.starts


def read_values(pages: Batches, runs: RowRuns, width: int) -> Request[Bytes]:
    """Read values of `width` bytes each."""
    pieces = pages.cut(runs)
    starts = pages.positions[pieces.batches] + pieces.starts * width
    return joined((yield pages.ranges(starts, pieces.counts * width)), np.uint8)


def read_flags(pages: Batches, runs: RowRuns) -> Request[Bytes]:
    """Read boolean pages as a byte (0 or 1) for each value."""
    pieces = pages.cut(runs)
    first, last = pieces.starts // 8, (pieces.stops + 7) // 8
    data = yield pages.ranges(pages.positions[pieces.batches] + first, last - first)
    bits = np.unpackbits(joined(data, np.uint8), bitorder="little")
    begins = 8 * (np.cumsum(last - first) - (last - first)) + pieces.starts % 8
    return bits[expand_ranges(begins, begins + pieces.counts)]


def read_offsets(pages: Batches, pieces: Pieces, dtype: np.dtype[Any]) -> Request[tuple[Int64s, Int64s, Int64s]]:
    """Read offsets, either of variable-length values or of lists.

    Returns: Start and end of each range, and the length of each value, all int64.

    Raises:
        CorruptError: The offsets do not ascend.
    """
    starts = pages.positions[pieces.batches] + pieces.starts * dtype.itemsize
    data = yield pages.ranges(starts, (pieces.counts + 1) * dtype.itemsize)
    offsets = joined(data, np.uint8).view(dtype).astype(np.int64)
    ends = np.cumsum(pieces.counts + 1)
    lengths = np.delete(np.diff(offsets), ends[:-1] - 1) if len(ends) else np.empty(0, np.int64)
    firsts, lasts = offsets[ends - pieces.counts - 1], offsets[ends - 1]
    if len(lengths) and (lengths.min() < 0 or firsts.min() < 0):
        raise CorruptError("invalid offsets", where=pages.where, expected="ascending offsets from 0")
    return firsts, lasts, lengths


def read_texts(pages: Batches, runs: RowRuns) -> Request[VariableWidth]:
    """Read variable-length values: first their offsets, then their bytes."""
    firsts, lasts, lengths = yield from read_offsets(pages, pages.cut(runs), OFFSET)
    data = yield pages.ranges(firsts, lasts - firsts)
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return VariableWidth(offsets, joined(data, np.uint8))
