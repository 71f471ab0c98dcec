"""Kernels that turn levels into offsets and validity. `encoding.layouts.assemble` explains the levels.

An empty `def_` means that all levels are zero. Every output array has room for all entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes

Int64s = NDArray[np.int64]
Offsets = NDArray[np.int32] | NDArray[np.int64]


@kernel
def fold_items(rep: Bytes, def_: Bytes, begins: int, base: int, visible: int, valid: Bytes) -> int:
    """Write a validity flag for each slot of an item layer. Returns the number of slots.

    Args:
        rep: Repetition levels. If empty, each entry begins a slot.
        def_: All definition levels.
        begins: Lowest repetition level that begins a slot.
        base: Highest level of a slot that is not null.
        visible: Highest level of an entry that has a slot.
        valid: Output: room for one flag more than there are entries.
    """
    slots = 0
    if len(rep) == 0:
        for i in range(len(def_)):
            valid[slots] = def_[i] <= base
            slots += def_[i] <= visible
    else:
        for i in range(len(rep)):
            valid[slots] = def_[i] <= base
            slots += (rep[i] >= begins) & (def_[i] <= visible)
    return slots


def fold_items_reference(rep: Bytes, def_: Bytes, begins: int, base: int, visible: int, valid: Bytes) -> int:
    """Reference implementation in plain Python."""
    slots = def_ <= visible
    if len(rep):
        slots &= rep >= begins
    count = int(np.count_nonzero(slots))
    valid[:count] = def_[slots] <= base
    return count


@kernel
def fold_list(rep: Bytes, def_: Bytes, form: Int64s, offsets: Offsets, valid: Bytes) -> tuple[int, int]:
    """Write the offsets and validity flags of a list layer. Returns (number of slots, number of null slots).

    Args:
        rep: Repetition levels.
        def_: All definition levels.
        form: Five levels: the lowest repetition level that begins a slot, here and in the inner layer; the highest
            level of an entry with a slot, here and in the inner layer; the highest level of a non-null list. The level
            two above the last one marks an empty list.
        offsets: Output: room for one number more than there are entries.
        valid: Output if `def_` is not empty: room for one flag more than there are entries.
    """
    begins, begins_inside, visible, visible_inside, base = form
    slots = items = nulls = 0
    if len(def_) == 0:
        for i in range(len(rep)):
            offsets[slots] = items
            slots += rep[i] >= begins
            items += rep[i] >= begins_inside
    else:
        for i in range(len(rep)):
            level: Any = np.int64(def_[i])
            is_slot = (rep[i] >= begins) & (level <= visible)
            is_valid = (level <= base) | (level == base + 2)
            offsets[slots] = items
            valid[slots] = is_valid
            slots += is_slot
            nulls += is_slot & (not is_valid)
            items += (rep[i] >= begins_inside) & (level <= visible_inside)
    offsets[slots] = items
    return slots, nulls


def fold_list_reference(rep: Bytes, def_: Bytes, form: Int64s, offsets: Offsets, valid: Bytes) -> tuple[int, int]:
    """Reference implementation in plain Python."""
    begins, begins_inside, visible, visible_inside, base = form.tolist()
    levels = def_ if len(def_) else np.zeros(len(rep), dtype=np.uint8)
    slots = (rep >= begins) & (levels <= visible)
    inside = (rep >= begins_inside) & (levels <= visible_inside)
    before = np.concatenate([[0], np.cumsum(inside)])
    count = int(np.count_nonzero(slots))
    offsets[: count + 1] = np.append(before[:-1][slots], before[-1])
    if len(def_) == 0:
        return count, 0
    flags = (levels[slots] <= base) | (levels[slots] == base + 2)
    valid[:count] = flags
    return count, count - int(np.count_nonzero(flags))


@kernel
def map_levels(levels: Bytes, table: Bytes, out: Bytes) -> None:
    """Write table[level] for each level. All levels lie within the table."""
    for i in range(len(levels)):
        out[i] = table[levels[i]]


def map_levels_reference(levels: Bytes, table: Bytes, out: Bytes) -> None:
    """Reference implementation in plain Python."""
    out[:] = table[levels]


@kernel
def row_bounds(rep: Bytes, max_rep: int, chunks: Int64s, rows: Int64s, bounds: Int64s) -> bool:
    """Find the first level of each row.

    Args:
        rep: Repetition levels of consecutive chunks.
        max_rep: Level that begins a row.
        chunks: (k + 1,), number of levels before each chunk. The last number is len(rep).
        rows: (k + 1,), number of rows that must begin before each chunk.
        bounds: Ascending row numbers, relative to the first row that begins in these chunks. Each is replaced by the
            number of levels before that row.

    Returns:
        False if a chunk has a different number of rows.
    """
    bound = 0
    for chunk in range(len(chunks) - 1):
        heads = 0
        for i in range(chunks[chunk], chunks[chunk + 1]):
            heads += rep[i] == max_rep
        if heads != rows[chunk + 1] - rows[chunk]:
            return False
        at = chunks[chunk] - 1
        passed = rows[chunk]
        while bound < len(bounds) and bounds[bound] < rows[chunk + 1]:
            while passed <= bounds[bound]:
                at += 1
                passed += rep[at] == max_rep
            bounds[bound] = at
            bound += 1
    while bound < len(bounds):
        bounds[bound] = len(rep)
        bound += 1
    return True


def row_bounds_reference(rep: Bytes, max_rep: int, chunks: Int64s, rows: Int64s, bounds: Int64s) -> bool:
    """Reference implementation in plain Python."""
    heads = np.flatnonzero(rep == max_rep)
    if not np.array_equal(np.searchsorted(heads, chunks), rows):
        return False
    bounds[:] = np.append(heads, len(rep))[np.minimum(bounds, len(heads))]
    return True


@kernel
def choose_entries(
    rep: Bytes,
    def_: Bytes,
    visible: int,
    starts: Int64s,
    stops: Int64s,
    rep_out: Bytes,
    def_out: Bytes,
    items: Int64s,
) -> int:
    """Copy the levels of entry ranges, and write the value index of each entry that has a value.

    Returns the number of these entries.

    Args:
        rep: Repetition levels.
        def_: Definition levels. If empty, each entry has a value.
        visible: Highest level of an entry that has a value.
        starts: First entry of each range. Ranges ascend, do not overlap, and lie within the levels.
        stops: End of each range.
        rep_out: Output, one level for each entry of the ranges.
        def_out: Output, one level for each entry of the ranges, or empty if there are no definition levels.
        items: Output: room for one number more than there are entries in the ranges.
    """
    at = slot = count = slots = 0
    for i in range(len(starts)):
        if len(def_) == 0:
            slot = starts[i]
        else:
            for j in range(at, starts[i]):
                slot += def_[j] <= visible
        for j in range(starts[i], stops[i]):
            rep_out[count] = rep[j]
            items[slots] = slot
            has_value = True
            if len(def_):
                def_out[count] = def_[j]
                has_value = def_[j] <= visible
            slots += has_value
            slot += has_value
            count += 1
        at = stops[i]
    return slots


def choose_entries_reference(
    rep: Bytes,
    def_: Bytes,
    visible: int,
    starts: Int64s,
    stops: Int64s,
    rep_out: Bytes,
    def_out: Bytes,
    items: Int64s,
) -> int:
    """Reference implementation in plain Python."""
    entries = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)]).astype(np.int64)
    has_value = def_ <= visible if len(def_) else np.ones(len(rep), dtype=np.bool_)
    rep_out[:] = rep[entries]
    if len(def_):
        def_out[:] = def_[entries]
    item_numbers = (np.cumsum(has_value) - 1)[entries][has_value[entries]]
    items[: len(item_numbers)] = item_numbers
    return len(item_numbers)
