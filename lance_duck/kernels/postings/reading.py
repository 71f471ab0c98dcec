"""Subroutines that read blocks of postings, of several terms, where they are needed.

`kernels.postings.best` says what `postings` are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_duck.kernels import status
from lance_duck.kernels.jit import subroutine
from lance_duck.kernels.postings.blocks import decode_block


@subroutine
def read_block(postings: Any, term: Any, block: Any, room: Any, decoded: Any, counts: Any) -> Any:
    """Decode a block of a term, unless it is the one that was decoded last; returns a status without place."""
    if decoded[term] == block:
        return status.OK
    data, offsets, lists, lengths, block_size, is_varint, last = postings
    count = count_of(lists, lengths, block_size, term, block)
    span = offsets[block], offsets[block + 1], last[block]
    code = decode_known(data, span, count, block_size, is_varint, room[0, term], room[1, term])
    decoded[term] = block if code == status.OK else np.int64(-1)
    counts[1] += 1
    return code


@subroutine
def count_of(lists: Any, lengths: Any, block_size: Any, term: Any, block: Any) -> Any:
    """Return the documents of a block."""
    return min(block_size, lengths[term] - (block - lists[term]) * block_size)


@subroutine
def decode_known(data: Any, span: Any, count: Any, block_size: Any, is_varint: Any, ids: Any, frequencies: Any) -> Any:
    """Decode a block, whose last document is known, and check it; returns a status without place."""
    begin, end, last = span
    code = decode_block(data, begin, end, count, block_size, is_varint, ids, frequencies, 0)
    if code != status.OK:
        return code
    wrong = np.int64(frequencies[0] == 0)
    for i in range(1, count):
        wrong += np.int64(ids[i] <= ids[i - 1]) + np.int64(frequencies[i] == 0)
    return status.OK if wrong == 0 and np.int64(ids[count - 1]) == last else status.BAD_VALUE


@subroutine
def first_block(last: Any, low: Any, high: Any, start: Any) -> Any:
    """Return the first block that ends at a document or behind it."""
    while low < high:
        middle = (low + high) >> 1
        if last[middle] < start:
            low = middle + 1
        else:
            high = middle
    return low


@subroutine
def lower_place(ids: Any, low: Any, high: Any, document: Any) -> Any:
    """Return the place of the first id, of those that ascend, that is not below a document; `high` - 1 if all are."""
    high = high - 1
    while low < high:
        middle = (low + high) >> 1
        if np.int64(ids[middle]) < document:
            low = middle + 1
        else:
            high = middle
    return low
