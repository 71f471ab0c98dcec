"""Kernels that write the full-zip layout. They join levels and values into a stream of entries. See `unzip_entries`.

The output has room for all control words and values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, store_u32, store_u64

Int64s = NDArray[np.int64]
Offsets = NDArray[np.int32] | NDArray[np.int64]

CONTROL, VISIBLE, WIDTH = range(3)


@kernel
def zip_fixed(words: Bytes, def_: Bytes, form: Int64s, data: Bytes, places: Int64s, out: Bytes) -> int:
    """Write entries with fixed-width values. Returns the number of bytes written.

    Args:
        words: Control words, concatenated.
        def_: Definition levels, or empty if all are 0.
        form: CONTROL, size of a control word in bytes; VISIBLE, highest level of an entry with a value; WIDTH, size of
            a value in bytes.
        data: The values.
        places: Output: byte offset of each entry, and the end of the last one.
        out: Output: the entries.
    """
    control, visible, width = form
    at = slot = 0
    for i in range(len(places) - 1):
        places[i] = at
        for j in range(control):
            out[at + j] = words[i * control + j]
        at += control
        if len(def_) == 0 or def_[i] <= visible:
            copy(out, at, data, slot * width, width)
            at += width
            slot += 1
    places[len(places) - 1] = at
    return at


@kernel
def zip_variable(
    words: Bytes, def_: Bytes, form: Int64s, offsets: Offsets, data: Bytes, places: Int64s, out: Bytes
) -> int:
    """Write entries with variable-width values. Returns the number of bytes written.

    Args:
        words: Control words, concatenated.
        def_: Definition levels, or empty if all are 0.
        form: CONTROL, size of a control word in bytes; VISIBLE, highest level of an entry with a slot; WIDTH, size of
            a length in bytes.
        offsets: Offsets of the slots' values in `data`. Nulls are skipped.
        data: The values.
        places: Output: byte offset of each entry, and the end of the last one.
        out: Output: the entries.
    """
    control, visible, width = form
    at = slot = 0
    for i in range(len(places) - 1):
        places[i] = at
        for j in range(control):
            out[at + j] = words[i * control + j]
        at += control
        level = def_[i] if len(def_) else 0
        if level > visible:
            continue
        start, size = np.int64(offsets[slot]), np.int64(offsets[slot + 1]) - np.int64(offsets[slot])
        slot += 1
        if level:
            continue
        if width == 4:
            store_u32(out, at, np.uint32(size))
        else:
            store_u64(out, at, np.uint64(size))
        copy(out, at + width, data, start, size)
        at += width + size
    places[len(places) - 1] = at
    return at


def zip_reference(
    words: list[bytes], def_: list[int], visible: int, width: int, values: list[bytes], is_fixed: bool
) -> tuple[bytes, list[int]]:
    """Reference implementation. Returns the entries and their offsets."""
    out, places, slots = b"", [], iter(values)
    for word, level in zip(words, def_, strict=True):
        places.append(len(out))
        out += word
        if level <= visible:
            value = next(slots)
            if is_fixed:
                out += value
            elif level == 0:
                out += len(value).to_bytes(width, "little") + value
    return out, [*places, len(out)]
