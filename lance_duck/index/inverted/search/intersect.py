"""Selects the postings to read in a search for documents that contain all of several terms.

Impacts rule out windows of documents. If only few documents are expected to match, skipping windows would not save
time, so impacts are not read. In the longer posting lists, the first document of each block then shows which blocks
may contain the documents of the shortest list.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.costs import FEW_MATCHES, LARGEST_WINDOW
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.postings import PostingBlocks
from lance_duck.index.inverted.search.bounds import bounded_postings, windows_of
from lance_duck.index.inverted.search.matching import WeightedTerms
from lance_duck.kernels.postings.blocks import bound_documents
from lance_duck.kernels.postings.search.intersect import ROWS_BEFORE


@dataclass(frozen=True, eq=False)
class Intersection:
    """The postings of terms, all of which a document must contain.

    Attributes:
        postings: The postings, in the order of the terms.
        shortest: Number of documents of the rarest term.
        lists: The argument `postings` of `kernels.postings.search.best`.
        windows: The argument `windows` of `kernels.postings.search.best`.
    """

    postings: PostingBlocks
    shortest: int
    lists: Any
    windows: Any

    def work(self) -> Any:
        """Return the argument `work` of `kernels.postings.search.intersect`."""
        rarest = np.argsort(self.postings.lengths, kind="stable")
        return work_of(self.postings, rarest, int(self.windows[-1]))


def work_of(postings: PostingBlocks, sequence: NDArray[np.int64], window: int) -> Any:
    """Return the argument `work` of `kernels.postings.search.intersect`.

    `sequence` is the order of the terms, and `window` is the number of documents in a window.
    """
    count, size = len(postings), postings.form.size
    room = np.empty((2, count, size), np.uint32)
    rows = np.empty((ROWS_BEFORE + count, window + 1), np.int64)
    marks, greatest = np.zeros(window, np.uint32), np.zeros(1, np.int64)
    return room, np.full((2, count), -1, np.int64), sequence, marks, greatest, rows


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
    expected = math.prod(length / num_documents for length in lengths) * num_documents
    bounded = bounded_postings(partition, terms, average) if expected > FEW_MATCHES else None
    if bounded is None:
        postings = partition.postings(terms.ids, with_impacts=False)
        last, windows = last_documents(postings), _every_window(num_documents)
    else:
        postings, last = bounded.postings, bounded.last
        windows = windows_of(bounded, every=True)
    lists = (*postings.buffers, last, bounded is not None)
    return Intersection(postings, min(lengths), lists, windows)


def last_documents(postings: PostingBlocks) -> NDArray[np.int64]:
    """Return an upper bound of each block's last document, derived from the first document of the next block."""
    last = np.empty(int(postings.blocks.lists[-1]), np.int64)
    code = bound_documents(*postings.buffers, postings.num_documents, last)
    check_code(code, "postings", postings.where, "term")
    return last


def _every_window(num_documents: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], int]:
    """Return all windows in ascending order, without useful bounds: see `windows_of`."""
    count = -(-num_documents // LARGEST_WINDOW)
    return np.empty((0, 0)), np.full(count, np.inf), np.arange(count), LARGEST_WINDOW
