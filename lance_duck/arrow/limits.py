"""The limit of 32-bit offsets for one Arrow array of strings, bytes or lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import MAX_INT32, has_offsets, has_wide_offsets
from lance_duck.errors import ArrayLimitError

_T = TypeVar("_T")

MOST_BYTES: int = MAX_INT32
"""Maximum size of a string or binary array in bytes, or of a list array in items. Tests lower it."""

OVERFLOW: Final = (pa.ArrowInvalid, pa.ArrowCapacityError)
"""pyarrow's errors for arrays that would become too large."""


def array_limit(found: object, where: object = None) -> ArrayLimitError:
    """Return the error for rows that one array cannot hold."""
    return ArrayLimitError(
        "the rows do not fit one Arrow array",
        where=where,
        expected=f"at most {MOST_BYTES} bytes or items, and dictionaries within their index type",
        found=found,
        remedy="read fewer rows at a time, for example with to_batches",
    )


def check_count(count: int, where: object = None) -> None:
    """Raise ArrayLimitError if 32-bit offsets cannot count this many bytes or items."""
    if count > MOST_BYTES:
        raise array_limit(count, where)


def check_limit(array: pa.Array) -> pa.Array:
    """Return the array. Raises ArrayLimitError if its strings, bytes or lists exceed the limit."""
    if array.get_total_buffer_size() > MOST_BYTES:
        _check(array)
    return array


def in_halves(read: Callable[[int, int], list[_T]], start: int, stop: int) -> list[_T]:
    """Return the results of reading rows from `start` to before `stop`, in order.

    The size of strings is known only after decoding, and the number of shared dictionary entries only after a join of
    the dictionaries. All rows are therefore read together first. If one array cannot hold them, each half is read
    separately.

    Args:
        read: Reads a range of rows.
        start: First row.
        stop: One past the last row.

    Raises:
        ArrayLimitError: A single row is too large.
    """
    try:
        return read(start, stop)
    except ArrayLimitError:
        if stop - start < 2:
            raise
    middle = (start + stop) // 2
    return in_halves(read, start, middle) + in_halves(read, middle, stop)


def _check(array: pa.Array) -> None:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type_ = array.type
    if not len(array):
        return
    if pa.types.is_dictionary(type_):
        _check(array.dictionary)
    elif has_offsets(type_) and not has_wide_offsets(type_):
        offsets = np.frombuffer(array.buffers()[1], np.int32)
        check_count(int(offsets[array.offset + len(array)]) - int(offsets[array.offset]))
    elif pa.types.is_struct(type_):
        for place in range(type_.num_fields):
            _check(array.field(place))
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_map(type_):
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        if not pa.types.is_large_list(type_):
            check_count(last - first)
        _check(array.values.slice(first, last - first))
    elif pa.types.is_fixed_size_list(type_):
        _check(array.values.slice(array.offset * type_.list_size, len(array) * type_.list_size))
