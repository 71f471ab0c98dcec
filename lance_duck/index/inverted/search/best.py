"""The search for the best documents. Impacts allow skipping blocks of postings.

The threshold is the k-th best score so far. Blocks of a single term are read in descending order of their bounds, until
all remaining bounds are below the threshold. For several terms, document ids are divided into windows. The bounds of
the terms add up to the bound of a window. If some terms of a window cannot reach the threshold together, their postings
are looked up only for the documents of the other terms. If all terms are required, the documents of the rarest term are
looked up in the postings of the others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.codecs.scores import Norms
from lance_duck.index.inverted.costs import MOST_PRUNED_TERMS
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.postings import PostingBlocks
from lance_duck.index.inverted.search.bounds import BoundedPostings, bounded_postings, windows_of
from lance_duck.index.inverted.search.intersect import Intersection, intersected, with_work
from lance_duck.index.inverted.search.matching import (
    SLOTS,
    Documents,
    Float32s,
    Mask,
    WeightedTerms,
    matching_documents,
)
from lance_duck.index.inverted.search.scratch import NO_MASK, SUMS
from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.search.best import find_best_of_all, find_best_of_term
from lance_duck.kernels.postings.search.best_of_any import find_best_of_any


def best_documents(
    partition: InvertedPartition,
    terms: WeightedTerms,
    average: float,
    keys: NDArray[np.uint64],
    k: int,
    mask: Mask | None = None,
    least: float = 0,
) -> tuple[Documents, Float32s]:
    """Return the k documents with the highest scores, sorted by descending score, then by ascending key.

    Args:
        partition: The partition.
        terms: The terms.
        average: Average number of terms per document.
        keys: uint64 (documents,), key of each document.
        k: Number of documents, at least 1.
        mask: bool (documents,), whether each document may match. None if all documents may match.
        least: Minimum score of the returned documents.

    Raises:
        CorruptError: Postings or impacts are corrupt.
    """
    if not terms.can_match:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    prepared = prepared_terms(partition, terms, average, keys) if k < partition.num_documents else None
    if prepared is not None:
        return prepared.best(k, mask, least)
    documents, scores = matching_documents(partition, terms, average, mask)
    return in_order(documents[scores >= least], scores[scores >= least], keys, k)


def in_order(
    documents: Documents, scores: Float32s, keys: NDArray[np.uint64], k: int | None
) -> tuple[Documents, Float32s]:
    """Return the k best documents, sorted by descending score, then by ascending key."""
    order = np.lexsort((keys[documents], -scores))[:k]
    return documents[order], scores[order]


class TermScoring(NamedTuple):
    """The argument `scoring` of `kernels.postings.search.best`, without a mask."""

    weights: Float32s
    norms: Norms
    keys: NDArray[np.uint64]
    slots: NDArray[np.int64]

    @classmethod
    def of(cls, terms: WeightedTerms, norms: Norms, keys: NDArray[np.uint64]) -> TermScoring:
        """Build the scoring of terms by the norm and the sort key of each document."""
        slots = readonly(terms.slots) if terms.has_variants else SLOTS[: len(terms.ids)]
        return cls(readonly(terms.weights), norms, readonly(keys), slots)

    def over(self, mask: Mask | None) -> Any:
        """Return the argument with a mask of the documents that may match. None if all documents may match."""
        return self.weights, self.norms, NO_MASK if mask is None else readonly(mask), self.keys, self.slots


class BestOfTerms(ABC):
    """A search for documents with terms. It holds the postings, and may run several times, also in several threads.

    Args:
        postings: The postings of the terms.
        lists: The argument `postings` of `kernels.postings.search.best`.
        scoring: The scoring.
    """

    def __init__(self, postings: PostingBlocks, lists: Any, scoring: TermScoring) -> None:
        self._postings = postings
        self._lists = lists
        self._scoring = scoring

    @property
    def nbytes(self) -> int:
        """Size of the postings in memory, in bytes. Bounds of scores are counted as if they were of the same size."""
        return 2 * self._postings.blocks.nbytes

    def best(self, k: int, mask: Mask | None = None, least: float = 0) -> tuple[Documents, Float32s]:
        """Return the k best documents, best first. Among equal scores, the least keys are first.

        Args:
            k: Number of documents, at least 1.
            mask: bool (documents,), whether each document may match. None if all documents may match.
            least: Minimum score of the returned documents.

        Raises:
            CorruptError: Postings are corrupt.
        """
        documents, scores, counts = np.empty(k, np.int64), np.empty(k, np.float32), np.zeros(2, np.int64)
        code = self._find(self._scoring.over(mask), float(least), (scores, documents), counts)
        check_code(code, "postings", self._postings.where, "term")
        found = counts.item(0)
        return (documents, scores) if found == k else (documents[:found], scores[:found])

    @abstractmethod
    def _find(self, scoring: Any, least: float, best: Any, counts: NDArray[np.int64]) -> int:
        """Call the kernel."""


def prepared_terms(
    partition: InvertedPartition,
    terms: WeightedTerms,
    average: float,
    keys: NDArray[np.uint64],
) -> BestOfTerms | None:
    """Prepare a search by the arguments of `best_documents`. The terms can match.

    Returns:
        The search, or None if postings cannot be skipped. All documents must then be scored.

    Raises:
        CorruptError: Postings or impacts are corrupt.
    """
    count = len(terms.ids)
    if count > MOST_PRUNED_TERMS or 0 in terms.weights.tolist() or (terms.every and count != terms.num_slots):
        return None
    scoring = TermScoring.of(terms, partition.norms(average), keys)
    if terms.every and count > 1:
        return _OfAll(intersected(partition, terms, average), scoring)
    bounded = bounded_postings(partition, terms, average)
    if bounded is None:
        return None
    kind = _OfTerm if count == 1 else _OfAny
    return kind(scoring, bounded)


class _OfAll(BestOfTerms):
    """The search for documents that contain all of several terms."""

    def __init__(self, found: Intersection, scoring: TermScoring) -> None:
        super().__init__(found.postings, found.lists, scoring)
        self._found = found

    def best(self, k: int, mask: Mask | None = None, least: float = 0) -> tuple[Documents, Float32s]:
        """See `BestOfTerms.best`."""
        most = min(k, self._found.shortest)
        return super().best(most, mask, least) if most else (np.empty(0, np.int64), np.empty(0, np.float32))

    def _find(self, scoring: Any, least: float, best: Any, counts: NDArray[np.int64]) -> int:
        found, lists = self._found, self._lists
        find = lambda work: find_best_of_all(lists, scoring, found.windows, least, best, work, counts)  # noqa: E731
        return with_work(len(found.postings), found.postings.form.size, found.sequence, found.windows[-1], find)


class _OfTerm(BestOfTerms):
    """The search for documents that contain a term."""

    def __init__(self, scoring: TermScoring, bounded: BoundedPostings) -> None:
        super().__init__(bounded.postings, (*bounded.postings.buffers, bounded.last, True), scoring)
        self._bounds = bounded.bounds

    def _find(self, scoring: Any, least: float, best: Any, counts: NDArray[np.int64]) -> int:
        room, order = np.empty((2, self._postings.form.size), np.uint32), np.empty(len(self._bounds), np.int64)
        return find_best_of_term(self._lists, scoring, self._bounds, least, best, room, order, counts)


class _OfAny(BestOfTerms):
    """The search for documents that contain at least one of several terms."""

    def __init__(self, scoring: TermScoring, bounded: BoundedPostings) -> None:
        super().__init__(bounded.postings, (*bounded.postings.buffers, bounded.last, True), scoring)
        self._windows = windows_of(bounded, every=False)

    def _find(self, scoring: Any, least: float, best: Any, counts: NDArray[np.int64]) -> int:
        postings, windows = self._postings, self._windows
        count, size = len(postings), windows[-1]
        sums, lists = SUMS.take(count, size), self._lists
        find = lambda work: find_best_of_any(lists, scoring, windows, least, best, (work, *sums), counts)  # noqa: E731
        code = with_work(count, postings.form.size, np.empty(count, np.int64), size, find)
        if code == status.OK:
            SUMS.give(sums, count, size)
        return code
