"""Columns of a segment's files, read with their types checked and without nulls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.files import SegmentFile


def read_columns(
    file: SegmentFile, types: Mapping[str, pa.DataType], rows: NDArray[np.int64] | None = None
) -> list[pa.Array]:
    """Return columns, read in one round.

    Args:
        file: File of a segment.
        types: The columns, and the type that each must have.
        rows: Ascending places; None: all.

    Raises:
        CorruptError: A column is missing, has another type, or has nulls.
    """
    for name, type_ in types.items():
        file.column(name, type_)
    arrays = file.read(list(types), rows)
    for name, array in zip(types, arrays, strict=True):
        if array.null_count:
            raise CorruptError(f"nulls in column {name!r}", where=file.path, found=array.null_count)
    return arrays


def numbers_without_nulls(array: pa.Array) -> NDArray[Any]:
    """Return numbers without nulls, not to be changed."""
    values: NDArray[Any] = array.to_numpy(zero_copy_only=True)
    return values


def single(array: pa.Array, where: str) -> pa.Array:
    """Return a column that must have one row. Raises CorruptError."""
    if len(array) != 1:
        raise CorruptError("rows", where=where, expected=1, found=len(array))
    return array
