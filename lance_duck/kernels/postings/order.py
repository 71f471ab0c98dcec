"""A kernel that sorts the postings of each term by document.

Postings come from several batches or partitions, whose documents were renumbered. Short lists are sorted by insertion,
and longer lists by a radix sort.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine

UInt32s = NDArray[np.uint32]
Int64s = NDArray[np.int64]

DIGIT_BITS: Final = 11
"""Maximum number of bits that a pass of the radix sort looks at. The counts of its digits fit into the L1 cache."""
_FEW: Final = 24
"""Maximum number of postings that are sorted by insertion."""

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def sort_documents(
    bounds: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
    token_bounds: Int64s,
    positions: UInt32s,
    room: NDArray[np.uint64],
    moved: UInt32s,
    counts: UInt32s,
) -> int:
    """Sort the postings of each term by document, in place. Sorted lists are left alone.

    Args:
        bounds: (terms + 1,), first posting of each term, and the total posting count.
        document_ids: (postings,), documents of each term, distinct.
        frequencies: (postings,), frequency of each posting.
        token_bounds: (terms + 1,), first position of each term, and the total position count. Empty without positions.
        positions: (frequencies.sum(),), positions of each posting.
        room: (2, postings of the longest list), scratch space.
        moved: (positions of the longest list,), scratch space.
        counts: (1 << `DIGIT_BITS`,), scratch space.

    Returns:
        A status with the index of a term.
    """
    if len(frequencies) != len(document_ids) or len(counts) < 1 << DIGIT_BITS:
        return status.TOO_SHORT
    with_positions = len(token_bounds) != 0
    if with_positions and len(token_bounds) < len(bounds):
        return status.TOO_SHORT
    for term in range(len(bounds) - 1):
        first, last = bounds[term], bounds[term + 1]
        if first < 0 or first > last or last > len(document_ids):
            return status.BAD_OFFSETS | (term << 8)
        ids, tokens = document_ids[first:last], frequencies[first:last]
        i = 1
        while i < len(ids) and ids[i - 1] < ids[i]:
            i += 1
        if i >= len(ids):
            continue
        if room.shape[1] < len(ids):
            return status.TOO_SHORT | (term << 8)
        highest = np.uint32(0)
        for i in range(len(ids)):
            highest = max(highest, ids[i])
            payload = np.uint64(i) if with_positions else np.uint64(tokens[i])
            room[0, i] = (np.uint64(ids[i]) << _HALF) | payload
        row = _sort_entries(room, len(ids), highest, counts)
        if with_positions:
            begin, end = token_bounds[term], token_bounds[term + 1]
            if begin < 0 or begin > end or end > len(positions) or len(moved) < end - begin:
                return status.BAD_OFFSETS | (term << 8)
            if not _move(room[row], room[1 - row], ids, tokens, positions[begin:end], moved):
                return status.BAD_LENGTH | (term << 8)
        else:
            for i in range(len(ids)):
                ids[i] = np.uint32(room[row, i] >> _HALF)
                tokens[i] = np.uint32(room[row, i] & _LOW)
    return status.OK


@subroutine
def _move(entries: Any, starts: Any, ids: Any, tokens: Any, positions: Any, moved: Any) -> Any:
    """Write sorted entries, and move frequencies and positions with them. An entry has the old index of its posting.

    Returns False if the list does not have as many positions as its frequencies say.
    """
    place = np.int64(0)
    for i in range(len(ids)):
        starts[i] = np.uint64(place)
        place += np.int64(tokens[i])
    if place != len(positions):
        return False
    for i in range(len(positions)):
        moved[i] = positions[i]
    place = np.int64(0)
    for i in range(len(ids)):
        source = np.int64(entries[i] & _LOW)
        start = np.int64(starts[source])
        stop = np.int64(starts[source + 1]) if source + 1 < len(ids) else np.int64(len(positions))
        ids[i], tokens[i] = np.uint32(entries[i] >> _HALF), np.uint32(stop - start)
        for k in range(start, stop):
            positions[place] = moved[k]
            place += 1
    return True


@subroutine
def _sort_entries(room: Any, count: Any, highest: Any, counts: Any) -> Any:
    """Sort entries of the first row by their high halves. Returns the row that contains the result."""
    if count <= _FEW:
        entries = room[0]
        for i in range(1, count):
            entry, j = entries[i], i
            while j > 0 and entries[j - 1] > entry:
                entries[j] = entries[j - 1]
                j -= 1
            entries[j] = entry
        return np.int64(0)
    bits, width, row = np.int64(0), np.int64(1), np.int64(0)
    while np.int64(highest) >> bits:
        bits += 1
    while width < DIGIT_BITS and (np.int64(1) << width) < count:
        width += 1
    passes = (bits + width - 1) // width
    width = (bits + passes - 1) // passes
    for number in range(passes):
        _sort_by_digit(room[row], room[1 - row], count, np.uint64(32 + number * width), width, counts)
        row = 1 - row
    return row


@subroutine
def _sort_by_digit(source: Any, target: Any, count: Any, shift: Any, width: Any, counts: Any) -> Any:
    """Sort entries by one digit. Entries with equal digits keep their order."""
    digits, mask = np.int64(1) << width, np.uint64((np.int64(1) << width) - 1)
    for digit in range(digits):
        counts[digit] = 0
    for i in range(count):
        counts[np.int64((source[i] >> shift) & mask)] += np.uint32(1)
    place = np.uint32(0)
    for digit in range(digits):
        counts[digit], place = place, np.uint32(place + counts[digit])
    for i in range(count):
        slot = np.int64((source[i] >> shift) & mask)
        target[np.int64(counts[slot])] = source[i]
        counts[slot] += np.uint32(1)


def sort_documents_reference(
    bounds: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
    token_bounds: Int64s,
    positions: UInt32s,
    room: NDArray[np.uint64],
    moved: UInt32s,
    counts: UInt32s,
) -> int:
    """Reference implementation in plain Python."""
    terms = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)).astype(np.uint32)
    order = np.lexsort((document_ids, terms))
    if len(token_bounds):
        pieces = np.split(positions.copy(), np.cumsum(frequencies)[:-1])
        positions[:] = np.concatenate([pieces[i] for i in order])
    document_ids[:], frequencies[:] = document_ids[order], frequencies[order]
    return status.OK
