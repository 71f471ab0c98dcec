"""Grouping of values: distinct ones as keys, and the rows of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from lance_duck.index.bitmap.costs import VALUES_SAMPLE
from lance_duck.index.bitmap.entries import BitmapEntries
from lance_duck.index.bitmap.keys import has_numpy_order, sortable, written_order
from lance_duck.index.bitmap.row_maps import RADIX, Names, grouped, maps_of


def entries_of(values: pa.ChunkedArray, rows: Names) -> BitmapEntries:
    """Make entries of values and the rows that have them, which may come in any order and more than once."""
    if not len(values):
        return BitmapEntries(pa.array([], values.type), pa.array([], pa.binary()))
    plain = _as_bits(values)
    keys, ranks = _sorted(values) if _sorts_well(plain) else _hashed(plain, values.type)
    counts, rows = grouped(ranks, rows, len(keys))
    return BitmapEntries(keys, maps_of(counts, rows))


def _sorts_well(values: pa.ChunkedArray) -> bool:
    """Return whether sorting is faster than hashing: values are numbers, and most are distinct."""
    sample = values.slice(0, VALUES_SAMPLE)
    return has_numpy_order(values.type) and not values.null_count and len(sample.unique()) > len(sample) // 2


def _sorted(values: pa.ChunkedArray) -> tuple[pa.Array, NDArray[Any]]:
    """Return the keys in order, and the place of each value's key; by sorting the values."""
    array = values.combine_chunks()
    items = sortable(array).to_numpy(zero_copy_only=False)
    order = np.argsort(items)
    items = items[order]
    first = np.ones(len(items), np.bool_)
    first[1:] = items[1:] != items[:-1]
    rank = np.empty(len(items), np.uint32)
    rank[order] = np.cumsum(first) - 1
    return array.take(pa.array(order[first])), rank


def _hashed(values: pa.ChunkedArray, type_: pa.DataType) -> tuple[pa.Array, NDArray[Any]]:
    """Return the keys in order, and the place of each value's key; by hashing the values."""
    encoded = values.dictionary_encode(null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # older versions return chunks
        encoded = encoded.unify_dictionaries().chunk(0)
    keys = encoded.dictionary if values.type == type_ else encoded.dictionary.view(type_)
    order = written_order(keys)
    rank = np.empty(len(keys), np.uint16 if len(keys) <= RADIX else np.uint32)
    rank[order] = np.arange(len(keys))
    return keys.take(pa.array(order)), rank[encoded.indices.to_numpy(zero_copy_only=False)]


def _as_bits(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the bits of floats as integers: different bit patterns are different keys."""
    if not pt.is_floating(values.type):
        return values
    bits = {2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[values.type.byte_width]
    return pa.chunked_array([chunk.view(bits) for chunk in values.chunks], bits)
