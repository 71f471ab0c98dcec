"""Kernels that join levels and partial buffers into pages.

`encoding.write.layouts.miniblock` calls these kernels. They are here because this package contains all kernels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy

Int64s = NDArray[np.int64]


@kernel
def cut_levels(def_: Bytes, visible: int, values: Int64s, ends: Int64s) -> None:
    """Find the end of each chunk's entries: after its last value. The last chunk ends after all entries.

    Args:
        def_: Definition levels.
        visible: Highest level of an entry that has a value.
        values: (k,), number of values up to the end of each chunk, ascending. The last number is the total.
        ends: (k,), output.
    """
    slots = at = 0
    last = len(values) - 1
    for chunk in range(last):
        while at < len(def_) and slots < values[chunk]:
            slots += def_[at] <= visible
            at += 1
        ends[chunk] = at
    if last >= 0:
        ends[last] = len(def_)


def cut_levels_reference(def_: Bytes, visible: int, values: Int64s, ends: Int64s) -> None:
    """Reference implementation in plain Python."""
    places = np.concatenate([[0], np.flatnonzero(def_ <= visible) + 1])
    ends[:] = places[values]
    ends[-1:] = len(def_)


@kernel
def place_parts(data: Bytes, ends: Int64s, places: Int64s, out: Bytes) -> bool:
    """Copy consecutive byte ranges of `data` to `places`. Returns False if a range extends past `data` or `out`.

    Args:
        data: The concatenated ranges.
        ends: (k,), end of each range.
        places: (k,), byte offset in `out` of each range.
        out: Written at these offsets only.
    """
    start = 0
    for i in range(len(ends)):
        size = ends[i] - start
        if size < 0 or ends[i] > len(data) or places[i] < 0 or size > len(out) - places[i]:
            return False
        copy(out, places[i], data, start, size)
        start = ends[i]
    return True


def place_parts_reference(data: Bytes, ends: Int64s, places: Int64s, out: Bytes) -> bool:
    """Reference implementation in plain Python."""
    for place, part in zip(places.tolist(), np.split(data, ends[:-1]), strict=True):
        out[place : place + len(part)] = part
    return True
