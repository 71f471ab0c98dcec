"""Upper bounds of scores for blocks and for windows of documents, computed from impacts."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.arrays import BinaryLists
from lance_duck.index.inverted.codecs.blocks import POSTINGS_A_BYTE
from lance_duck.index.inverted.codecs.impacts import length_floors
from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.codecs.scores import K1, B
from lance_duck.index.inverted.costs import FIRST_WINDOWS, LARGEST_WINDOW, SEARCH_WINDOW, WINDOW_POSTINGS
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.postings import PostingBlocks
from lance_duck.index.inverted.search.matching import WeightedTerms
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.impacts import gather_terms
from lance_duck.kernels.postings.scores import SLACK, bound_windows

_FLOORS = length_floors().astype(np.float64)


def windows_of(
    bounded: BoundedPostings, *, every: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], int]:
    """Divide documents into windows, and order the windows for the search.

    A few of the windows with the highest bounds come first, to establish a threshold. The other windows ascend, so that
    each block is decoded only once.

    Returns:
        The bound of each term in each window, the bound of each window, the search order, and the window size.
    """
    postings, last, bounds = bounded
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


class BoundedPostings(NamedTuple):
    """Postings of terms, and bounds of their scores.

    Attributes:
        postings: The postings, without impacts.
        last: int64 (blocks,), last document of each block.
        bounds: float64 (blocks,), upper bound of the term's scores in each block.
    """

    postings: PostingBlocks
    last: NDArray[np.int64]
    bounds: NDArray[np.float64]


def bounded_postings(
    partition: InvertedPartition, terms: WeightedTerms, average: float, *, reads_impacts: bool = True
) -> BoundedPostings | None:
    """Return a copy of the postings of terms, with bounds. None if the impacts do not exist or are not read.

    Args:
        partition: The partition.
        terms: The terms.
        average: Average number of terms per document.
        reads_impacts: Whether to read impacts that are not in memory.

    Raises:
        CorruptError: Postings or impacts are corrupt.
    """
    blobs, impacts, lengths, rows = partition.source_of(terms.ids, reads_impacts=reads_impacts)
    if impacts is None:
        return None
    form, num_documents, where, count = partition.block_form, partition.num_documents, partition.where, len(rows)
    blocks, size = blobs.size_of(rows, where)
    out = (
        np.empty(size, np.uint8),
        np.empty(blocks + 1, np.int64),
        np.empty(count + 1, np.int64),
        np.empty(count, np.int64),
    )
    last, bounds = np.empty(blocks, np.int64), np.empty(blocks, np.float64)
    code = gather_terms(
        (blobs.data, blobs.offsets, blobs.lists),
        (impacts.data, impacts.offsets, impacts.lists),
        readonly(lengths),
        readonly(rows),
        readonly(terms.weights),
        norms_of_codes(average),
        (form.size, POSTINGS_A_BYTE, num_documents),
        out,
        last,
        bounds,
    )
    check_code(code, "postings or impacts", where, "term")
    for each in out:
        each.setflags(write=False)
    postings = PostingBlocks(BinaryLists(*out[:3]), out[3], form, num_documents, None, where)
    return BoundedPostings(postings, last, bounds)


@lru_cache(maxsize=16)
def norms_of_codes(average: float) -> NDArray[np.float64]:
    """Return a lower bound of the norm of each code's shortest length."""
    return readonly(float(K1) * (1 - float(B) + float(B) * _FLOORS / average) * (1 - 2.0**-20))
