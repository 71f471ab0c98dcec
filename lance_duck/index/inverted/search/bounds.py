"""Upper bounds of scores for blocks and for windows of documents, computed from impacts."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.arrays import BinaryLists
from lance_duck.index.inverted.codecs.impacts import length_floors
from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.codecs.scores import K1, B
from lance_duck.index.inverted.costs import FIRST_WINDOWS, LARGEST_WINDOW, SEARCH_WINDOW, WINDOW_POSTINGS
from lance_duck.index.inverted.postings import PostingBlocks
from lance_duck.index.inverted.search.matching import WeightedTerms
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.impacts import decode_impacts
from lance_duck.kernels.postings.scores import SLACK, bound_blocks, bound_windows

_FLOORS = length_floors().astype(np.float64)


def windows_of(
    postings: PostingBlocks, last: NDArray[np.int64], bounds: NDArray[np.float64], *, every: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], int]:
    """Divide documents into windows, and order the windows for the search.

    A few of the windows with the highest bounds come first, to establish a threshold. The other windows ascend, so that
    each block is decoded only once.

    Returns:
        The bound of each term in each window, the bound of each window, the search order, and the window size.
    """
    size = window_size(int(postings.lengths.sum()), postings.num_documents)
    count, lists = -(-postings.num_documents // size), postings.blocks.lists
    window_bounds = np.zeros((len(lists) - 1, count))
    totals, order = np.empty(count), np.empty(count, np.int64)
    bound_windows(lists, last, bounds, size, every, SLACK, FIRST_WINDOWS, window_bounds, totals, order)
    return window_bounds, totals, order, size


def window_size(num_postings: int, num_documents: int) -> int:
    """Return the number of documents in a window. Rarer terms get larger windows."""
    size = SEARCH_WINDOW
    while size < LARGEST_WINDOW and num_postings * size < WINDOW_POSTINGS * num_documents:
        size *= 2
    return size


def block_bounds(
    postings: PostingBlocks, impacts: BinaryLists, terms: WeightedTerms, average: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the last document of each block, and an upper bound of the term's scores in the block."""
    lists = postings.blocks.lists
    entries, size = len(impacts.offsets) - 1, len(impacts.data)
    last_ids, pairs = np.empty(entries, np.int64), np.empty(entries + 1, np.int64)
    frequencies, codes = np.empty(size, np.uint32), np.empty(size, np.uint8)
    code = decode_impacts(impacts.data, impacts.offsets, last_ids, pairs, frequencies, codes)
    check_code(code, "impacts", postings.where, "entry")
    blocks = int(lists[-1])
    last, bounds = np.empty(blocks, np.int64), np.empty(blocks, np.float64)
    code = bound_blocks(
        lists,
        impacts.lists,
        last_ids,
        pairs,
        frequencies,
        codes,
        readonly(terms.weights),
        _norms_of_codes(float(average)),
        postings.num_documents,
        last,
        bounds,
    )
    check_code(code, "impacts", postings.where, "term")
    return last, bounds


@lru_cache(maxsize=16)
def _norms_of_codes(average: float) -> NDArray[np.float64]:
    """Return a lower bound of the norm of each code's shortest length."""
    return readonly(float(K1) * (1 - float(B) + float(B) * _FLOORS / average) * (1 - 2.0**-20))
