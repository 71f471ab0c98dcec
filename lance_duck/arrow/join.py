"""Concatenates any number of arrays, including none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray


def joined(arrays: Iterable[NDArray[Any]], dtype: DTypeLike) -> NDArray[Any]:
    """Concatenate numpy arrays. The result is always a copy.

    Args:
        arrays: Arrays of the dtype, (n,) each.
        dtype: Dtype of the empty result, (0,), if `arrays` is empty.
    """
    pieces = list(arrays)
    return np.concatenate(pieces) if pieces else np.empty(0, dtype)


def joined_arrays(arrays: Iterable[pa.Array], type_: pa.DataType) -> pa.Array:
    """Concatenate Arrow arrays. The result is always a copy.

    Args:
        arrays: Arrays of the type. For dictionaries, see `encoding.arrow.dictionaries.concatenate`.
        type_: Type of the result, even if `arrays` is empty.
    """
    return pa.concat_arrays([pa.nulls(0, type_), *arrays])
