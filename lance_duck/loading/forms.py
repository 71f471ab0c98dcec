"""Batches of rows as arrays of other libraries, without copies if Arrow supports this."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import is_number
from lance_duck.errors import InvalidInputError, UnsupportedError

_BFLOAT16: Final = "lance.bfloat16"


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, or of number arrays with one shape.

    Attributes:
        values: All numbers, without nulls. Times are ticks, and bfloat16 values are uint16 bits.
        shape: Number of rows, then the shape of the array in each row.
        is_bfloat16: Whether the values are bits of bfloat16.
    """

    values: pa.Array
    shape: tuple[int, ...]
    is_bfloat16: bool = False


def numbers_of_column(array: pa.Array, field: pa.Field) -> Numbers | None:
    """Return a column as numbers. Returns None if its type is not supported.

    Nulls of floats become NaN.

    Args:
        array: The column.
        field: Name, type and metadata of the column.

    Raises:
        InvalidInputError: A column of integers, booleans, times or arrays contains a null.
    """
    name, lengths = field.name, []
    if isinstance(array.type, pa.FixedShapeTensorType) and _is_row_major(array.type):
        _refuse_nulls(array, name)
        lengths += array.type.shape
        field, array = array.type.storage_type.value_field, array.storage.flatten()
    while pa.types.is_fixed_size_list(array.type):
        _refuse_nulls(array, name)
        lengths.append(array.type.list_size)
        field, array = array.type.value_field, array.flatten()
    is_bfloat16 = _is_bfloat16(field)
    if is_bfloat16:
        _refuse_nulls(array, name)
        array = (array.storage if isinstance(array, pa.ExtensionArray) else array).view(pa.uint16())
    elif pa.types.is_temporal(array.type) and not pa.types.is_interval(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    if not (is_number(array.type) or pa.types.is_boolean(array.type)):
        return None
    if array.null_count and pa.types.is_floating(array.type):
        array = pc.fill_null(array, pa.scalar(float("nan"), array.type))
    _refuse_nulls(array, name)
    rows = len(array)
    for length in lengths:
        rows //= max(length, 1)
    return Numbers(array, (rows, *lengths), is_bfloat16)


def to_numpy(batch: pa.RecordBatch) -> dict[str, Any]:
    """Return a batch as numpy arrays, by column. Arrays that share the batch's memory are read-only.

    Fixed-size lists become matrices, and fixed-shape tensors arrays of their shape. bfloat16 becomes float32, and times
    become datetime64 and timedelta64. Other types, such as strings and variable-length lists, become lists of Python
    objects.

    Raises:
        InvalidInputError: A column of integers, booleans, times or arrays contains a null.
    """
    return {field.name: _numpy(batch.column(place), field) for place, field in enumerate(batch.schema)}


def to_jax(batch: pa.RecordBatch) -> dict[str, Any]:
    """Return a batch as JAX arrays, by column: see `to_numpy`.

    64-bit types become 32-bit types, unless `jax_enable_x64` is set.

    Raises:
        UnsupportedError: JAX is not installed.
        InvalidInputError: See `to_numpy`.
    """
    try:
        import jax
    except ImportError as error:
        raise UnsupportedError("jax is not installed", where="to_jax", remedy="pip install jax") from error
    return {
        name: jax.numpy.asarray(_narrow(array, jax.config.jax_enable_x64)) if _is_numeric(array) else array
        for name, array in to_numpy(batch).items()
    }


FORMS: Final[Mapping[str, Callable[[pa.RecordBatch], Any]]] = MappingProxyType(
    {"arrow": lambda batch: batch, "numpy": to_numpy, "jax": to_jax}
)


def _is_row_major(type_: pa.FixedShapeTensorType) -> bool:
    """Return whether the dimension order of tensors matches their memory layout."""
    order = type_.permutation
    return order is None or list(order) == list(range(len(type_.shape)))


def _numpy(array: pa.Array, field: pa.Field) -> Any:
    if pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type) or pa.types.is_date(array.type):
        _refuse_nulls(array, field.name)
        return array.to_numpy(zero_copy_only=False)
    numbers = numbers_of_column(array, field)
    if numbers is None:
        return array.to_pylist()
    flat = numbers.values.to_numpy(zero_copy_only=False)
    if numbers.is_bfloat16:
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    return flat.reshape(numbers.shape)


def _is_bfloat16(field: pa.Field) -> bool:
    """Return whether a field is bfloat16, including two-byte values of the unregistered extension type."""
    if isinstance(field.type, pa.BaseExtensionType):
        return bool(field.type.extension_name == _BFLOAT16)
    return (field.metadata or {}).get(b"ARROW:extension:name") == _BFLOAT16.encode()


def _is_numeric(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "biuf"


def _narrow(array: np.ndarray[Any, Any], wide: bool) -> np.ndarray[Any, Any]:
    """Convert a 64-bit array to 32 bits unless `wide`."""
    return array if wide or array.dtype.itemsize < 8 else array.astype(f"{array.dtype.kind}4")


def _refuse_nulls(array: pa.Array, name: str) -> None:
    if array.null_count:
        remedy = f'leave these rows out, by filter="{name} IS NOT NULL"'
        raise InvalidInputError(
            "the column contains nulls, which arrays cannot hold", where=f"column {name}", remedy=remedy
        )
