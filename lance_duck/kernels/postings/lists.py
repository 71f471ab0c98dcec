"""Kernels for lists of binary values. `index.inverted.codecs.arrays` describes their arrays.

offsets    (values + 1,), byte offset of each value, and the end of the last one
lists      (lists + 1,), first value of each list, and the total value count
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes

Int64s = NDArray[np.int64]


@kernel
def size_lists(num_bytes: int, offsets: Int64s, lists: Int64s, rows: Int64s, sizes: Int64s) -> int:
    """Validate lists, and count their values and bytes.

    Args:
        num_bytes: Size of all values, in bytes.
        offsets: Byte offset of each value.
        lists: First value of each list.
        rows: Lists to count, in any order.
        sizes: Output: the number of values, and their size in bytes.

    Returns:
        A status with an index into `rows`.
    """
    values, size = np.int64(0), np.int64(0)
    for i in range(len(rows)):
        row = rows[i]
        if row < 0 or row + 1 >= len(lists):
            return status.BAD_OFFSETS | (i << 8)
        first, last = lists[row], lists[row + 1]
        if first < 0 or last < first or last >= len(offsets):
            return status.BAD_OFFSETS | (i << 8)
        for value in range(first, last):
            if offsets[value + 1] < offsets[value]:
                return status.BAD_OFFSETS | (i << 8)
        if offsets[first] < 0 or offsets[last] > num_bytes:
            return status.BAD_OFFSETS | (i << 8)
        values += last - first
        size += offsets[last] - offsets[first]
    sizes[0], sizes[1] = values, size
    return status.OK


@kernel
def gather_lists(
    data: Bytes, offsets: Int64s, lists: Int64s, rows: Int64s, out: Bytes, out_offsets: Int64s, out_lists: Int64s
) -> None:
    """Copy lists that `size_lists` has validated.

    Args:
        data: Bytes of all values.
        offsets: Byte offset of each value.
        lists: First value of each list.
        rows: Lists to copy, in any order.
        out: Output: bytes of the copied values.
        out_offsets: Output: offsets of the copied values.
        out_lists: Output: boundaries of the copied lists.
    """
    place, at = np.int64(0), np.int64(0)
    for i in range(len(rows)):
        first, last = lists[rows[i]], lists[rows[i] + 1]
        begin, end = offsets[first], offsets[last]
        out_lists[i] = place
        for value in range(first, last):
            out_offsets[place] = offsets[value] - begin + at
            place += 1
        for byte in range(end - begin):
            out[at + byte] = data[begin + byte]
        at += end - begin
    out_lists[len(rows)] = place
    out_offsets[place] = at


@kernel
def count_postings(offsets: Int64s, lists: Int64s, lengths: Int64s, block_size: int, most: int) -> int:
    """Count the postings of terms. Each list holds the blocks of a term.

    Args:
        offsets: Byte offset of each value.
        lists: First value of each list.
        lengths: Number of postings of each term.
        block_size: Number of postings of a full block.
        most: Maximum number of postings per byte.

    Returns:
        The number of postings. -1 if a term has the wrong number of blocks, -2 if there are too few bytes.
    """
    if len(lists) != len(lengths) + 1:
        return -1
    total, size = np.int64(0), np.int64(0)
    for term in range(len(lengths)):
        first, last = lists[term], lists[term + 1]
        if first < 0 or last >= len(offsets) or lengths[term] < 0:
            return -1
        if last - first != (lengths[term] + block_size - 1) // block_size:
            return -1
        total += lengths[term]
        size += offsets[last] - offsets[first]
        if total > size * most:
            return -2
    return int(total)


@kernel
def locate_blocks(
    terms: Int64s,
    starts: NDArray[np.uint32],
    lists: Int64s,
    rows: Int64s,
    bounds: Int64s,
    begins: Int64s,
    ends: Int64s,
) -> int:
    """Locate the blocks of terms in their streams. The blocks of a stream follow each other without gaps.

    Args:
        terms: Byte offset of each term's stream in a source, and the end of the last one; ascending.
        starts: Offset of each block in its stream.
        lists: First block of each term of the source, and the total block count.
        rows: (n,), the terms to locate, by their positions in the source.
        bounds: (n + 1,), required block count of all terms before each of these terms, and of all. Each term has at
            least one block.
        begins: (blocks,), output: byte offset of each block.
        ends: (blocks,), output: end of each block.

    Returns:
        A status with an index into `rows`.
    """
    for i in range(len(rows)):
        row, place = rows[i], bounds[i]
        if row < 0 or row + 1 >= len(lists) or row + 1 >= len(terms):
            return status.BAD_OFFSETS | (i << 8)
        first, last = lists[row], lists[row + 1]
        if last - first != bounds[i + 1] - place or last <= first:
            return status.BAD_LENGTH | (i << 8)
        if first < 0 or last > len(starts) or place < 0 or bounds[i + 1] > len(begins) or bounds[i + 1] > len(ends):
            return status.BAD_LENGTH | (i << 8)
        end = terms[row + 1]
        for block in range(last - 1, first - 1, -1):
            begin = terms[row] + np.int64(starts[block])
            if begin > end:
                return status.BAD_OFFSETS | (i << 8)
            begins[place + block - first], ends[place + block - first] = begin, end
            end = begin
    return status.OK
