"""Tests whether lists contain values, one array at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.scan.predicate.ordering import comparable, hashable
from lance_duck.scan.predicate.types import compared_type


def item_type(type_: pa.DataType) -> pa.DataType:
    """Return the comparison type of the items of a list type."""
    return compared_type(type_.value_type)


def has_any(lists: pa.Array, values: pa.Array) -> pa.BooleanArray:
    """Return whether each list contains any of the values. A null list gives null.

    Args:
        lists: Lists of a type for which `is_list` is true.
        values: Values of the `item_type` of this type, without nulls.
    """
    items, starts, stops = _flat(lists)
    items, values = hashable(items, values)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(_to_numpy(pc.is_in(items, value_set=values)))])
    return _answers(lists, before[stops] > before[starts])


def has_all(lists: pa.Array, values: pa.Array) -> pa.BooleanArray:
    """Return whether each list contains all of the values. A null list gives null.

    Args:
        lists: Lists of a type for which `is_list` is true.
        values: Values of the `item_type` of this type, without nulls.
    """
    items, _, stops = _flat(lists)
    items, values = hashable(items, values)
    wanted = values.unique()
    places = pc.index_in(items, value_set=wanted)
    hits = np.flatnonzero(_to_numpy(places.is_valid()))
    owners = np.searchsorted(stops, hits, side="right")
    pairs = distinct(owners * max(1, len(wanted)) + places.drop_null().to_numpy().astype(np.int64))
    inside = pairs // max(1, len(wanted))
    counts = np.bincount(inside[inside < len(lists)], minlength=len(lists))
    return _answers(lists, counts == len(wanted))


def _flat(lists: pa.Array) -> tuple[pa.Array, NDArray[np.int64], NDArray[np.int64]]:
    """Return the items of all lists in one array, and the start and end of each list in this array."""
    if pa.types.is_fixed_size_list(lists.type):
        size = lists.type.list_size
        items = lists.values.slice(lists.offset * size, len(lists) * size)
        edges = np.arange(len(lists) + 1, dtype=np.int64) * size
    else:
        offsets = lists.offsets.to_numpy().astype(np.int64)
        items = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
        edges = offsets - offsets[0]
    items = items.storage if isinstance(items, pa.ExtensionArray) else items
    items = items.dictionary_decode() if pa.types.is_dictionary(items.type) else items
    return comparable(items), edges[:-1], edges[1:]


def _answers(lists: pa.Array, answers: NDArray[np.bool_]) -> pa.BooleanArray:
    if not lists.null_count:
        return pa.array(answers)
    return pa.array(answers, mask=~_to_numpy(lists.is_valid()))


def _to_numpy(booleans: pa.BooleanArray) -> NDArray[Any]:
    numbers: NDArray[Any] = booleans.to_numpy(zero_copy_only=False)
    return numbers
