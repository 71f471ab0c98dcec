"""The buffers of a 2.0 page. They can be read partially.

`Buffer.buffer_type` determines whether the index counts the buffers of the page or of the column. Buffers start at
multiples of 64 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.memory import unset
from lance_duck.cache import LruCache
from lance_duck.encoding.layouts.page import Extent, Page
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.flat import join_bytes
from lance_duck.store.request import ByteRange, ByteSource, Request
from lance_duck.wire.pb import encodings20_pb2 as pb

Ints = NDArray[np.int64]

SMALL_GAP = 4096
"""Maximum gap between two extents that are read together, in bytes."""

_RECENT: Final = 2  # at most two threads read adjacent pages


@dataclass(frozen=True, slots=True)
class StoredBuffer:
    """A buffer of `size` bytes at `offset` of `source`. It lies within the source.

    Attributes:
        where: Page, for messages.
    """

    source: ByteSource
    offset: int
    size: int
    where: str

    def too_short(self, needed: int, size: int) -> CorruptError:
        """Return the error for values that need `needed` bytes if the buffer has only `size` bytes."""
        return CorruptError(
            "the values reach beyond the end of their buffer", where=self.where, expected=needed, found=size
        )

    def read_all(self) -> Request[Bytes]:
        """Read all bytes of the buffer."""
        (data,) = yield [ByteRange(self.source, self.offset, self.size)]
        return data

    def read(self, starts: Ints, stops: Ints) -> Request[Bytes]:
        """Read ascending, disjoint extents. Returns their concatenated bytes, a view if they are contiguous.

        Raises:
            CorruptError: An extent extends past the buffer.
        """
        data, places = yield from self.read_around(starts, stops)
        if len(starts) == 1:
            return data
        sizes = stops - starts
        total = int(sizes.sum())
        if total == len(data):
            return data
        out = unset(total, np.uint8)
        join_bytes(readonly(data), places, sizes, out)
        return out

    def read_around(self, starts: Ints, stops: Ints) -> Request[tuple[Bytes, Ints]]:
        """Read ascending extents, which may overlap. Returns bytes that contain them, and the start of each extent.

        Raises:
            CorruptError: An extent extends past the buffer.
        """
        if len(starts) == 0:
            return np.empty(0, np.uint8), starts
        if int(starts[0]) < 0 or int(stops[-1]) > self.size:
            raise self.too_short(int(stops[-1]), self.size)
        if len(starts) == 1:  # the usual case in scans; array arithmetic would take longer than the read
            low = int(starts[0])
            (data,) = yield [ByteRange(self.source, self.offset + low, int(stops[0]) - low)]
            return data, np.zeros(1, np.int64)
        apart = starts[1:] - stops[:-1] > SMALL_GAP
        opens = np.flatnonzero(np.concatenate(([True], apart)))
        closes = np.concatenate((opens[1:] - 1, [len(starts) - 1]))
        lows, highs = starts[opens], stops[closes]
        pieces = yield [
            ByteRange(self.source, self.offset + low, high - low)
            for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
        ]
        if len(pieces) == 1:
            return pieces[0], starts - lows[0]
        sizes = highs - lows
        shift = np.cumsum(sizes) - sizes - lows
        return np.concatenate(pieces), starts + np.repeat(shift, closes - opens + 1)


@dataclass(frozen=True, slots=True)
class PageBuffers:
    """The buffers that the encoding of a page may refer to.

    Attributes:
        page: The page, with its own buffers.
        column: (offset, size) of the buffers of the column. They lie within the file.
        recent: Last decompressed buffers, keyed by offset in the file. The pages of the column share them.
    """

    page: Page
    column: tuple[Extent, ...] = ()
    recent: LruCache[Bytes] = field(default_factory=lambda: LruCache(_RECENT))

    def find(self, buffer: pb.Buffer) -> StoredBuffer:
        """Return the buffer to which a message refers.

        Raises:
            CorruptError: The index is beyond the last buffer.
            UnsupportedError: The buffer belongs to the whole file.
        """
        if buffer.buffer_type not in (pb.Buffer.page, pb.Buffer.column):
            raise UnsupportedError(
                "page buffers that belong to the whole file are not supported", where=self.page.where
            )
        buffers = self.page.buffers if buffer.buffer_type == pb.Buffer.page else self.column
        if buffer.buffer_index >= len(buffers):
            raise self.corrupt("a buffer is missing", expected=f"index below {len(buffers)}", found=buffer.buffer_index)
        offset, size = buffers[buffer.buffer_index]
        return StoredBuffer(self.page.source, offset, size, self.page.where)

    def corrupt(self, what: str, *, expected: object = None, found: object = None) -> CorruptError:
        """Return an error about this page."""
        return CorruptError(what, where=self.page.where, expected=expected, found=found)

    def unsupported(self, what: str, found: object) -> UnsupportedError:
        """Return an error about the encoding of this page."""
        return UnsupportedError(what, where=self.page.where, found=found)


def recent_buffers() -> LruCache[Bytes]:
    """Return a cache for a column's last decompressed buffers."""
    return LruCache(_RECENT)


def byte_extents(runs: RowRuns, bits: int) -> tuple[Ints, Ints]:
    """Return the byte extent of each run: first byte, and one past the last byte."""
    if bits % 8 == 0:
        return runs.starts * (bits // 8), runs.stops * (bits // 8)
    return runs.starts * bits // 8, (runs.stops * bits + 7) // 8
