"""Counts documents in compressed postings, without scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.postings.blocks import decode_documents

Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]


@kernel
def count_marked(
    data: Bytes,
    offsets: Int64s,
    lists: Int64s,
    lengths: Int64s,
    block_size: int,
    is_varint: bool,
    slots: Int64s,
    num_slots: int,
    mask: NDArray[np.bool_],
    every: bool,
    hits: NDArray[np.uint16],
    ids: UInt32s,
    frequencies: UInt32s,
) -> tuple[int, int]:
    """Count the documents that contain a term of any slot, or of each slot.

    Args:
        data: See `scores.accumulate`.
        offsets: See `scores.accumulate`.
        lists: See `scores.accumulate`.
        lengths: See `scores.accumulate`.
        block_size: See `scores.accumulate`.
        is_varint: See `scores.accumulate`.
        slots: The query word of each term; ascending from 0.
        num_slots: Number of query words, at least 1.
        mask: Flags: whether each document may match. Empty if all documents may match.
        every: Whether a document must contain a term of each slot.
        hits: (documents,), scratch space, initially 0.
        ids: (block_size,), scratch space.
        frequencies: (block_size,), scratch space.

    Returns:
        A status with the index of a term, and the number of documents.
    """
    found = 0
    for term in range(len(lengths)):
        rest, previous = lengths[term], np.int64(-1)
        before = np.uint16(slots[term] if every else 0)
        after = np.uint16(before + np.uint16(1))
        is_last = not every or slots[term] == num_slots - 1
        for block in range(lists[term], lists[term + 1]):
            count = min(rest, block_size)
            code = decode_documents(
                data, offsets[block], offsets[block + 1], count, block_size, is_varint, ids, frequencies
            )
            if code != status.OK:
                return int(code | (term << 8)), 0
            rest -= count
            for i in range(count):
                document = np.int64(ids[i])
                if document <= previous or document >= len(hits):
                    return int(status.BAD_VALUE | (term << 8)), 0
                previous = document
                if hits[document] == before and (not len(mask) or mask[document]):
                    hits[document] = after
                    found += is_last
    return status.OK, found
