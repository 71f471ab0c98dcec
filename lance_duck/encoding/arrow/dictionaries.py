"""Dictionaries of Arrow arrays: reduced to the entries in use, and combined.

A page has one dictionary for all of its rows. A batch of a selective scan contains few rows. With the whole dictionary,
the batch would be larger than the plain values, and slower for every consumer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.limits import OVERFLOW, array_limit, check_limit
from lance_duck.arrow.listed import offsets_of
from lance_duck.arrow.types import with_type


def compact_dictionaries(array: pa.Array) -> pa.Array:
    """Trim dictionaries in an array, at any depth, to at most as many entries as rows.

    A dictionary with more entries than rows is always trimmed, because the result is always smaller. Finding the used
    entries takes less time than reading all entries once (`benchmarks/selective.py`). Entries keep their order.
    """
    return _compacted(array, always=False)


def concatenate(arrays: Sequence[pa.Array]) -> pa.Array:
    """Concatenate arrays of one type, combining their dictionaries.

    Raises:
        ArrayLimitError: There are too many bytes or items, or the index type cannot count all used dictionary entries.
    """
    if len(arrays) == 1:
        return arrays[0]
    try:
        return check_limit(pa.concat_arrays(arrays))
    except (*OVERFLOW, pa.ArrowNotImplementedError) as error:
        if not holds_dictionaries(arrays[0].type):
            if isinstance(error, pa.ArrowNotImplementedError):
                raise
            raise array_limit(error) from error
    try:  # pyarrow cannot combine dictionaries that contain nulls, and unused entries waste memory
        return check_limit(pa.concat_arrays([used_entries(array) for array in arrays]))
    except (*OVERFLOW, pa.ArrowNotImplementedError) as error:
        raise array_limit(f"{arrays[0].type}: {error}") from error


def used_entries(array: pa.Array) -> pa.Array:
    """Return an array whose dictionaries, at any depth, contain only used, non-null entries."""
    return _compacted(array, always=True)


def holds_dictionaries(type_: pa.DataType) -> bool:
    """Return whether a type is a dictionary, or contains one at any depth."""
    if isinstance(type_, pa.BaseExtensionType):
        return holds_dictionaries(type_.storage_type)
    if pa.types.is_dictionary(type_):
        return True
    if not pa.types.is_nested(type_):
        return False
    return any(holds_dictionaries(type_.field(place).type) for place in range(type_.num_fields))


def _compacted(array: pa.Array, *, always: bool) -> pa.Array:
    type_ = array.type
    if pa.types.is_dictionary(type_):
        return _cut(array) if always or len(array.dictionary) > len(array) else array
    if not holds_dictionaries(type_):
        return array
    if isinstance(array, pa.ExtensionArray):
        return with_type(_compacted(array.storage, always=always), type_)
    if pa.types.is_struct(type_):
        return _with_fields(array, always)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_map(type_):
        return _with_items(array, always)
    return _with_fixed_items(array, always) if pa.types.is_fixed_size_list(type_) else array


def _cut(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Return an array without unused and null dictionary entries."""
    if array.dictionary.null_count:
        array = _without_null_entries(array)
    indices = array.indices
    valid = indices.is_valid().to_numpy(zero_copy_only=False) if indices.null_count else None
    # Indices of null rows are arbitrary.
    places = (indices if valid is None else indices.fill_null(0)).to_numpy(zero_copy_only=False)
    entry_numbers = _used(places if valid is None else places[valid], len(array.dictionary))
    renumbered = np.zeros(max(1, len(array.dictionary)), places.dtype)
    renumbered[entry_numbers] = np.arange(len(entry_numbers), dtype=places.dtype)
    fresh = pa.array(renumbered[places], indices.type, mask=None if valid is None else ~valid)
    entries = array.dictionary.take(pa.array(entry_numbers))
    return pa.DictionaryArray.from_arrays(fresh, entries, ordered=array.type.ordered, safe=False)


def _without_null_entries(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """Replace references to null entries with null rows."""
    valid = array.dictionary.is_valid().take(array.indices).fill_null(False)
    indices = pc.if_else(valid, array.indices, pa.scalar(None, array.indices.type))
    return pa.DictionaryArray.from_arrays(indices, array.dictionary, ordered=array.type.ordered, safe=False)


def _used(places: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Return the ascending numbers of the used entries. The dictionary has `count` entries."""
    flags = np.zeros(count, np.bool_)
    flags[places] = True
    return np.flatnonzero(flags)


def _with_fields(array: pa.StructArray, always: bool) -> pa.StructArray:
    fields = [array.field(place) for place in range(array.type.num_fields)]
    smaller = [_compacted(field, always=always) for field in fields]
    if all(new is old for new, old in zip(smaller, fields, strict=True)):
        return array
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(smaller, fields=list(array.type), mask=mask)


def _with_items(array: pa.Array, always: bool) -> pa.Array:
    offsets = offsets_of(array)
    first, last = int(offsets[0]), int(offsets[-1])
    items = array.values.slice(first, last - first)
    smaller = _compacted(items, always=always)
    if smaller is items:
        return array
    buffers = [_validity(array), pa.py_buffer(offsets - offsets[0])]
    return pa.Array.from_buffers(array.type, len(array), buffers, children=[smaller])


def _with_fixed_items(array: pa.FixedSizeListArray, always: bool) -> pa.FixedSizeListArray:
    size = array.type.list_size
    items = array.values.slice(array.offset * size, len(array) * size)
    smaller = _compacted(items, always=always)
    if smaller is items:
        return array
    return pa.Array.from_buffers(array.type, len(array), [_validity(array)], children=[smaller])


def _validity(array: pa.Array) -> pa.Buffer | None:
    """Return the validity bitmap of an array, starting at its first value."""
    return pc.or_(array.is_valid(), False).buffers()[1] if array.null_count else None
