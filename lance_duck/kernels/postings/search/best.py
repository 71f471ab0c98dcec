"""Kernels that find the documents of one term, or of all of several terms, with the greatest scores.

Blocks are skipped by the bounds of their scores.
Arithmetic is that of `kernels.postings.scores`. Arguments that the kernels of this room share come in tuples:

    postings   of several terms: bytes of all blocks; where each block begins, and where the last one ends; the first
               block of each term, and one past the last block; number of documents of each term; number of documents of
               a block; whether numbers of the last block of a term are varints; the last document of each block, by its
               impacts, or a bound of it, below the first document of the next block of the term; whether it is exact
    scoring    the idf of each term, more than 0; the code of each document, and the norm of each code; whether each
               document may match, empty if all may; the key of each document, by which equal scores are ordered; the
               word that each term stands for, ascending
    windows    (terms, windows), the most that a term adds to the score of a document in a window of ids, 0 if it has
               none there; the highest score in each window, less than 0 if no document can match; windows, the most
               promising first; number of ids of a window
    best       written: scores of the best documents, in no order, as many as are asked for; their ids
    counts     two numbers, 0 before; written: number of documents found, number of blocks decoded
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.postings.scores import norm_of, score_of
from lance_duck.kernels.postings.search.heap import push, score_to_reach
from lance_duck.kernels.postings.search.intersect import intersect_promising, score_row
from lance_duck.kernels.postings.search.reading import count_of, decode_known

Int64s = NDArray[np.int64]


@kernel
def find_best_of_term(
    postings: Any,
    scoring: Any,
    bounds: NDArray[np.float64],
    order: Int64s,
    least: float,
    best: Any,
    room: NDArray[np.uint32],
    counts: Int64s,
) -> int:
    """Find the best documents of one term.

    Args:
        postings: Postings of the term.
        scoring: Weights, norms and keys of documents.
        bounds: The most that the term adds to the score of a document of each block; a little too large.
        order: Blocks in the order of their bounds, the greatest first.
        least: Lowest score of a document that is returned.
        best: Written: scores and ids of the best documents.
        room: (2, documents of a block), for work.
        counts: Written: number of documents found, number of blocks decoded.

    Returns:
        A status; its place is 0.
    """
    lists, lengths, block_size = postings[2], postings[3], postings[4]
    weights, norms, mask, keys, _ = scoring
    scores, documents = best
    ids, frequencies = room[0], room[1]
    num_best = np.int64(0)
    for number in range(len(order)):
        block = order[number]
        threshold = score_to_reach(scores, num_best, least)
        if bounds[block] < threshold:
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
    counts[0] = num_best
    return status.OK


@kernel
def find_best_of_all(
    postings: Any, scoring: Any, windows: Any, least: float, best: Any, work: Any, counts: Int64s
) -> int:
    """Find the best documents that have all of several terms.

    Args:
        postings: Postings of the terms.
        scoring: Weights, norms and keys of documents.
        windows: Bounds of the scores in each window, and the order of windows.
        least: Lowest score of a document that is returned.
        best: Written: scores and ids of the best documents.
        work: Room for the candidates of a window.
        counts: Written: number of documents found, number of blocks decoded.

    Returns:
        A status; its place is a term.
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
    counts[0] = num_best
    return status.OK
