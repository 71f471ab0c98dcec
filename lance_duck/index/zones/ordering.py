"""Values as numpy arrays whose order is that of predicates; NaN aside, which must not be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.types import has_offsets

Values = NDArray[Any]

_INT64_LIKE = (pa.types.is_date64, pa.types.is_time64, pa.types.is_timestamp, pa.types.is_duration)
_INT32_LIKE = (pa.types.is_date32, pa.types.is_time32)


def is_comparable(type_: pa.DataType) -> bool:
    """Return whether `sortable_values` takes arrays of a storage type."""
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
        array: Array of a type for which `is_comparable` holds. Results for nulls are undefined.
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
    """Return whether each value is NaN, of either sign; False for a null."""
    if not pa.types.is_floating(array.type):
        return np.zeros(len(array), np.bool_)
    return np.isnan(sortable_values(array))


def _big_endian(array: pa.Array) -> Values:
    """Return decimals as bytes with the same order: most significant byte first, the sign bit inverted."""
    slots = np.ascontiguousarray(_slots(array)[:, ::-1])
    slots[:, 0] ^= 0x80
    return slots.view(f"S{slots.shape[1]}").ravel()


def _slots(array: pa.Array) -> NDArray[np.uint8]:
    """Return the bytes of each value, uint8 (n, width); zeros for a null."""
    width = array.type.byte_width
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros((len(array), width), np.uint8)
    all_ = np.frombuffer(data, np.uint8, count=width * len(array), offset=width * array.offset)
    slots = all_.reshape(len(array), width).copy()
    slots[array.is_null().to_numpy(zero_copy_only=False)] = 0
    return slots
