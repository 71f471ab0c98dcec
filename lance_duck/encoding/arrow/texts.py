"""Strings and binary values as Arrow arrays: with offsets or as views, optionally looked up in a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow import limits
from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import MAX_INT32, has_wide_offsets, is_bytes, is_view
from lance_duck.encoding.block import Dictionary, VariableWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.texts.strings import (
    SLACK,
    Offsets,
    expand_bytes,
    expand_offsets,
    expand_views,
    is_ascii,
    string_views,
)
from lance_duck.kernels.texts.variable import ascending_within


def texts_to_arrow(block: VariableWidth, arrow_type: pa.DataType, bitmap: pa.Buffer | None, where: str) -> pa.Array:
    """Return variable-length values as an array. Strings are checked for valid UTF-8, because consumers rely on it.

    Raises:
        CorruptError: The type is not a string or binary type, an offset points outside the data, or a string is not
            UTF-8.
        ArrayLimitError: There are more bytes than 32-bit offsets can address.
    """
    array = _to_arrow(block, arrow_type, bitmap, where)
    if not is_bytes(arrow_type):
        check_utf8(array, block, where)
    return array


def check_utf8(array: pa.Array, block: VariableWidth, where: str) -> None:
    """Check that the non-null strings of an array are UTF-8. Costs almost nothing if `block`, their source, is ASCII.

    Raises:
        CorruptError: A text is not UTF-8.
    """
    if is_ascii(readonly(block.data[int(block.offsets[0]) : int(block.offsets[-1])])):
        return
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CorruptError("the string is not valid UTF-8", where=where, found=str(error)) from error


def _to_arrow(block: VariableWidth, arrow_type: pa.DataType, bitmap: pa.Buffer | None, where: str) -> pa.Array:
    offsets = block.offsets
    if len(offsets) == 0 or offsets[0] < 0 or offsets[-1] > len(block.data):
        raise CorruptError(
            "the offsets of the values are invalid", where=where, expected=f"offsets from 0 to {len(block.data)}"
        )
    if has_wide_offsets(arrow_type):
        places = pa.py_buffer(offsets.astype(np.int64, copy=False))
        return pa.Array.from_buffers(arrow_type, block.count, [bitmap, places, pa.py_buffer(block.data)])
    if offsets[-1] > limits.MOST_BYTES:  # offsets also count preceding, unrequested values
        first = int(offsets[0])
        limits.check_count(int(offsets[-1]) - first, where)
        block = VariableWidth(offsets - first, block.data[first:])
        offsets = block.offsets
    if is_view(arrow_type):
        data = block.data[: int(offsets[-1])]
        buffers = [bitmap, pa.py_buffer(_views(data, offsets, where)), pa.py_buffer(data)]
    elif pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type):
        buffers = [bitmap, pa.py_buffer(offsets.astype(np.int32, copy=False)), pa.py_buffer(block.data)]
    else:
        sizes = "values of any length"
        raise CorruptError("values do not fit the type of the column", where=where, expected=arrow_type, found=sizes)
    return pa.Array.from_buffers(arrow_type, block.count, buffers)


def looked_up_texts(
    items: VariableWidth, block: Dictionary, arrow_type: pa.DataType, bitmap: pa.Buffer | None, where: str
) -> pa.Array:
    """Expand dictionary indices to an array of the items. String views share the bytes of the items.

    Raises:
        CorruptError: The type is not a string or binary type, or an offset points outside the data.
        ArrayLimitError: There are more bytes than 32-bit offsets can address.
    """
    indices = readonly(block.indices)
    if not is_view(arrow_type):
        return texts_to_arrow(_expand(items, indices, where), arrow_type, bitmap, where)
    if not is_bytes(arrow_type):
        texts_to_arrow(items, arrow_type, None, where)
    limits.check_count(int(items.offsets[-1]), where)
    data = items.data[: int(items.offsets[-1])]
    out = unset(2 * block.count, np.uint64).reshape(-1, 2)
    expand_views(_views(data, items.offsets, where), indices, out)
    return pa.Array.from_buffers(arrow_type, block.count, [bitmap, pa.py_buffer(out), pa.py_buffer(data)])


def _views(data: Bytes, offsets: Offsets, where: str) -> NDArray[np.uint64]:
    views = unset(2 * (len(offsets) - 1), np.uint64).reshape(-1, 2)
    if not string_views(readonly(data), readonly(offsets), views):
        raise CorruptError(
            "the offsets of the values are invalid", where=where, expected=f"ascending offsets, at most {len(data)}"
        )
    return views


def _expand(items: VariableWidth, indices: NDArray[np.unsignedinteger], where: str) -> VariableWidth:
    data = readonly(items.data)
    ends: NDArray[Any] = readonly(items.offsets)
    if not ascending_within(ends, len(data)):
        raise CorruptError(
            "the offsets of a dictionary are invalid", where=where, expected=f"ascending offsets, at most {len(data)}"
        )
    longest = int(np.diff(ends).max()) if items.count else 0
    size = len(indices) + 1
    fits = longest * len(indices) <= MAX_INT32
    offsets: Offsets = unset(size, np.int32 if fits else np.int64)
    expand_offsets(ends, indices, offsets)
    total = int(offsets[-1])
    out = unset(total + SLACK, np.uint8)
    expand_bytes(data, ends, indices, offsets, out)
    return VariableWidth(offsets, out[:total])
