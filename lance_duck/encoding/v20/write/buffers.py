"""Collects the buffers of a 2.0 page that is being written, and extracts bytes from an array's own buffers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings20_pb2 as pb


class BuffersOut:
    """Buffers of one page, in the order of their indices."""

    def __init__(self) -> None:
        self._buffers: list[Bytes] = []

    def add(self, data: Bytes) -> pb.Buffer:
        """Add a buffer, and return the message that refers to it."""
        self._buffers.append(data)
        return pb.Buffer(buffer_index=len(self._buffers) - 1, buffer_type=pb.Buffer.page)

    def taken(self) -> tuple[Bytes, ...]:
        """Return all buffers."""
        return tuple(self._buffers)


def flat(buffers: BuffersOut, data: Bytes, bits: int, compression: pb.Compression | None = None) -> pb.ArrayEncoding:
    """Store `data` as flat values of `bits` bits, and return their encoding."""
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=buffers.add(data), compression=compression))


def no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Describe values without nulls."""
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def some_nulls(validity: pb.ArrayEncoding, values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Describe values that are null if their bit in `validity` is 0."""
    return pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=pb.Nullable.SomeNull(validity=validity, values=values)))


def all_nulls() -> pb.ArrayEncoding:
    """Describe an array of nulls."""
    return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))


def uint64s(buffers: BuffersOut, values: np.ndarray) -> pb.ArrayEncoding:
    """Encode unsigned integers of 64 bits, without nulls."""
    return no_nulls(flat(buffers, values.astype("<u8").view(np.uint8), 64))


def value_bytes(array: pa.Array, width: int) -> Bytes:
    """Return the values of an array, `width` bytes each, as a view."""
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array) * width, np.uint8)
    return np.frombuffer(data, np.uint8)[array.offset * width : (array.offset + len(array)) * width]


def validity_bits(array: pa.Array) -> Bytes:
    """Return the validity bitmap of an array with nulls: a bit for each value, 1 if valid."""
    return bits(array.buffers()[0], array.offset, len(array))


def bits(buffer: pa.Buffer | None, offset: int, count: int) -> Bytes:
    """Return `count` bits, starting at bit `offset`. They are copied unless they begin at a byte boundary."""
    if buffer is None:
        return np.zeros((count + 7) // 8, np.uint8)
    data = np.frombuffer(buffer, np.uint8)[offset // 8 : (offset + count + 7) // 8]
    if offset % 8 == 0:
        return data
    return np.packbits(np.unpackbits(data, bitorder="little")[offset % 8 :][:count], bitorder="little")


def valid_bytes(array: pa.Array) -> Bytes:
    """Return the validity of an array with nulls: a byte for each value, 1 if valid."""
    return np.unpackbits(validity_bits(array), count=len(array), bitorder="little")
