"""A kernel that finds the documents with the greatest scores among those that have all of several terms.

`kernels.postings.search.best` describes its arguments, but for `work`: see `kernels.postings.search.intersect`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.postings.search.heap import push, score_to_reach
from lance_duck.kernels.postings.search.intersect import intersect_promising, score_row

Int64s = NDArray[np.int64]


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
