"""Kernel that groups strings by their trigrams.

Each character maps to one or more classes. Letters and digits are folded, and each folded character has a class. All
other characters end a run. Three consecutive classes form a trigram, numbered (first * 37 + second) * 37 + third.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.status import BAD_CODE, BAD_OFFSETS, OK

Bytes = NDArray[np.uint8]
Offsets = NDArray[np.int64]

BASE: Final = 37
CLASSES: Final = 256
TRIGRAMS: Final = ((CLASSES - 1) * BASE + CLASSES - 1) * BASE + CLASSES
"""Upper bound of trigram numbers, exclusive."""

BREAK: Final = -1
"""The class of characters that end a run."""


@subroutine
def _code_point(data: Any, at: int, end: int) -> tuple[int, int]:
    """Decode a multi-byte code point. Returns (code point, next offset). The code point is -1 for invalid bytes."""
    first = int(data[at])
    size = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if first < 0xC0 or at + size > end:
        return -1, at + 1
    point = first & (0x7F >> size)
    for i in range(1, size):
        follower = int(data[at + i])
        if follower & 0xC0 != 0x80:
            return -1, at + 1
        point = (point << 6) | (follower & 0x3F)
    return point, at + size


@kernel
def group_by_trigram(
    data: Bytes,
    offsets: Offsets,
    is_valid: NDArray[np.bool_],
    places: NDArray[np.uint16],
    starts: NDArray[np.int32],
    classes: NDArray[np.int16],
    last: NDArray[np.uint32],
    ends: Offsets,
    texts: NDArray[np.uint32],
) -> int:
    """Find the strings that contain each trigram. A first call without `texts` counts them.

    Args:
        data: Bytes of the strings, UTF-8.
        offsets: Byte offset of each string, and the end of the last one.
        is_valid: Whether each string is not null. Null strings have no trigrams.
        places: Index into `starts` for each code point. Index 0 is for characters that end a run.
        starts: Offset in `classes` of each index's first class, and the end of the last one.
        classes: The classes of all indices. `BREAK` ends a run.
        last: For each trigram, the number of the last string that contains it, counted from 1. Must be 0 before each
            call.
        ends: For each trigram. When counting: input 0, output the string count. Otherwise: input the start of the
            trigram's strings in `texts`, output their end.
        texts: Output: the numbers of the strings that contain each trigram, ascending.

    Returns:
        A status.
    """
    if len(is_valid) + 1 > len(offsets) or len(last) > len(ends) or len(starts) < 2:
        return BAD_OFFSETS
    counts = len(texts) == 0
    for number in range(len(is_valid)):
        if not is_valid[number]:
            continue
        at, end = offsets[number], offsets[number + 1]
        if at < 0 or end < at or end > len(data):
            return BAD_OFFSETS | (number << 8)
        first = second = BREAK
        while at < end:
            point = int(data[at])
            if point < 128:
                at += 1
            else:
                point, at = _code_point(data, at, end)
            place = int(places[point]) if 0 <= point < len(places) else 0
            if place + 1 >= len(starts) or starts[place] < 0 or starts[place + 1] > len(classes):
                return BAD_CODE | (number << 8)
            for i in range(starts[place], starts[place + 1]):
                third = int(classes[i])
                if third < 0:
                    first = second = BREAK
                    continue
                token = (first * BASE + second) * BASE + third
                if first >= 0 and token < len(last) and last[token] != number + 1:
                    last[token] = number + 1
                    if not counts:
                        if ends[token] < 0 or ends[token] >= len(texts):
                            return BAD_OFFSETS | (number << 8)
                        texts[ends[token]] = number
                    ends[token] += 1
                first, second = second, third
    return OK
