"""Kernels that find the highest-scoring documents with one term, or with all of several terms.

Score bounds determine which blocks are skipped.
`kernels.postings.scores` defines the arithmetic. The search kernels share these arguments, which are tuples:

    postings   bytes of all blocks; byte offset of each block, and the end of the last one; first block of each term,
               and the total block count; document count of each term; documents in a full block; whether numbers
               in a term's last block are varints; last document of each block, or an upper bound below the next
               block's first document; whether these numbers are exact
    scoring    the idf of each term, more than 0; each document's length code, and each code's norm; whether each
               document may match, empty if all may match; each document's sort key, which orders equal scores; the
               query word of each term, ascending
    windows    (terms, windows), upper bound of a term's contribution in a window of ids, 0 without documents;
               the highest score in each window, negative if no document can match; the windows, most promising first;
               number of ids in a window
    best       output: scores of the best documents, best first; their ids. The array sizes are the requested count
    counts     output, two numbers, initially 0: number of documents found, number of blocks decoded
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.postings.scores import SLACK, norm_of, score_of
from lance_duck.kernels.postings.search.heap import order_best, order_entries, push, score_to_reach, take_first
from lance_duck.kernels.postings.search.intersect import intersect_promising, score_row
from lance_duck.kernels.postings.search.reading import count_of, decode_known

Int64s = NDArray[np.int64]


@kernel
def find_best_of_term(
    postings: Any,
    scoring: Any,
    bounds: NDArray[np.float64],
    least: float,
    best: Any,
    room: NDArray[np.uint32],
    order: Int64s,
    counts: Int64s,
) -> int:
    """Find the best documents of one term. Blocks are read in descending order of their bounds.

    Args:
        postings: Postings of the term.
        scoring: Weights, norms and sort keys of documents.
        bounds: Upper bound of the term's contribution in each block, before `SLACK`.
        least: Minimum score.
        best: Output: scores and ids of the best documents.
        room: (2, documents in a full block), scratch space.
        order: (blocks,), scratch space.
        counts: Output: number of documents found, number of blocks decoded.

    Returns:
        A status with the index 0.
    """
    lists, lengths, block_size = postings[2], postings[3], postings[4]
    weights, norms, mask, keys, _ = scoring
    scores, documents = best
    ids, frequencies = room[0], room[1]
    num_best = np.int64(0)
    num_blocks = lists[1] - lists[0]
    order_entries(bounds, order, num_blocks)
    for number in range(num_blocks):
        block = take_first(bounds, order, num_blocks - number)
        threshold = score_to_reach(scores, num_best, least)
        if bounds[block] * SLACK < threshold:
            break
        code = decode_known(postings, 0, block, ids, frequencies)
        if code != status.OK:
            return int(code)
        counts[1] += 1
        for i in range(count_of(lists, lengths, block_size, 0, block)):
            document = np.int64(ids[i])
            if len(mask) and not mask[document]:
                continue
            score = score_of(weights[0], frequencies[i], norm_of(norms, document))
            if score >= threshold:
                num_best = push(scores, documents, keys, num_best, score, document)
    order_best(scores, documents, keys, num_best)
    counts[0] = num_best
    return status.OK


@kernel
def find_best_of_all(
    postings: Any, scoring: Any, windows: Any, least: float, best: Any, work: Any, counts: Int64s
) -> int:
    """Find the best documents that contain all of several terms.

    Args:
        postings: Postings of the terms.
        scoring: Weights, norms and sort keys of documents.
        windows: Score bounds of each window, and the order of windows.
        least: Minimum score.
        best: Output: scores and ids of the best documents.
        work: Scratch space for a window's candidates.
        counts: Output: number of documents found, number of blocks decoded.

    Returns:
        A status with the index of a term.
    """
    keys, slots = scoring[3], scoring[4]
    scores, documents = best
    num_best = np.int64(0)
    for number in range(len(windows[2])):
        threshold = score_to_reach(scores, num_best, least)
        num_candidates, code = intersect_promising(postings, scoring, windows, number, threshold, work, counts)
        if code != status.OK:
            return int(code)
        for i in range(num_candidates):
            score, code = score_row(postings, scoring, slots, work, i, counts)
            if code != status.OK:
                return int(code)
            if score >= threshold:
                num_best = push(scores, documents, keys, num_best, score, work[5][0, i])
    order_best(scores, documents, keys, num_best)
    counts[0] = num_best
    return status.OK
