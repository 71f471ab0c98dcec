"""Kernels for impacts. `index.inverted.codecs.impacts` describes their bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, store_u8
from lance_duck.kernels.postings.packing import bits_of, read_varint, write_varint

Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]

CODES: Final = 256
GROUP: Final = 32
"""Number of blocks that a second-level entry covers."""
HEAD_BYTES: Final = 8
"""Maximum size of an entry before its pairs, in bytes."""
PAIR_BYTES: Final = 6
"""Maximum size of a pair, in bytes."""
BEST: Final = CODES + 2
"""Width of a scratch row: the highest frequency of each code, then the range of codes in a group of blocks."""
_LOW: Final = CODES
_HIGH: Final = CODES + 1


@kernel
def write_length_codes(lengths: UInt32s, codes: NDArray[np.uint8]) -> None:
    """Write each length's code: the length itself below 16, otherwise its bit count and its top four bits."""
    for i in range(len(lengths)):
        bits = bits_of(lengths[i])
        if bits < 4:
            codes[i] = np.uint8(lengths[i])
        else:
            codes[i] = np.uint8(((np.int64(lengths[i]) >> (bits - 4)) & 7) | ((bits - 3) << 3))


@kernel
def encode_impacts(
    bounds: Int64s,
    ids: UInt32s,
    frequencies: UInt32s,
    codes: NDArray[np.uint8],
    block_size: int,
    out: Bytes,
    offsets: Int64s,
    best: NDArray[np.uint32],
) -> int:
    """Encode the impacts of postings. A term has one entry for each block, then one for each 32 blocks.

    Args:
        bounds: First posting of each term, and the end of the last term.
        ids: (postings,), document ids, ascending for each term, below `len(codes)`.
        frequencies: (postings,), frequency of each posting.
        codes: Length code of each document.
        block_size: Number of postings of a block.
        out: Output. 8 bytes for each entry, and 12 for each posting, are enough.
        offsets: Output: byte offset of each entry, and the end of the last one.
        best: (1 + maximum second-level entry count of a term, 258), scratch space, 0 before and after the call.

    Returns:
        Number of bytes written, or -1 if `out`, `offsets` or `best` is too small or an id is out of range.
    """
    at, entry = np.int64(0), 0
    for term in range(len(bounds) - 1):
        first, end = bounds[term], bounds[term + 1]
        groups = (end - first + block_size * GROUP - 1) // (block_size * GROUP)
        if groups >= len(best):
            return -1
        for group in range(groups):
            best[1 + group, _LOW] = CODES
        for place in range(first, end, block_size):
            stop = min(place + block_size, end)
            if entry + 1 >= len(offsets) or len(out) - at < HEAD_BYTES + PAIR_BYTES * min(stop - place, CODES):
                return -1
            low, high = np.int64(CODES), np.int64(0)
            for i in range(place, stop):
                if np.int64(ids[i]) >= len(codes):
                    return -1
                code = np.int64(codes[ids[i]])
                low, high = min(low, code), max(high, code)
                best[0, code] = max(best[0, code], frequencies[i])
            _widen(best, 1 + (place - first) // (block_size * GROUP), low, high)
            offsets[entry] = at
            at = _encode_entry(best, 0, low, high, np.int64(ids[stop - 1]), out, at)
            entry += 1
        for group in range(groups):
            stop = min(first + (group + 1) * block_size * GROUP, end)
            pairs = min(stop - first - group * block_size * GROUP, CODES)
            if entry + 1 >= len(offsets) or len(out) - at < HEAD_BYTES + PAIR_BYTES * pairs:
                return -1
            offsets[entry] = at
            low, high = np.int64(best[1 + group, _LOW]), np.int64(best[1 + group, _HIGH])
            at = _encode_entry(best, 1 + group, low, high, np.int64(ids[stop - 1]), out, at)
            best[1 + group, _LOW] = best[1 + group, _HIGH] = 0
            entry += 1
    offsets[entry] = at
    return int(at)


@subroutine
def _widen(best: Any, row: Any, low: Any, high: Any) -> None:
    """Merge a block's frequencies for codes `low` to `high` into its group's frequencies."""
    best[row, _LOW] = min(np.int64(best[row, _LOW]), low)
    best[row, _HIGH] = max(np.int64(best[row, _HIGH]), high)
    for code in range(low, high + 1):
        best[row, code] = max(best[row, code], best[0, code])


@subroutine
def _encode_entry(best: Any, row: Any, low: Any, high: Any, last: Any, out: Any, at: Any) -> Any:
    """Encode the frequencies of codes `low` to `high` in a row, and reset them to 0. Returns the end of the entry."""
    highest, count = np.uint32(0), 0
    for code in range(low, high + 1):
        if best[row, code] > highest:
            highest = best[row, code]
            count += 1
    at = write_varint(out, write_varint(out, at, last), count)
    frequency, previous = np.int64(0), np.int64(0)
    for code in range(low, high + 1):
        value = np.int64(best[row, code])
        best[row, code] = 0
        if value > frequency:
            word = (value - frequency - 1) * 2
            if code == previous + 1:
                at = write_varint(out, at, word)
            else:
                at = write_varint(out, at, word + 1)
                store_u8(out, at, np.uint8(code - previous))
                at += 1
            frequency, previous = value, np.int64(code)
    return at


@kernel
def gather_terms(
    postings: Any,
    impacts: Any,
    lengths: Int64s,
    rows: Int64s,
    weights: NDArray[np.float32],
    norms: NDArray[np.float64],
    limits: Any,
    out: Any,
    last: Int64s,
    bounds: NDArray[np.float64],
) -> int:
    """Validate and copy the blocks of terms, and bound a term's score contribution in each of its blocks.

    Args:
        postings: Bytes of blocks; byte offset of each block, and the end of the last one; first block of each term of
            a source, and the total block count.
        impacts: The same for impact entries. A term has one entry for each block, then second-level entries.
        lengths: Number of documents of each term of the source.
        rows: Terms to copy, by their positions in the source, in any order.
        weights: The idf of each copied term.
        norms: The norm of each code's shortest length.
        limits: Number of documents of a full block; maximum number of documents per byte; number of documents of the
            partition.
        out: Output: `postings` and `lengths` of the copied terms. The arrays fit exactly.
        last: Output: the last document of each copied block.
        bounds: Output: the bound of each copied block.

    Returns:
        A status with an index into `rows`.
    """
    data, offsets, lists = postings
    impact_data, impact_offsets, entries = impacts
    block_size, most, num_documents = limits
    out_data, out_offsets, out_lists, out_lengths = out
    place, at = np.int64(0), np.int64(0)
    for i in range(len(rows)):
        row = rows[i]
        if row < 0 or row >= len(lengths) or row + 1 >= len(lists) or row + 1 >= len(entries):
            return status.BAD_OFFSETS | (i << 8)
        first, end, entry = lists[row], lists[row + 1], entries[row]
        blocks = end - first
        if first < 0 or end < first or end >= len(offsets) or lengths[row] < 0:
            return status.BAD_OFFSETS | (i << 8)
        if blocks != (lengths[row] + block_size - 1) // block_size or place + blocks > len(last):
            return status.BAD_LENGTH | (i << 8)
        if entry < 0 or entries[row + 1] - entry != blocks + (blocks + GROUP - 1) // GROUP:
            return status.BAD_LENGTH | (i << 8)
        if entries[row + 1] >= len(impact_offsets):
            return status.BAD_OFFSETS | (i << 8)
        begin, size = offsets[first], offsets[end] - offsets[first]
        if begin < 0 or size < 0 or begin + size > len(data) or at + size > len(out_data):
            return status.BAD_OFFSETS | (i << 8)
        if lengths[row] > size * most:
            return status.TOO_SHORT | (i << 8)
        out_lists[i], out_lengths[i] = place, lengths[row]
        previous = np.int64(-1)
        for block in range(blocks):
            if offsets[first + block + 1] < offsets[first + block]:
                return status.BAD_OFFSETS | (i << 8)
            low, high = impact_offsets[entry + block], impact_offsets[entry + block + 1]
            if low < 0 or high < low or high > len(impact_data):
                return status.BAD_OFFSETS | (i << 8)
            document, best, code = _read_entry(impact_data, low, high, norms)
            if code != status.OK:
                return int(code | (i << 8))
            if document <= previous or document >= num_documents:
                return status.BAD_VALUE | (i << 8)
            previous = document
            out_offsets[place + block] = offsets[first + block] - begin + at
            last[place + block] = document
            bounds[place + block] = best * np.float64(weights[i])
        for byte in range(size):
            out_data[at + byte] = data[begin + byte]
        place += blocks
        at += size
    out_lists[len(rows)] = place
    out_offsets[place] = at
    return status.OK


@subroutine
def _read_entry(data: Any, at: Any, end: Any, norms: Any) -> Any:
    """Read an entry. Returns (last document, bound for the idf 1, status without an index)."""
    best = 0.0
    last, at = read_varint(data, at, end)
    if at < 0:
        return last, best, status.TOO_SHORT
    count, at = read_varint(data, at, end)
    if at < 0 or count > end - at or count == 0:
        return last, best, status.TOO_SHORT
    frequency, length = np.int64(0), np.int64(0)
    for _ in range(count):
        word, at = read_varint(data, at, end)
        if at < 0 or ((word & 1) and at >= end):
            return last, best, status.TOO_SHORT
        frequency += (word >> 1) + 1
        if word & 1:
            length += np.int64(data[at])
            at += 1
        else:
            length += 1
        if frequency > 0xFFFFFFFF or length >= CODES:
            return last, best, status.BAD_VALUE
        times = np.float64(frequency)
        best = max(best, 2.2000001 * times / (times + norms[length]))
    return last, best, status.OK if at == end else status.TRAILING
