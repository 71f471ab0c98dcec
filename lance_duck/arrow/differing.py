"""Compares columns row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def differing(values: pa.ChunkedArray, others: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return a mask of rows in which two columns of the same type differ. NaN equals NaN, and null equals null."""
    if len(values) == 0:
        return np.zeros(0, np.bool_)
    if pa.types.is_nested(values.type) or isinstance(values.type, pa.BaseExtensionType):
        pairs = zip(values.to_pylist(), others.to_pylist(), strict=True)
        return np.array([_is_other(one, other) for one, other in pairs], np.bool_)
    both_null = pc.and_(pc.is_null(values), pc.is_null(others))
    unequal = pc.fill_null(pc.not_equal(values, others), True)
    if pa.types.is_floating(values.type):
        both_nan = pc.fill_null(pc.and_(pc.is_nan(values), pc.is_nan(others)), False)
        unequal = pc.and_not(unequal, both_nan)
    return np.asarray(pc.and_not(unequal, both_null).to_numpy(), np.bool_)


def _is_other(one: Any, other: Any) -> bool:
    """Return whether two Python values differ. NaN equals NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() != other.keys() or any(_is_other(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) != len(other) or any(map(_is_other, one, other))
    is_nan = isinstance(one, float) and isinstance(other, float) and one != one and other != other
    return bool(one != other) and not is_nan
