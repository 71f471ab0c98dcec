"""Replacement of an array's values in some places, at any depth of structs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.types import is_view, with_type
from lance_duck.encoding.arrow.dictionaries import concatenate

Offsets = NDArray[np.int64]


def replace_cells(
    array: pa.Array, path: Sequence[int], places: Sequence[Offsets], values: Sequence[pa.Array]
) -> pa.Array:
    """Return an array in which the unit at a path has new values in some places."""
    if not path:
        sources = np.arange(len(array))
        sources[np.concatenate(places)] = len(array) + np.arange(sum(map(len, values)))
        return _picked(concatenate([array, *(with_type(storage_of(each), array.type) for each in values)]), sources)
    storage = storage_of(array)
    children = [storage.field(place) for place in range(storage.type.num_fields)]
    children[path[0]] = replace_cells(children[path[0]], path[1:], places, values)
    mask = storage.is_null() if storage.null_count else None
    return with_type(pa.StructArray.from_arrays(children, fields=list(storage.type), mask=mask), array.type)


def _picked(array: pa.Array, places: Offsets) -> pa.Array:
    """Take values by their places, each at most once; pyarrow's own kernel does not take views."""
    if not is_view(array.type):
        return array.take(pa.array(places))
    flat = pa.large_string() if pa.types.is_string_view(array.type) else pa.large_binary()
    return array.cast(flat).take(pa.array(places)).cast(array.type)


def storage_of(array: pa.Array) -> pa.Array:
    """Return the values that an extension array stores; others as they are."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array
