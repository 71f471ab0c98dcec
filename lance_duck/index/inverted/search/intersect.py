"""Selects the postings to read in a search for documents that contain all of several terms.

Impacts rule out windows of documents. If only few documents are expected to match, skipping windows would not save
time, so impacts are not read from the file. In the longer posting lists, the first document of each block then shows
which blocks may contain the documents of the shortest list. Impacts in memory show it more precisely.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.costs import FEW_MATCHES, LARGEST_WINDOW
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.postings import PostingBlocks
from lance_duck.index.inverted.search.bounds import bounded_postings, windows_of
from lance_duck.index.inverted.search.matching import WeightedTerms
from lance_duck.index.inverted.search.scratch import MEETING
from lance_duck.kernels import status
from lance_duck.kernels.postings.blocks import bound_documents


@dataclass(frozen=True, eq=False, slots=True)
class Intersection:
    """The postings of terms, all of which a document must contain.

    Attributes:
        postings: The postings, in the order of the terms.
        shortest: Number of documents of the rarest term.
        sequence: int64 (terms,), the terms, rarest first.
        lists: The argument `postings` of `kernels.postings.search.best`.
        windows: The argument `windows` of `kernels.postings.search.best`.
    """

    postings: PostingBlocks
    shortest: int
    sequence: NDArray[np.int64]
    lists: Any
    windows: Any


def with_work(
    count: int, block_size: int, sequence: NDArray[np.int64], window: int, search: Callable[[Any], int]
) -> int:
    """Call a kernel with the argument `work` of `kernels.postings.search.intersect`. Returns its status.

    Args:
        count: Number of terms.
        block_size: Number of documents in a full block.
        sequence: int64 (terms,), the order of the terms.
        window: Number of documents in a window.
        search: Calls the kernel.
    """
    sizes = count, block_size, window
    arrays = MEETING.take(*sizes)
    room, state, *rest = arrays
    state.fill(-1)
    code = search((room, state, sequence, *rest))
    if code == status.OK:
        MEETING.give(arrays, *sizes)
    return code


def intersected(partition: InvertedPartition, terms: WeightedTerms, average: float) -> Intersection:
    """Read the postings of terms, all of which a document must contain.

    Args:
        partition: The partition.
        terms: The terms. Each query word has one term, because variants are not supported.
        average: Average number of terms per document.

    Raises:
        CorruptError: Postings or impacts are corrupt.
    """
    lengths = partition.document_frequencies(terms.ids).tolist()
    num_documents = partition.num_documents
    expected = expected_matches(lengths, num_documents)
    bounded = bounded_postings(partition, terms, average, reads_impacts=expected > FEW_MATCHES)
    if bounded is None:
        postings = partition.postings(terms.ids, with_impacts=False)
        last, windows = last_documents(postings), every_window(num_documents)
    else:
        postings, last = bounded.postings, bounded.last
        windows = windows_of(bounded, every=True) if expected > FEW_MATCHES else every_window(num_documents)
    lists = (*postings.buffers, last, bounded is not None)
    sequence = np.argsort(postings.lengths, kind="stable")
    return Intersection(postings, min(lengths), sequence, lists, windows)


def expected_matches(lengths: list[int], num_documents: int) -> float:
    """Return the expected number of documents with all of several independent terms of these document counts."""
    return math.prod(length / num_documents for length in lengths) * num_documents


def last_documents(postings: PostingBlocks) -> NDArray[np.int64]:
    """Return an upper bound of each block's last document, derived from the first document of the next block."""
    last = np.empty(int(postings.blocks.lists[-1]), np.int64)
    code = bound_documents(*postings.buffers, postings.num_documents, last)
    check_code(code, "postings", postings.where, "term")
    return last


@lru_cache(maxsize=64)
def every_window(num_documents: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], int]:
    """Return all windows in ascending order, without useful bounds: see `windows_of`."""
    count = -(-num_documents // LARGEST_WINDOW)
    return np.empty((0, 0)), np.full(count, np.inf), np.arange(count), LARGEST_WINDOW
