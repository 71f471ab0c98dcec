"""Shreds nested arrays into entries, from the outside in.

An entry is a slot of the current layer, or an outer list or struct without a slot in the current layer. During
shredding, layers are counted from the outermost, so that the leaves of a field share the entries around them:

    begins   0: the entry begins a row; d: it continues the d-th list from the outside
    holes    0: there is a value so far; otherwise a mark: each layer takes the next (null), or, as a list, the
             next two (null, empty)

Marks up to `hidden` belong to entries without a slot in the current layer. These entries come from nulls and empty
lists in the last list layer and in the layers around it. `encoding.write.layouts.levels` turns begins and holes into
levels, which count from the innermost layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.encoding.write.blocks import valid_flags
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.pages.shred import (
    ENTRIES,
    FIRST,
    HAS_HOLES,
    IS_DENSE,
    ITEMS,
    Offsets,
    mark_nulls,
    measure_lists,
    unfold_lists,
)

_NOTHING = np.empty(0, dtype=np.uint8)
_NO_PLACES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Outline:
    """The entries of the layers shredded so far.

    Attributes:
        count: Number of entries.
        begins: uint8 (count,). None without lists, because each entry then begins a row.
        holes: uint8 (count,), or None if all are 0.
        hidden: Highest mark of an entry without a slot.
        marks: Highest mark that is assigned to a layer.
        lists: Number of list layers shredded.
    """

    count: int
    begins: Bytes | None = None
    holes: Bytes | None = None
    hidden: int = 0
    marks: int = 0
    lists: int = 0


def unfold_items(outline: Outline, array: pa.Array) -> Outline:
    """Add the nulls of an item layer (a struct or values) to the entries."""
    valid = valid_flags(array)
    mark = outline.marks + 1
    holes = outline.holes
    if valid is not None:
        if holes is None:
            holes = np.equal(valid, 0).view(np.uint8)
            if mark > 1:
                np.multiply(holes, np.uint8(mark), out=holes)
        else:
            marked = np.empty(len(holes), dtype=np.uint8)
            mark_nulls(readonly(holes), readonly(valid), outline.hidden, mark, marked)
            holes = marked
    return Outline(outline.count, outline.begins, holes, outline.hidden, mark, outline.lists)


def unfold_fixed(outline: Outline, array: pa.FixedSizeListArray, where: str) -> tuple[Outline, pa.Array]:
    """Return the entries of the items of fixed-size lists, and the items.

    Raises:
        UnsupportedError: The lists are inside lists.
    """
    if outline.begins is not None:
        raise UnsupportedError("one column cannot nest both lists and fixed-size lists of structs", where=where)
    around = unfold_items(outline, array)
    size = array.type.list_size
    holes = None if around.holes is None else np.repeat(around.holes, size)
    items = array.values.slice(array.offset * size, len(array) * size)
    return Outline(around.count * size, None, holes, around.hidden, around.marks, around.lists), items


def unfold_list(outline: Outline, array: pa.Array, where: str) -> tuple[Outline, pa.Array]:
    """Return the entries of list items, and the items of lists that are neither null nor below a null.

    Args:
        outline: Entries of the lists.
        array: A list (or large list, or map) for each slot.
        where: Name of the column, for messages.

    Raises:
        InvalidInputError: Offsets descend.
    """
    valid = valid_flags(array)
    flags = _NOTHING if valid is None else valid
    holes = _NOTHING if outline.holes is None else outline.holes
    begins = _NOTHING if outline.begins is None else outline.begins
    offsets = _offsets(array)
    totals = np.zeros(5, dtype=np.int64)
    if not measure_lists(readonly(holes), offsets, readonly(flags), outline.hidden, totals):
        raise InvalidInputError("the offsets of the lists are invalid", where=where, expected="ascending offsets")
    entries, items = int(totals[ENTRIES]), int(totals[ITEMS])
    mark, layer = outline.marks + 1, outline.lists + 1
    form = np.array([outline.hidden, mark, layer], dtype=np.int64)
    begins_out = np.empty(entries, dtype=np.uint8)
    holes_out = np.empty(entries, dtype=np.uint8) if totals[HAS_HOLES] else _NOTHING.copy()
    places = _NO_PLACES.copy() if totals[IS_DENSE] else np.empty(items, dtype=np.int64)
    unfold_lists(readonly(begins), readonly(holes), offsets, readonly(flags), form, begins_out, holes_out, places)
    values = array.values
    visible = values.slice(int(totals[FIRST]), items) if totals[IS_DENSE] else _chosen(values, offsets, places)
    if len(visible) != items:
        raise InvalidInputError(
            "the lists have more items than their array", where=where, expected=f"at most {len(values)}"
        )
    inside = Outline(entries, begins_out, holes_out if totals[HAS_HOLES] else None, mark + 1, mark + 1, layer)
    return inside, visible


def _chosen(values: pa.Array, offsets: Offsets, places: NDArray[np.int64]) -> pa.Array:
    """Return the values at `places`, which lie between the first and the last offset."""
    first = int(offsets[0])
    if first < 0 or int(offsets[-1]) > len(values):
        return values.slice(0, 0)
    # Copy first: `take` of pyarrow 26 returns wrong lists if nested fixed-size lists have an offset.
    joined = pa.concat_arrays([values.slice(first, int(offsets[-1]) - first)])
    return joined.take(pa.array(places - first))


def _offsets(array: pa.Array) -> Offsets:
    word: Any = np.int64 if pa.types.is_large_list(array.type) else np.int32
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(1, dtype=word)
    offsets: Offsets = readonly(np.frombuffer(data, dtype=word)[array.offset : array.offset + len(array) + 1])
    return offsets
