"""Converts values to keys that sort in the order of the file's entries.

Types that are stored as integers have the order of integers. False sorts before true. Floats have the total order of
IEEE 754: -NaN, -inf … -0.0, 0.0 … inf, NaN. Strings, binary and fixed-size binary values are ordered bytewise, and
decimals by value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.types import has_wide_offsets
from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.keys.search import descent, find_bytes

Int64s = NDArray[np.int64]


class BTreeKeys(Protocol):
    """A sequence of keys without nulls."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""

    def places(self, targets: Self, after_equal: bool) -> Int64s:
        """Return the number of keys below each target. With `after_equal`, keys that equal the target also count."""

    def part(self, start: int, stop: int) -> Self:
        """Return the keys at positions start … stop - 1, without copying them."""

    def take(self, places: Int64s) -> Self:
        """Return the keys at the given positions."""

    def equals(self, other: Self) -> bool:
        """Return whether both sequences contain the same keys in the same order."""

    def ascending(self) -> Self:
        """Return the keys, sorted."""

    def is_ascending(self) -> bool:
        """Return whether each key is at least as great as the one before it."""


class FixedKeys:
    """Integer keys, or keys of a fixed byte width.

    Args:
        array: Integers, or bytes ("S16").
    """

    __slots__ = ("array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return int(self.array.nbytes)

    def places(self, targets: FixedKeys, after_equal: bool) -> Int64s:
        """See `BTreeKeys`."""
        return self.array.searchsorted(targets.array, "right" if after_equal else "left")

    def part(self, start: int, stop: int) -> FixedKeys:
        """See `BTreeKeys`."""
        return FixedKeys(self.array[start:stop])

    def take(self, places: Int64s) -> FixedKeys:
        """See `BTreeKeys`."""
        return FixedKeys(self.array[places])

    def equals(self, other: FixedKeys) -> bool:
        """See `BTreeKeys`."""
        return len(self) == len(other) and bool((self.array == other.array).all())

    def ascending(self) -> FixedKeys:
        """See `BTreeKeys`."""
        return FixedKeys(np.sort(self.array)) if len(self) > 1 else self

    def is_ascending(self) -> bool:
        """See `BTreeKeys`."""
        return bool((self.array[1:] >= self.array[:-1]).all())


class ByteKeys:
    """Keys of variable byte length.

    Args:
        offsets: int32 or int64 (keys + 1,), offsets into `data`.
        data: uint8, the bytes of all keys.
    """

    __slots__ = ("data", "offsets")

    def __init__(self, offsets: NDArray[Any], data: NDArray[np.uint8]) -> None:
        self.offsets = offsets
        self.data = data

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return int(self.offsets.nbytes + self.data.nbytes)

    def places(self, targets: ByteKeys, after_equal: bool) -> Int64s:
        """See `BTreeKeys`."""
        places = np.empty(len(targets), np.int64)
        status.check_status(
            find_bytes(self.offsets, self.data, targets.offsets, targets.data, after_equal, places), "B-tree"
        )
        return places

    def part(self, start: int, stop: int) -> ByteKeys:
        """See `BTreeKeys`."""
        return ByteKeys(self.offsets[start : stop + 1], self.data)

    def take(self, places: Int64s) -> ByteKeys:
        """See `BTreeKeys`."""
        return _byte_keys(self.array().take(places))

    def equals(self, other: ByteKeys) -> bool:
        """See `BTreeKeys`."""
        return bool(self.array().equals(other.array()))

    def ascending(self) -> ByteKeys:
        """See `BTreeKeys`."""
        return self.take(pc.sort_indices(self.array())) if len(self) > 1 else self

    def is_ascending(self) -> bool:
        """See `BTreeKeys`."""
        return descent(self.offsets, self.data) < 0

    def array(self) -> pa.Array:
        """Return the keys as large_binary, without copying their bytes."""
        type_ = pa.binary() if self.offsets.dtype == np.int32 else pa.large_binary()
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(type_, len(self), buffers).cast(pa.large_binary())


def key_maker(type_: pa.DataType) -> Callable[[pa.Array], BTreeKeys] | None:
    """Return a function that converts arrays without nulls to keys. Returns None if the type is not ordered."""
    dtype = _STORED.get(type_)
    if dtype is not None:
        return _float_maker(dtype) if dtype.kind == "f" else lambda values: FixedKeys(_stored(values, dtype))
    if pa.types.is_timestamp(type_) or pa.types.is_duration(type_):
        return lambda values: FixedKeys(_stored(values, _INT64))
    if pa.types.is_boolean(type_):
        return lambda values: FixedKeys(_stored(values.cast(pa.uint8()), _UINT8))
    if pa.types.is_decimal128(type_) or pa.types.is_decimal256(type_):
        return _decimal_maker(type_.byte_width)
    if pa.types.is_fixed_size_binary(type_) and type_.byte_width > 0:
        width = np.dtype(f"S{type_.byte_width}")
        return lambda values: FixedKeys(_stored(values, width))
    return _byte_keys if has_prefixes(type_) else None


def has_prefixes(type_: pa.DataType) -> bool:
    """Return whether values are strings or binary values of variable length."""
    return type_ in _TEXTS


def float_dtype(type_: pa.DataType) -> np.dtype[Any]:
    """Return the dtype of a float type."""
    return _STORED[type_]


def float_keys(values: NDArray[Any]) -> NDArray[Any]:
    """Return signed integers that sort in the total order of floats.

    All bits of negative floats are flipped except the sign.
    """
    bits = values.view(f"i{values.itemsize}")
    last = 8 * values.itemsize - 1
    keys: NDArray[Any] = bits ^ ((bits >> last) & np.iinfo(bits.dtype).max)
    return keys


_INT64: Final = np.dtype(np.int64)
_UINT8: Final = np.dtype(np.uint8)
_TEXTS: Final = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
_STORED: Final[dict[pa.DataType, np.dtype[Any]]] = {
    pa.int8(): np.dtype(np.int8),
    pa.int16(): np.dtype(np.int16),
    pa.int32(): np.dtype(np.int32),
    pa.int64(): _INT64,
    pa.uint8(): _UINT8,
    pa.uint16(): np.dtype(np.uint16),
    pa.uint32(): np.dtype(np.uint32),
    pa.uint64(): np.dtype(np.uint64),
    pa.float16(): np.dtype(np.float16),
    pa.float32(): np.dtype(np.float32),
    pa.float64(): np.dtype(np.float64),
    pa.date32(): np.dtype(np.int32),
    pa.date64(): _INT64,
    pa.time32("s"): np.dtype(np.int32),
    pa.time32("ms"): np.dtype(np.int32),
    pa.time64("us"): _INT64,
    pa.time64("ns"): _INT64,
}


def _stored(values: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return a view of the fixed-width values."""
    if not len(values):
        return np.empty(0, dtype)
    return np.frombuffer(values.buffers()[1], dtype, len(values), values.offset * dtype.itemsize)


def _float_maker(dtype: np.dtype[Any]) -> Callable[[pa.Array], BTreeKeys]:
    return lambda values: FixedKeys(float_keys(_stored(values, dtype)))


def _decimal_maker(width: int) -> Callable[[pa.Array], BTreeKeys]:
    """Return a function that converts decimals to keys: big-endian bytes with the sign bit flipped."""

    def keys(values: pa.Array) -> FixedKeys:
        raw = _stored(values, np.dtype((np.uint8, (width,))))
        turned = np.ascontiguousarray(raw[:, ::-1])
        turned[:, 0] ^= 0x80
        return FixedKeys(turned.view(f"S{width}")[:, 0])

    return keys


def _byte_keys(values: pa.Array) -> ByteKeys:
    large = has_wide_offsets(values.type)
    dtype = np.dtype(np.int64 if large else np.int32)
    if not len(values):
        return ByteKeys(readonly(np.zeros(1, dtype)), readonly(np.empty(0, np.uint8)))
    _, offsets, data = values.buffers()
    places = np.frombuffer(offsets, dtype, len(values) + 1, values.offset * dtype.itemsize)
    return ByteKeys(readonly(places), readonly(np.frombuffer(data or b"", np.uint8)))
