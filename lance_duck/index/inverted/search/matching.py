"""Finds all matching documents by scoring every posting: the reference implementation of searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.costs import MOST_PRUNED_TERMS, ORDERED_SHARE
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.scores import accumulate

Float32s = NDArray[np.float32]
Documents = NDArray[np.int64]
Mask = NDArray[np.bool_]

SLOTS = readonly(np.arange(MOST_PRUNED_TERMS))
"""The slots of distinct words that all have one term."""
NO_MASK = readonly(np.empty(0, np.bool_))
"""Mask of kernels if all documents may match."""


@dataclass(frozen=True, eq=False)
class WeightedTerms:
    """A query's terms that exist in a partition, in query order, possibly repeated.

    Attributes:
        ids: int64 (terms,), ids of the terms.
        weights: float32 (terms,), idf of each term, at least 0.
        slots: int64 (terms,), the query word of each term, ascending. Equal for the variants of a word.
        num_slots: Number of query words, including those without a term in this partition.
        every: Whether a document must contain a term of each word. Otherwise, a term of any word is sufficient.
    """

    ids: NDArray[np.int64]
    weights: Float32s
    slots: NDArray[np.int64]
    num_slots: int
    every: bool = False

    @classmethod
    def plain(cls, ids: NDArray[np.int64], weights: Float32s, *, every: bool = False) -> WeightedTerms:
        """Build the terms of distinct words with one term each. Ids are -1 for terms that the partition lacks."""
        count = len(ids)
        if count <= MOST_PRUNED_TERMS and min(ids.tolist(), default=-1) >= 0:
            return cls(ids, weights, SLOTS[:count], count, every)
        slots = np.flatnonzero(ids >= 0)
        return cls(ids[slots], weights[slots], slots, len(ids), every)

    @property
    def has_variants(self) -> bool:
        """Whether several words have terms in this partition, and at least one word has several terms."""
        return 1 < self._num_found < len(self.slots)

    @property
    def can_match(self) -> bool:
        """Whether any document can match."""
        if not len(self.ids):
            return False
        return not self.every or self._num_found == self.num_slots

    @property
    def _num_found(self) -> int:
        """Number of words that have a term in this partition."""
        return len(set(self.slots.tolist()))


def matching_documents(
    partition: InvertedPartition,
    terms: WeightedTerms,
    average: float,
    mask: Mask | None = None,
    order: Callable[[], Documents] | None = None,
) -> tuple[Documents, Float32s]:
    """Return the matching documents, ascending or in a given order, and their scores.

    Args:
        partition: The partition.
        terms: The terms.
        average: Average number of terms per document.
        mask: bool (documents,), whether each document may match. None if all documents may match.
        order: Function that returns all documents in the preferred order. Few matching documents ascend nevertheless.

    Raises:
        CorruptError: Postings are corrupt.
    """
    if not terms.can_match:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    norms, count = partition.norms(average), partition.num_documents
    scores, hits = np.zeros(count, np.float32), np.zeros(count, np.uint16)
    sums = np.zeros(count if terms.has_variants else 0, np.float32)
    postings = partition.postings(terms.ids)
    form = postings.form
    code = accumulate(
        *postings.buffers,
        readonly(terms.weights),
        readonly(terms.slots),
        norms,
        NO_MASK if mask is None else readonly(mask),
        terms.every,
        scores,
        sums,
        hits,
        np.empty(form.size, np.uint32),
        np.empty(form.size, np.uint32),
    )
    check_code(code, "postings", postings.where, "term")
    matches = hits == terms.num_slots if terms.every else hits != 0
    if order is None or np.count_nonzero(matches) * ORDERED_SHARE < count:
        documents = np.flatnonzero(matches)
    else:
        documents = order()[np.flatnonzero(matches[order()])]
    return documents, scores[documents]
