"""Hashes of values for the Bloom filters of a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import has_offsets, has_wide_offsets
from lance_duck.encoding.bloom import Hashes, hash_values
from lance_duck.index.zones.ordering import is_nan


def has_hash(type_: pa.DataType) -> bool:
    """Return whether a hash is defined for values of a storage type."""
    kinds = (pa.types.is_integer, pa.types.is_date, pa.types.is_time, pa.types.is_timestamp)
    return has_offsets(type_) or type_ in (pa.float32(), pa.float64()) or any(is_kind(type_) for is_kind in kinds)


def hashes_of(values: pa.Array) -> Hashes:
    """Return the hash of each value; undefined for a null.

    Args:
        values: Values of a type for which `has_hash` holds.
    """
    count = len(values)
    if not count:
        return np.empty(0, np.uint64)
    if has_offsets(values.type):
        wide = has_wide_offsets(values.type)
        _, places, data = values.buffers()
        offsets = np.frombuffer(places, "<i8" if wide else "<i4")[values.offset : values.offset + count + 1]
        return hash_values(np.frombuffer(data or b"", np.uint8), offsets.astype(np.int64, copy=False))
    width = values.type.bit_width // 8
    data = np.frombuffer(values.buffers()[1], np.uint8)[width * values.offset : width * (values.offset + count)]
    return hash_values(data, np.arange(0, width * count + 1, width))


def hashes_to_find(values: pa.Array) -> Hashes | None:
    """Return the hashes of all values that equal one of some values; None if one of these is NaN: any filter may match.

    Zeros of both signs are equal, but have different hashes; so do the many forms of NaN, which are all equal.
    """
    if not pa.types.is_floating(values.type):
        return hashes_of(values)
    if is_nan(values).any():
        return None
    zeros = pa.array([0.0, -0.0] if pc.any(pc.equal(values, 0.0)).as_py() else [], values.type)
    return np.concatenate([hashes_of(values), hashes_of(zeros)])
