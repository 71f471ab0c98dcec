"""Converts the values of a column to numpy values that sort in the order of predicates, and computes their hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.types import has_offsets, has_wide_offsets
from lance_duck.encoding.bloom import Hashes, hash_values

Values = NDArray[Any]
_INT64_LIKE = (pa.types.is_date64, pa.types.is_time64, pa.types.is_timestamp, pa.types.is_duration)
_INT32_LIKE = (pa.types.is_date32, pa.types.is_time32)


def is_comparable(type_: pa.DataType) -> bool:
    """Return whether `sortable_values` accepts arrays of a storage type."""
    return (
        pa.types.is_boolean(type_)
        or pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or has_offsets(type_)
        or pa.types.is_decimal(type_)
        or (pa.types.is_fixed_size_binary(type_) and type_.byte_width > 0)
        or any(is_like(type_) for is_like in (*_INT64_LIKE, *_INT32_LIKE))
    )


def sortable_values(array: pa.Array) -> Values:
    """Return the values as a numpy array with the same order: numbers, bytes of one width, or bytes objects.

    Args:
        array: Array of a type for which `is_comparable` is true. Results for nulls are undefined.
    """
    type_ = array.type
    if has_offsets(type_):
        items = np.empty(len(array), object)
        items[:] = pc.fill_null(array.cast(pa.large_binary()), b"").to_pylist()
        return items
    if pa.types.is_decimal(type_):
        return _big_endian(array)
    if pa.types.is_fixed_size_binary(type_):
        return _slots(array).view(f"S{type_.byte_width}").ravel()
    if any(is_like(type_) for is_like in _INT64_LIKE):
        array = array.view(pa.int64())
    elif any(is_like(type_) for is_like in _INT32_LIKE):
        array = array.view(pa.int32())
    zero = pa.scalar(False) if pa.types.is_boolean(type_) else pa.scalar(0).cast(array.type)
    if array.null_count:
        array = array.fill_null(zero)
    values: Values = array.to_numpy(zero_copy_only=False)
    return values


def is_nan(array: pa.Array) -> NDArray[np.bool_]:
    """Return a mask of the values that are NaN, with either sign. False for a null."""
    if not pa.types.is_floating(array.type):
        return np.zeros(len(array), np.bool_)
    return np.isnan(sortable_values(array))


def _big_endian(array: pa.Array) -> Values:
    """Return decimals as bytes with the same order: most significant byte first, the sign bit inverted."""
    slots = np.ascontiguousarray(_slots(array)[:, ::-1])
    slots[:, 0] ^= 0x80
    return slots.view(f"S{slots.shape[1]}").ravel()


def _slots(array: pa.Array) -> NDArray[np.uint8]:
    """Return the bytes of each value, uint8 (n, width). Zeros for a null."""
    width = array.type.byte_width
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros((len(array), width), np.uint8)
    all_ = np.frombuffer(data, np.uint8, count=width * len(array), offset=width * array.offset)
    slots = all_.reshape(len(array), width).copy()
    slots[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return slots


def has_hash(type_: pa.DataType) -> bool:
    """Return whether a hash is defined for values of a storage type."""
    kinds = (pa.types.is_integer, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp)
    return has_offsets(type_) or type_ in (pa.float32(), pa.float64()) or any(is_kind(type_) for is_kind in kinds)


def hashes_of(values: pa.Array) -> Hashes:
    """Return the hash of each value. Undefined for a null.

    Args:
        values: Values of a type for which `has_hash` is true.
    """
    count = len(values)
    if not count:
        return np.empty(0, np.uint64)
    if has_offsets(values.type):
        wide = has_wide_offsets(values.type)
        _, places, data = values.buffers()
        offsets = np.frombuffer(places, "<i8" if wide else "<i4")[values.offset : values.offset + count + 1]
        return hash_values(np.frombuffer(data or b"", np.uint8), offsets.astype(np.int64, copy=False))
    width = values.type.bit_width // 8
    data = np.frombuffer(values.buffers()[1], np.uint8)[width * values.offset : width * (values.offset + count)]
    return hash_values(data, np.arange(0, width * count + 1, width))


def hashes_to_find(values: pa.Array) -> Hashes | None:
    """Return the hashes of all values that equal one of the given values.

    0.0 and -0.0 are equal, but have different hashes. NaN has many bit patterns, each with a different hash.

    Returns:
        The hashes, or None if a value is NaN, because every filter may then match.
    """
    if not pa.types.is_floating(values.type):
        return hashes_of(values)
    if is_nan(values).any():
        return None
    zeros = pa.array([0.0, -0.0] if pc.any(pc.equal(values, 0.0)).as_py() else [], values.type)
    return np.concatenate([hashes_of(values), hashes_of(zeros)])
