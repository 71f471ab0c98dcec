"""Converts vector columns to matrices, and defines which rows are searchable.

A vector is a fixed-size list of float16, float32, float64 or bfloat16 numbers. bfloat16 is stored as two bytes. For the
Hamming distance, its items are uint8. Distances are computed with float32.

A row is left out of every index if its vector

- is null or contains a null;
- contains NaN, infinity, or a number that overflows float32;
- is zero, and the metric is cosine.

Without an index, a row is not a neighbour if its distance is NaN or null. Vectors with infinite numbers can be found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.types import storage_type
from lance_duck.errors import InvalidInputError

_BFLOAT16: Final = 2


@dataclass(frozen=True)
class Vectors:
    """Vectors of some rows.

    Attributes:
        values: float32 (n, dim), or uint8 (n, dim) if the column contains unsigned bytes. C-contiguous. Do not modify:
            the array may share the memory of the column. Undefined for rows that are not usable.
        usable: bool (n,), whether each row can be a neighbour.
    """

    values: NDArray[Any]
    usable: NDArray[np.bool_]


def is_vector(type_: pa.DataType) -> bool:
    """Return whether a storage type is a vector type: a fixed-size list of floats, bfloat16 or uint8."""
    if not pa.types.is_fixed_size_list(type_) or type_.list_size < 1:
        return False
    inner = storage_type(type_.value_type)
    return bool(pa.types.is_floating(inner) or inner == pa.uint8() or inner == pa.binary(_BFLOAT16))


def has_byte_items(type_: pa.DataType) -> bool:
    """Return whether the items of a vector type are unsigned bytes. They only support the Hamming distance."""
    return bool(is_vector(type_) and storage_type(type_.value_type) == pa.uint8())


def vectors_of(array: pa.Array | pa.ChunkedArray, type_: pa.DataType | None = None, *, metric: str = "l2") -> Vectors:
    """Return the vectors of a column.

    A float32 array without nulls is not copied, unless it has several chunks.

    Args:
        array: Array for whose storage type `is_vector` is true.
        type_: Type of the column. By default, the type of the array.
        metric: The metric. It determines whether zero vectors are usable.

    Raises:
        InvalidInputError: The array is not a vector column.
    """
    storage = storage_type(array.type if type_ is None else type_)
    if not is_vector(storage):
        raise InvalidInputError("not a vector column", expected="fixed_size_list of floats or uint8", found=storage)
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    values, present = matrix_of(array, storage.list_size)
    usable = np.ones(len(array), np.bool_) if present is None else present
    if values.dtype == np.float32:
        usable &= usable_rows(values, metric)
    return Vectors(values, usable)


def usable_rows(values: NDArray[np.float32], metric: str = "l2") -> NDArray[np.bool_]:
    """Return a mask of the float32 rows that a search can compare: finite and, for cosine, not zero."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", values, values)
    usable: NDArray[np.bool_] = np.isfinite(squares)
    doubtful = np.flatnonzero(~usable)
    if len(doubtful):  # squares of finite numbers may overflow
        usable[doubtful] = np.isfinite(values[doubtful]).all(axis=1)
    if metric == "cosine":
        small = np.flatnonzero(squares == 0)
        if len(small):
            usable[small] = values[small].any(axis=1)
    return usable


def bfloat16_to_float32(halves: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return bfloat16 numbers as float32, by appending 16 zero bits."""
    wide: NDArray[np.float32] = (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return wide


def matrix_of(array: pa.Array, dim: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Convert a fixed-size list array to a matrix (n, dim).

    Returns:
        The matrix, and a mask of the rows without nulls. The mask is None if there are no nulls.
    """
    present = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    items = array.values.slice(array.offset * dim, len(array) * dim)
    if isinstance(items.type, pa.BaseExtensionType):
        items = items.storage
    if items.null_count:
        whole = items.is_valid().to_numpy(zero_copy_only=False).reshape(-1, dim).all(axis=1)
        present = whole if present is None else present & whole
    return np.ascontiguousarray(_numbers(items)).reshape(len(array), dim), present


def _numbers(items: pa.Array) -> NDArray[Any]:
    """Return the numbers of an array as float32 or uint8. Null items have undefined values in the result."""
    width = items.type.bit_width // 8
    data = items.buffers()[1]
    bits = np.dtype(np.uint16) if width == _BFLOAT16 else np.dtype(f"u{width}")
    raw = np.zeros(len(items), bits) if data is None else np.frombuffer(data, bits, len(items), items.offset * width)
    if items.type == pa.uint8():
        return raw
    if items.type == pa.binary(_BFLOAT16):
        return bfloat16_to_float32(raw)
    with np.errstate(over="ignore"):
        return raw.view(f"f{width}").astype(np.float32, copy=False)
