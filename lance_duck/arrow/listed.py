"""Values of fields of structs in lists, as lists."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import is_list


def values_below(values: pa.Array, names: Sequence[str]) -> pa.Array:
    """Return the values of a field of structs, which lists are around: one large_list for each of these.

    A struct that is null has a null there. Extension types give their storage.

    Args:
        values: Lists of structs, or structs of such lists; without names, what is returned as it is.
        names: Struct fields on the way; lists between them are gone through.
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
