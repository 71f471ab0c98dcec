"""A kernel that finds the documents with the greatest scores among those that have all of several terms.

`kernels.postings.search.best` describes its arguments, but for `work`: see `kernels.postings.search.intersect`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.postings.search.heap import push
from lance_duck.kernels.postings.search.intersect import intersect_window, score_row

Int64s = NDArray[np.int64]


@kernel
def find_best_of_all(
    postings: Any, scoring: Any, windows: Any, least: float, best: Any, work: Any, counts: Int64s
) -> int:
    """Find the best documents that have all of several terms.

    Args:
        postings: See above.
        scoring: See above.
        windows: See above.
        least: Lowest score of a document that is returned.
        best: See above.
        work: See above.
        counts: See above.

    Returns:
        A status; its place is a term.
    """
    bounds, totals, order, size = windows
    keys, slots = scoring[3], scoring[4]
    scores, documents = best
    num_best = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        threshold = max(least, np.float64(scores[0])) if num_best == len(scores) else least
        if totals[window] < 0 or totals[window] < threshold:
            continue
        span, limits = (window * size, size, len(totals)), (bounds, window, threshold)
        num_candidates, code = intersect_window(postings, scoring, span, len(slots), limits, work, counts)
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
