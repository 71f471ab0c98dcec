"""Lists and maps: item offsets, and nested struct fields as lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.types import is_list


def offsets_of(values: pa.Array) -> NDArray[np.integer]:
    """Return the offsets of lists or maps, one more than their number: int32, or int64 for large lists.

    Arrow allows an empty offset buffer for an array without lists, as written by Java, but pyarrow would read past its
    end.
    """
    if not len(values):
        return np.zeros(1, np.int64 if pa.types.is_large_list(values.type) else np.int32)
    offsets: NDArray[np.integer] = values.offsets.to_numpy()
    return offsets


def values_below(values: pa.Array, names: Sequence[str]) -> pa.Array:
    """Return the values of a nested struct field, inside one large_list for each list on the path.

    A null struct gives a null. Extension arrays give their storage.

    Args:
        values: Lists of structs, or structs of nested lists. Returned unchanged if `names` is empty.
        names: Struct fields on the path, outermost first. Lists between them are implicit.
    """
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if not names:
        return values
    if pa.types.is_struct(values.type):
        return values_below(pc.struct_field(values, names[0]), names[1:])
    assert is_list(values.type)
    sizes = pc.list_value_length(values).fill_null(0).cast(pa.int64())
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(sizes)])
    mask = values.is_null() if values.null_count else None
    return pa.LargeListArray.from_arrays(offsets, values_below(values.flatten(), names), mask=mask)
