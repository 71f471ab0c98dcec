"""Documents that share a band key, as groups and as pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]


def equal_groups(keys: UInt64s) -> Int64s:
    """Return a group number for each row of a matrix: equal rows have equal numbers."""
    order = np.lexsort(keys.T)
    ordered = keys[order]
    is_new = np.ones(len(keys), np.bool_)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    numbers = np.empty(len(keys), np.int64)
    numbers[order] = np.cumsum(is_new) - 1
    return numbers


def candidate_pairs(keys: UInt64s, most: int) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the pairs of documents that share a band key, each pair once.

    Args:
        keys: Band keys, (documents, bands).
        most: Approximate maximum number of pairs at once.
    """
    for band in range(keys.shape[1]):
        order = np.argsort(keys[:, band], kind="stable")
        column = keys[order, band]
        ends = np.searchsorted(column, column, side="right")
        counts = ends - np.arange(len(order)) - 1
        sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        start = 0
        while sums[start] < sums[-1]:
            stop = max(start + 1, int(np.searchsorted(sums, sums[start] + most, side="right")) - 1)
            for left, right in _blocks(start, counts[start:stop], most):
                pair = order[left], order[right]
                is_known = (keys[pair[0], :band] == keys[pair[1], :band]).any(axis=1)
                yield pair[0][~is_known], pair[1][~is_known]
            start = stop


def _blocks(start: int, counts: Int64s, most: int) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the pairs of positions `start + i` with the `counts[i]` positions after it."""
    total = int(counts.sum())
    ends = np.cumsum(counts)
    for begin in range(0, total, most):
        number = np.arange(begin, min(begin + most, total))
        row = np.searchsorted(ends, number, side="right")
        left = start + row
        yield left, left + 1 + number - (ends - counts)[row]
