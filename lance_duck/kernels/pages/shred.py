"""Kernels that turn offsets and validity into marks. `encoding.write.shred` explains the marks.

Empty marks mean all zeros, and empty validity flags mean all ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes

Int64s = NDArray[np.int64]
Offsets = NDArray[np.int32] | NDArray[np.int64]

ENTRIES, ITEMS, FIRST, IS_DENSE, HAS_HOLES = range(5)


@kernel
def levels_present(levels: Bytes, present: Bytes) -> None:
    """Set present[level] for each level. `present` has 256 slots."""
    for i in range(len(levels)):
        present[levels[i]] = 1


def levels_present_reference(levels: Bytes, present: Bytes) -> None:
    """Reference implementation in plain Python."""
    present[np.unique(levels)] = 1


@kernel
def mark_nulls(holes: Bytes, valid: Bytes, hidden: int, mark: int, out: Bytes) -> int:
    """Write the marks of an item layer. Returns the number of slots.

    Args:
        holes: Marks of all entries.
        valid: A flag for each slot. Slots beyond its end are valid.
        hidden: Highest mark of an entry without a slot.
        mark: Mark of null slots.
        out: Output, one mark for each entry.
    """
    slot = 0
    for i in range(len(holes)):
        hole = holes[i]
        out[i] = hole
        if hole == 0 or hole > hidden:
            if hole == 0 and slot < len(valid) and valid[slot] == 0:
                out[i] = mark
            slot += 1
    return slot


def mark_nulls_reference(holes: Bytes, valid: Bytes, hidden: int, mark: int, out: Bytes) -> int:
    """Reference implementation in plain Python."""
    slots = (holes == 0) | (holes > hidden)
    count = int(np.count_nonzero(slots))
    flags = np.ones(len(holes), dtype=np.uint8)
    flags[slots] = np.concatenate([valid, np.ones(max(0, count - len(valid)), dtype=np.uint8)])[:count]
    out[:] = np.where((holes == 0) & (flags == 0), mark, holes)
    return count


@kernel
def measure_lists(holes: Bytes, offsets: Offsets, valid: Bytes, hidden: int, totals: Int64s) -> bool:
    """Count the entries and items that `unfold_lists` will write.

    Args:
        holes: Marks of all entries. If empty, each entry has a slot.
        offsets: One offset more than there are slots.
        valid: A flag for each slot, or empty.
        hidden: Highest mark of an entry without a slot.
        totals: Receives five numbers: ENTRIES; ITEMS, the number of items in visible lists that are not null; FIRST,
            the first of these items; IS_DENSE, 1 if there are no other items between them; HAS_HOLES, 1 if any entry
            has a mark.

    Returns:
        False if the offsets descend, or there are too few offsets for the slots.
    """
    count = len(holes) if len(holes) else len(offsets) - 1
    slot = entries = items = has_holes = 0
    first = at = -1
    is_dense = 1
    for i in range(count):
        hole = holes[i] if len(holes) else 0
        if 0 < hole <= hidden:
            entries += 1
            has_holes = 1
            continue
        if slot + 1 >= len(offsets):
            return False
        start, stop = offsets[slot], offsets[slot + 1]
        if stop < start:
            return False
        is_filled = hole == 0 and stop > start and (len(valid) == 0 or valid[slot] != 0)
        slot += 1
        if not is_filled:
            entries += 1
            has_holes = 1
            continue
        if first < 0:
            first = start
        elif start != at:
            is_dense = 0
        at = stop
        entries += stop - start
        items += stop - start
    totals[ENTRIES], totals[ITEMS], totals[FIRST] = entries, items, max(first, 0)
    totals[IS_DENSE], totals[HAS_HOLES] = is_dense, has_holes
    return True


@kernel
def unfold_lists(
    begins: Bytes,
    holes: Bytes,
    offsets: Offsets,
    valid: Bytes,
    form: Int64s,
    begins_out: Bytes,
    holes_out: Bytes,
    places: Int64s,
) -> None:
    """Write the entries of list items. `measure_lists` has checked and counted them.

    Args:
        begins: Number of the list layer that each entry continues. If empty, each entry begins a row.
        holes: Marks of all entries. If empty, each entry has a slot.
        offsets: One offset more than there are slots.
        valid: A flag for each slot, or empty.
        form: Three numbers: the highest mark of an entry without a slot; the mark of null lists (the next mark is for
            empty lists); the number of this list layer, counted from 1 for the outermost.
        begins_out: Output: ENTRIES numbers.
        holes_out: Output: ENTRIES marks, or empty if there are no holes.
        places: Output: index of each of the ITEMS among all items. May be empty.
    """
    hidden, mark, layer = form
    count = len(holes) if len(holes) else len(offsets) - 1
    slot = entry = item = 0
    for i in range(count):
        hole = holes[i] if len(holes) else 0
        begin = begins[i] if len(begins) else 0
        begins_out[entry] = begin
        start, stop = 0, 0
        if hole == 0 or hole > hidden:
            start, stop = int(offsets[slot]), int(offsets[slot + 1])
            if hole == 0:
                if len(valid) and valid[slot] == 0:
                    hole = mark
                elif stop == start:
                    hole = mark + 1
            slot += 1
        if len(holes_out):
            holes_out[entry] = hole
        entry += 1
        if hole != 0:
            continue
        size = stop - start
        for j in range(entry, entry + size - 1):
            begins_out[j] = layer
        if len(holes_out):
            for j in range(entry, entry + size - 1):
                holes_out[j] = 0
        entry += size - 1
        if len(places):
            for j in range(size):
                places[item + j] = start + j
            item += size


def unfold_lists_reference(
    begins: list[int], holes: list[int], lists: list[list[int] | None], form: list[int]
) -> tuple[list[int], list[int], list[int]]:
    """Return each entry's list layer, mark and items, in plain Python. `lists` holds item indices."""
    hidden, mark, layer = form
    slots = iter(lists)
    begins_out, holes_out, items = [], [], []
    for begin, hole in zip(begins, holes, strict=True):
        mark_below = None if 0 < hole <= hidden else next(slots)
        if hole or not mark_below:
            begins_out.append(begin)
            holes_out.append(hole or (mark if mark_below is None else mark + 1))
            continue
        begins_out += [begin] + [layer] * (len(mark_below) - 1)
        holes_out += [0] * len(mark_below)
        items += mark_below
    return begins_out, holes_out, items
