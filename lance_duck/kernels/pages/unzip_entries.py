"""Kernels for the full-zip layout: split a stream of entries into levels and values.

An entry is a control word, and a value if the entry has one. The control word is (rep << bits_def) | def, in 0, 1, 2 or
4 bytes. A fixed-width value follows if def <= max_visible. A variable-width value follows if def == 0: its length, then
its bytes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, copy, load_u8, load_u16, load_u32, load_u64

Int64s = NDArray[np.int64]

CONTROL, BITS_DEF, MAX_REP, MAX_DEF, MAX_VISIBLE, WIDTH, IS_FIXED = range(7)


@subroutine
def _number(data: Bytes, at: int, width: int) -> np.int64:
    if width == 1:
        return np.int64(load_u8(data, at))
    if width == 2:
        return np.int64(load_u16(data, at))
    if width == 4:
        return np.int64(load_u32(data, at))
    if width == 8:
        return np.int64(load_u64(data, at))
    return np.int64(0)


@kernel
def count_entries(data: Bytes, form: Int64s, totals: Int64s) -> int:
    """Count the entries, slots, value bytes and rows of a stream, and store them in `totals`.

    Args:
        data: The stream.
        form: Seven numbers: CONTROL, size of a control word in bytes; BITS_DEF; MAX_REP; MAX_DEF; MAX_VISIBLE; WIDTH,
            size in bytes of a value or of its length prefix; IS_FIXED, 1 for fixed-width values.
        totals: int64 (4,), output.

    Returns:
        0 if the stream is valid, 1 if it ends within an entry, or 2 if a level is too high.
    """
    control, bits, width, fixed = form[CONTROL], form[BITS_DEF], form[WIDTH], form[IS_FIXED]
    mask = (1 << bits) - 1
    at, end = 0, len(data)
    entries = slots = size = rows = 0
    while at < end:
        if end - at < control:
            return 1
        word = _number(data, at, control)
        rep, level = word >> bits, word & mask
        at += control
        if rep > form[MAX_REP] or level > form[MAX_DEF]:
            return 2
        entries += 1
        rows += rep == form[MAX_REP]
        if level > form[MAX_VISIBLE]:
            continue
        slots += 1
        if fixed:
            length = width
        elif level == 0:
            if end - at < width:
                return 1
            length = _number(data, at, width)
            at += width
        else:
            length = 0
        if length < 0 or length > end - at:
            return 1
        size += length
        at += length
    totals[0], totals[1], totals[2], totals[3] = entries, slots, size, rows
    return 0


@kernel
def split_entries(data: Bytes, form: Int64s, rep: Bytes, def_: Bytes, offsets: Int64s, values: Bytes) -> None:
    """Write the levels of all entries, the values and the value offsets.

    `count_entries` has checked the stream and computed the array sizes. The arrays `rep` and `def_` have one level for
    each entry, or are empty. The array `offsets` has one number more than there are slots, or is empty for fixed-width
    values. The size of
    `values` is the total size of all values in bytes.
    """
    control, bits, width, fixed = form[CONTROL], form[BITS_DEF], form[WIDTH], form[IS_FIXED]
    mask = (1 << bits) - 1
    at, end = 0, len(data)
    entry = slot = place = 0
    while at < end:
        word = _number(data, at, control)
        level = word & mask
        at += control
        if len(rep):
            rep[entry] = word >> bits
        if len(def_):
            def_[entry] = level
        entry += 1
        if level > form[MAX_VISIBLE]:
            continue
        if fixed:
            length = width
        elif level == 0:
            length = _number(data, at, width)
            at += width
        else:
            length = 0
        copy(values, place, data, at, length)
        place += length
        at += length
        slot += 1
        if not fixed:
            offsets[slot] = place


def split_entries_reference(data: bytes, form: list[int]) -> tuple[list[int], list[int], list[bytes]]:
    """Reference implementation. Returns the levels of all entries and the values of all slots."""
    control, bits, width = form[CONTROL], form[BITS_DEF], form[WIDTH]
    rep, def_, values = [], [], []
    at = 0
    while at < len(data):
        word = int.from_bytes(data[at : at + control], "little")
        at += control
        rep.append(word >> bits)
        def_.append(word & ((1 << bits) - 1))
        if def_[-1] > form[MAX_VISIBLE]:
            continue
        length = width if form[IS_FIXED] else 0
        if not form[IS_FIXED] and def_[-1] == 0:
            length = int.from_bytes(data[at : at + width], "little")
            at += width
        values.append(data[at : at + length])
        at += length
    return rep, def_, values
