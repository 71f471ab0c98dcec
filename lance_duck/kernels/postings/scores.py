"""Kernels that score documents from compressed postings, and compute upper bounds of scores.

Each operation on scores is rounded to float32. The scores of the terms of each query word are added first, then the
sums of all words, in query order. Scores are therefore bit-identical to the reference implementation. Bounds are
float64, and slightly too large.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.postings.blocks import decode_block

Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]

SATURATION: Final = np.float32(np.float32(1.2) + np.float32(1))
SLACK: Final = 1 + 2.0**-16
"""Factor that raises score bounds. It exceeds twice the rounding error of a float32 sum of 64 terms."""
GROUP: Final = 32
"""Number of blocks that a second-level impact entry covers."""


@kernel
def accumulate(
    data: Bytes,
    offsets: Int64s,
    lists: Int64s,
    lengths: Int64s,
    block_size: int,
    is_varint: bool,
    weights: Float32s,
    slots: Int64s,
    norms: Any,
    mask: NDArray[np.bool_],
    every: bool,
    scores: Float32s,
    sums: Float32s,
    hits: NDArray[np.uint16],
    ids: UInt32s,
    frequencies: UInt32s,
) -> int:
    """Add the scores of all postings of terms to their documents.

    Args:
        data: Bytes of all blocks.
        offsets: Byte offset of each block, and the end of the last one; ascending, within `data`.
        lists: (terms + 1,), first block of each term, and the total block count.
        lengths: Number of documents of each term, which must fit the term's number of blocks.
        block_size: 128 or 256.
        is_varint: Whether the numbers in a term's last block are varints. If False, they are 32-bit words.
        weights: The idf of each term.
        slots: The query word of each term; ascending from 0.
        norms: The length code of each document, and the norm of each code.
        mask: Flags: whether each document may match. Empty if all documents may match.
        every: Whether a document must contain a term of each slot.
        scores: (documents,), increased by the scores of the postings.
        sums: (documents,), scratch space, initially 0. It is 0 again afterwards. Empty if no two terms have the same
            word.
        hits: (documents,), output, initially 0. With `every`, the number of leading slots that a document contains.
            Otherwise 1 if it contains any slot.
        ids: (block_size,), scratch space.
        frequencies: (block_size,), scratch space.

    Returns:
        A status with the index of a term.
    """
    num_documents = len(norms[0])
    for term in range(len(lengths)):
        rest, previous = lengths[term], np.int64(-1)
        weight, slot = weights[term], np.uint16(slots[term])
        target = sums if len(sums) else scores
        for block in range(lists[term], lists[term + 1]):
            count = min(rest, block_size)
            begin, end = offsets[block], offsets[block + 1]
            code = decode_block(data, begin, end, count, block_size, is_varint, ids, frequencies, 0)
            if code != status.OK:
                return int(code | (term << 8))
            rest -= count
            for i in range(count):
                document = np.int64(ids[i])
                if document <= previous or document >= num_documents or frequencies[i] == 0:
                    return int(status.BAD_VALUE | (term << 8))
                previous = document
                if len(mask) and not mask[document]:
                    continue
                target[document] += score_of(weight, frequencies[i], norm_of(norms, document))
                if not every:
                    hits[document] = np.uint16(1)
                elif hits[document] == slot:
                    hits[document] = np.uint16(slot + np.uint16(1))
        if len(sums) and (term + 1 == len(slots) or slots[term + 1] != slots[term]):
            for i in range(num_documents):
                scores[i] += sums[i]
                sums[i] = 0
    return status.OK


@subroutine
def norm_of(norms: Any, document: Any) -> Any:
    """Return the norm of a document."""
    codes, norms_of_codes = norms
    return norms_of_codes[codes[document]]


@subroutine
def score_of(weight: Any, frequency: Any, norm: Any) -> Any:
    """Return a term's contribution to a document's score."""
    count = np.float32(frequency)
    return np.float32(weight * np.float32(np.float32(SATURATION * count) / np.float32(count + norm)))


@kernel
def bound_windows(
    lists: Int64s,
    last: Int64s,
    bounds: Float64s,
    size: int,
    every: bool,
    slack: float,
    num_first: int,
    out: Float64s,
    totals: Float64s,
    order: Int64s,
) -> None:
    """Bound the terms' score contributions in each window of ids, and order the windows.

    Args:
        lists: (terms + 1,), first block of each term, and the total block count.
        last: The last document of each block. Below `size` times the window count.
        bounds: Bound of each block.
        size: Number of ids in a window.
        every: Whether a document must have all terms.
        slack: Factor that raises bounds.
        num_first: Maximum number of windows that are sorted to the front of `order`.
        out: (terms, windows), output, initially 0: the bounds of each term, or 0 if a window does not contain documents
            of the term.
        totals: (windows,), output: the score bound, or -1 if no document can match.
        order: (windows,), output: the `num_first` windows with the highest bounds, in descending order, then the
            others, in ascending order of their ids.
    """
    num_windows = len(totals)
    for term in range(len(lists) - 1):
        first = np.int64(0)
        for block in range(lists[term], lists[term + 1]):
            for window in range(first // size, last[block] // size + 1):
                out[term, window] = max(out[term, window], bounds[block] * slack)
            first = last[block] + 1
    for window in range(num_windows):
        total, is_void = 0.0, False
        for term in range(len(lists) - 1):
            total += out[term, window]
            is_void |= out[term, window] == 0
        totals[window] = -1.0 if total == 0 or (every and is_void) else total
        order[window] = window
    for place in range(num_first if num_windows > num_first else 0):
        best = place
        for i in range(place + 1, num_windows):
            if totals[order[i]] > totals[order[best]]:
                best = i
        window = order[best]
        for i in range(best, place, -1):
            order[i] = order[i - 1]
        order[place] = window


@kernel
def find_greatest(
    bounds: NDArray[np.int64],
    ids: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    weights: NDArray[np.float32],
    norms: NDArray[np.float32],
    block_size: int,
    out: NDArray[np.float32],
) -> int:
    """Find the highest score in each block, rounding each operation to float32.

    Args:
        bounds: First posting of each term, and the end of the last term; ascending, within `ids`.
        ids: (postings,), document ids.
        frequencies: (postings,), at least 1.
        weights: The idf of each term.
        norms: Norm of each document.
        block_size: Number of postings of a block.
        out: Output: one number for each block.

    Returns:
        Number of blocks, or -1 if `out` is too small or an id is out of range.
    """
    block = 0
    for term in range(len(bounds) - 1):
        weight = np.float32(weights[term] * SATURATION)
        for place in range(bounds[term], bounds[term + 1], block_size):
            if block >= len(out):
                return -1
            best = np.float32(0)
            for i in range(place, min(place + block_size, bounds[term + 1])):
                if np.int64(ids[i]) >= len(norms):
                    return -1
                count = np.float32(frequencies[i])
                best = max(best, np.float32(count / np.float32(count + norms[ids[i]])))
            out[block] = np.float32(weight * best)
            block += 1
    return block
