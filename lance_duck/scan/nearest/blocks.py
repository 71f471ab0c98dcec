"""Vectors of Arrow arrays as matrices, without a copy if the dtypes match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.kernels.jit import readonly
from lance_duck.scan.nearest.options import VectorColumn


@dataclass(frozen=True)
class Block:
    """A block of vectors.

    Attributes:
        values: (n, dim) of the column's dtype, C-contiguous. Do not modify.
        valid: bool (n,), whether the vector and all its numbers are not null. None if all vectors are valid.
    """

    values: NDArray[Any]
    valid: NDArray[np.bool_] | None


def block_of(array: pa.Array, column: VectorColumn) -> Block:
    """Return the vectors of a column array. The array may have the Arrow type of the file or of the column."""
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    start, stop = array.offset * column.dim, (array.offset + len(array)) * column.dim
    inner = array.values.slice(start, stop - start)
    valid: NDArray[np.bool_] | None = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = inner.storage if isinstance(inner, pa.ExtensionArray) else inner
    if numbers.null_count:
        whole: NDArray[np.bool_] = numbers.is_valid().to_numpy(zero_copy_only=False).reshape(-1, column.dim).all(1)
        valid = whole if valid is None else valid & whole
    return Block(readonly(_numbers(numbers, column).reshape(len(array), column.dim)), valid)


def _numbers(array: pa.Array, column: VectorColumn) -> NDArray[Any]:
    type_ = array.type
    width = type_.bit_width // 8
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), column.dtype)
    raw = np.frombuffer(data, np.uint8, len(array) * width, array.offset * width)
    if pa.types.is_fixed_size_binary(type_):  # bfloat16: the upper half of a float32
        return (raw.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
    if pa.types.is_float16(type_):
        return raw.view(np.float16).astype(np.float32)
    return raw.view(column.dtype)
