"""Integers of fewer bits than their type.

bitpacked                values back to back, bits counted from the lowest of the first byte
bitpacked_for_non_neg    chunks of 1024 values in FastLanes order, 128 * compressed bits bytes each, the last padded

Signed values are extended by their highest bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_duck.arrow.memory import unset
from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.codecs.bitpacking import OutOfLineBitpacking
from lance_duck.encoding.v20.array import EncodedArray, PageValues
from lance_duck.encoding.v20.buffers import PageBuffers, StoredBuffer, byte_extents
from lance_duck.encoding.v20.kernels import unpack_runs
from lance_duck.encoding.v20.runs import RowRuns, merged_runs
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.numbers.flat import join_bytes
from lance_duck.kernels.status import check_status
from lance_duck.store.request import Request
from lance_duck.wire.pb import encodings20_pb2 as pb

CHUNK = 1024


def bitpacked_from_proto(message: pb.Bitpacked | pb.BitpackedForNonNeg, buffers: PageBuffers) -> EncodedArray:
    """Return the reader of a bit-packed array.

    Raises:
        CorruptError: The widths are out of range, or the buffer is missing.
    """
    buffer = buffers.find(message.buffer)
    width, bits = message.compressed_bits_per_value, message.uncompressed_bits_per_value
    if bits not in (8, 16, 32, 64) or not 0 < width <= bits:
        raise buffers.corrupt(
            "the bit-packed width is invalid", expected="1 to 8, 16, 32 or 64 bits", found=f"{width} of {bits}"
        )
    if isinstance(message, pb.Bitpacked):
        return Bitpacked(buffer, width, bits, message.signed)
    return BitpackedForNonNeg(buffer, width, bits)


@dataclass(frozen=True, slots=True)
class Bitpacked:
    """Integers of `bits` bits, packed to `width` bits each."""

    buffer: StoredBuffer
    width: int
    bits: int
    signed: bool

    @property
    def capacity(self) -> int:
        """Number of values in the buffer."""
        return self.buffer.size * 8 // self.width

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return FixedWidth of `bits` bits."""
        data, places = yield from self.buffer.read_around(*byte_extents(runs, self.width))
        count = runs.count
        out = unset(count, f"<u{self.bits // 8}")
        starts = places * 8 + runs.starts * self.width % 8
        check_status(unpack_runs(readonly(data), starts, runs.counts, self.width, self.signed, out), "bitpacked")
        return PageValues(FixedWidth(self.bits, out.view(np.uint8), count), None, count)


@dataclass(frozen=True, slots=True)
class BitpackedForNonNeg:
    """Non-negative integers of `bits` bits, packed to `width` bits in chunks. Only whole chunks are read."""

    buffer: StoredBuffer
    width: int
    bits: int

    @property
    def capacity(self) -> int:
        """Number of values in the buffer, padding included."""
        return self.buffer.size // (CHUNK // 8 * self.width) * CHUNK

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return FixedWidth of `bits` bits."""
        chunks = touched(runs)
        data = yield from self.buffer.read(*byte_extents(chunks, self.width * CHUNK))
        codec = OutOfLineBitpacking(self.bits, self.width)
        unpacked = codec.decode_block(data, chunks.count * CHUNK)
        before = np.cumsum(chunks.counts) - chunks.counts
        chunk = np.searchsorted(chunks.stops, runs.starts // CHUNK, side="right")
        places = runs.starts + (before[chunk] - chunks.starts[chunk]) * CHUNK
        size, count = self.bits // 8, runs.count
        out = unset(count * size, np.uint8)
        join_bytes(readonly(unpacked.data), places * size, runs.counts * size, out)
        return PageValues(FixedWidth(self.bits, out, count), None, count)


def touched(runs: RowRuns) -> RowRuns:
    """Return the chunks that contain `runs`, as runs of chunk numbers."""
    starts, stops = runs.starts // CHUNK, (runs.stops + CHUNK - 1) // CHUNK
    return merged_runs(np.maximum(starts, np.concatenate(([0], stops[:-1]))) if len(starts) else starts, stops)
