"""Scores of rows of which some vectors were found; others are scored as if they were as near as the last one found.

XTR (contextual token retrieval) imputes missing similarities in this way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.scan.nearest.best import Neighbours


def nearest_vectors(neighbours: Neighbours, most: int) -> Neighbours:
    """Return for each query vector the nearest of the vectors that several segments found: by query, nearest first.

    Args:
        neighbours: Pairs of a query vector, and a row with the distance of one of its vectors.
        most: Vectors to keep for each query vector.
    """
    order = np.lexsort((neighbours.addresses, neighbours.distances, neighbours.queries))
    sizes = np.bincount(neighbours.queries)
    ranks = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    best = order[ranks < most]
    return Neighbours(neighbours.queries[best], neighbours.distances[best], neighbours.addresses[best])


def best_rows(nearest: Neighbours, count: int) -> NDArray[np.uint64]:
    """Return the rows with the best scores, best first, rows of equal score by address.

    The score of a row is the sum, over the query vectors, of the similarity (1 - distance) of the nearest vector of the
    row, or if none of its vectors was found, of the last vector that was.

    Args:
        nearest: Nearest vectors of each query vector, as `nearest_vectors` gives them.
        count: Rows at most.

    Returns:
        Addresses, uint64, at most `count`.
    """
    rows, places = np.unique(nearest.addresses, return_inverse=True)
    queries, numbers = np.unique(nearest.queries, return_inverse=True)
    similar = 1 - nearest.distances.astype(np.float64)
    floors = np.full(len(queries), np.inf)
    np.minimum.at(floors, numbers, similar)
    best = np.repeat(floors[:, None], len(rows), axis=1)
    np.maximum.at(best, (numbers, places), similar)
    scores = best.sum(axis=0)
    order = np.lexsort((rows, -scores))[:count]
    addresses: NDArray[np.uint64] = rows[order]
    return addresses
