"""Converts values to types that Arrow compares and hashes with the semantics of predicates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.decimals import without_negative_scale

# Arrow can compare string and binary views since version 26. In earlier versions, they are converted to plain types.
_VIEWS_COMPARE: Final = int(pa.__version__.split(".")[0]) >= 26
PLAIN_FORM: Final = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def comparable(array: pa.Array) -> pa.Array:
    """Return the values in a type that Arrow can compare."""
    if pa.types.is_float16(array.type):
        return array.cast(pa.float32())
    if pa.types.is_decimal(array.type) and array.type.scale < 0:
        return array.cast(without_negative_scale(array.type))
    if not _VIEWS_COMPARE and array.type in PLAIN_FORM:
        return array.cast(PLAIN_FORM[array.type])
    return array


def hashable(array: pa.Array, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return both arrays in a type that pyarrow can hash, so that equal values have equal hashes."""
    type_ = array.type
    if pa.types.is_floating(type_):
        return one_zero_one_nan(array), one_zero_one_nan(values)
    for kind, plain in _HASHABLE:
        if kind(type_):
            target = plain(type_)
            return array.cast(target), values.cast(target)
    return array, values


def one_zero_one_nan(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return floats with one bit pattern for both zeros and one for all NaN, so that equal values have equal bits."""
    summed = pc.add(array, pa.scalar(0.0, array.type))
    nans = pc.is_nan(summed)
    return pc.if_else(nans, pa.scalar(math.nan, array.type), summed) if pc.any(nans).as_py() else summed


_HASHABLE: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...]] = (
    (pa.types.is_string_view, lambda _: pa.large_string()),
    (pa.types.is_binary_view, lambda _: pa.large_binary()),
    (lambda t: pa.types.is_decimal32(t) or pa.types.is_decimal64(t), lambda t: pa.decimal128(t.precision, t.scale)),
)
