"""Flat and constant arrays.

bits_per_value 1            eight values to a byte, lowest bit first
bits_per_value 8, 16, …     values, little-endian
compression "zstd", "lz4"   the whole buffer is compressed

A constant array does not have a buffer: its value is in the description.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_duck.arrow.memory import unset
from lance_duck.cache import LruCache
from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.v20.array import MAX_COUNT, EncodedArray, PageValues
from lance_duck.encoding.v20.buffers import PageBuffers, StoredBuffer, byte_extents
from lance_duck.encoding.v20.compression import decompress
from lance_duck.encoding.v20.kernels import unpack_runs
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.flat import join_bytes
from lance_duck.kernels.status import check_status
from lance_duck.store.request import Request
from lance_duck.wire.pb import encodings20_pb2 as pb

MAX_BITS = 1 << 31


def flat_from_proto(message: pb.Flat, buffers: PageBuffers) -> EncodedArray:
    """Return the reader of a flat array.

    Raises:
        CorruptError: The buffer is missing.
        UnsupportedError: Values have several bits but not whole bytes, or the compression is unknown.
    """
    buffer = buffers.find(message.buffer)
    bits = message.bits_per_value
    if not (bits == 1 or (bits % 8 == 0 and 0 < bits <= MAX_BITS)):
        raise buffers.unsupported("2.0 files do not support flat values of this width", f"{bits} bits")
    scheme = message.compression.scheme if message.HasField("compression") else "none"
    if bits == 1:
        if scheme not in ("none", ""):
            raise buffers.unsupported("2.0 files do not support compressed bits", scheme)
        return FlatBits(buffer)
    if scheme in ("none", ""):
        return FlatBytes(buffer, bits)
    if scheme not in ("zstd", "lz4"):
        raise buffers.unsupported("2.0 files do not support this compression", scheme)
    return FlatCompressed(buffer, bits, scheme, buffers.recent)


@dataclass(frozen=True, slots=True)
class FlatBytes:
    """Uncompressed values of whole bytes. Only the requested runs are read."""

    buffer: StoredBuffer
    bits: int

    @property
    def capacity(self) -> int:
        """Number of values in the buffer."""
        return self.buffer.size // (self.bits // 8)

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return FixedWidth values. If the requested values are adjacent, the result is a view of the file."""
        starts, stops = byte_extents(runs, self.bits)
        data = yield from self.buffer.read(starts, stops)
        count = runs.count
        return PageValues(FixedWidth(self.bits, data, count), None, count)


@dataclass(frozen=True, slots=True)
class FlatBits:
    """Values of one bit each."""

    buffer: StoredBuffer

    @property
    def capacity(self) -> int:
        """Number of bits in the buffer."""
        return self.buffer.size * 8

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return FixedWidth values of one bit, each stored as a byte (0 or 1)."""
        data, places = yield from self.buffer.read_around(*byte_extents(runs, 1))
        count = runs.count
        if len(places) == 1:
            skip = int(runs.starts[0]) % 8
            out = np.unpackbits(data, count=skip + count, bitorder="little")[skip:]
        else:
            out = unset(count, np.uint8)
            check_status(unpack_runs(readonly(data), places * 8 + runs.starts % 8, runs.counts, 1, False, out), "flat")
        return PageValues(FixedWidth(1, out, count), None, count)


@dataclass(frozen=True, slots=True)
class FlatCompressed:
    """Values of whole bytes in a compressed buffer, which is read as a whole."""

    buffer: StoredBuffer
    bits: int
    scheme: str
    recent: LruCache[Bytes]

    @property
    def capacity(self) -> None:
        """Always None: the size is unknown before decompression."""
        return None

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return FixedWidth values."""
        count = runs.count
        if count == 0:
            return PageValues(FixedWidth(self.bits, np.empty(0, np.uint8), 0), None, 0)
        data = yield from self._decompressed()
        if runs.stop > len(data) // (self.bits // 8):
            raise self.buffer.too_short(runs.stop * (self.bits // 8), len(data))
        starts, stops = byte_extents(runs, self.bits)
        if len(starts) == 1:
            return PageValues(FixedWidth(self.bits, data[int(starts[0]) : int(stops[0])], count), None, count)
        out = unset(count * (self.bits // 8), np.uint8)
        join_bytes(readonly(data), starts, stops - starts, out)
        return PageValues(FixedWidth(self.bits, out, count), None, count)

    def _decompressed(self) -> Request[Bytes]:
        data = self.recent.find(self.buffer.offset)
        if data is None:
            packed = yield from self.buffer.read_all()
            data = decompress(self.scheme, packed)
            self.recent.put(self.buffer.offset, data)
        return data


@dataclass(frozen=True, slots=True)
class ConstantArray:
    """One value for all slots."""

    value: bytes

    @property
    def capacity(self) -> None:
        """Always None: any number of values can be read."""
        return None

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return FixedWidth values."""
        yield from ()
        count = runs.count
        if count > MAX_COUNT:
            raise CorruptError("one read cannot return this many values", expected=f"at most {MAX_COUNT}", found=count)
        data = np.tile(np.frombuffer(self.value, np.uint8), count)
        return PageValues(FixedWidth(len(self.value) * 8, data, count), None, count)
