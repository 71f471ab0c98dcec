"""Row selection for Arrow arrays, including types without a pyarrow kernel."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.limits import OVERFLOW, array_limit, check_limit
from lance_duck.arrow.types import is_view
from lance_duck.scan.predicate.tree import Path

_VIEW_BYTES = 16


def keep(array: pa.Array, mask: pa.BooleanArray) -> pa.Array:
    """Return the values for which the mask is true. The mask must not contain nulls."""
    if is_view(array.type):
        return pick(array, nonzero(mask))
    return array.filter(mask)


def pick(array: pa.Array, places: NDArray[np.int64]) -> pa.Array:
    """Return the values at valid indices. View types share their data buffers with the array.

    Raises:
        ArrayLimitError: The repeated values exceed the size limit of an array.
    """
    if not is_view(array.type):
        try:
            return check_limit(array.take(pa.array(places)))
        except OVERFLOW as error:
            raise array_limit(error) from error
    buffers = array.buffers()
    views = np.frombuffer(buffers[1], np.uint8)[array.offset * _VIEW_BYTES :]
    views = views[: len(array) * _VIEW_BYTES].reshape(-1, _VIEW_BYTES)
    validity = None
    if array.null_count:
        validity = pc.take(array.is_valid(), pa.array(places)).buffers()[1]
    buffers_out = [validity, pa.py_buffer(np.ascontiguousarray(views[places])), *buffers[2:]]
    return pa.Array.from_buffers(array.type, len(places), buffers_out)


def nonzero(mask: pa.BooleanArray) -> NDArray[np.int64]:
    """Return the indices for which the mask is true. The mask must not contain nulls."""
    if not len(mask):
        return np.empty(0, np.int64)
    bits = np.frombuffer(mask.buffers()[1], np.uint8)
    flags = np.unpackbits(bits, count=mask.offset + len(mask), bitorder="little")[mask.offset :]
    places: NDArray[np.int64] = np.flatnonzero(flags.view(np.bool_))  # much faster than for integers
    return places


def descend(array: pa.Array, path: Path) -> pa.Array:
    """Return the member of a struct array at a path, or the array itself for (). Null structs give null values."""
    for name in path:
        storage = array.storage if isinstance(array, pa.ExtensionArray) else array
        array = pc.struct_field(storage, [storage.type.get_field_index(name)])
    return array


def row_width(type_: pa.DataType) -> int:
    """Estimate the size of a value from its type, in bytes."""
    if isinstance(type_, pa.BaseExtensionType):
        return row_width(type_.storage_type)
    if pa.types.is_null(type_):
        return 0
    if pa.types.is_struct(type_):
        return sum(row_width(type_.field(i).type) for i in range(type_.num_fields))
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * row_width(type_.value_type)
    if pa.types.is_dictionary(type_):
        return row_width(type_.index_type)
    if pa.types.is_map(type_):
        return 8 * (row_width(type_.key_type) + row_width(type_.item_type))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return 8 + 8 * row_width(type_.value_type)
    if pa.types.is_primitive(type_) or pa.types.is_fixed_size_binary(type_) or pa.types.is_decimal(type_):
        return max(1, int(type_.bit_width) // 8)
    return 32
