"""The search for documents that have a phrase: positions are read only of documents that have all words.

Documents are found as `best` finds those that have all of several terms. The positions of a document are decoded only
if its score is among the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.costs import DOCUMENT_POSITIONS, MOST_PRUNED_TERMS
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.postings import PostingBlocks
from lance_duck.index.inverted.search.best import NO_MASK, block_bounds, intersection_work, windows_of
from lance_duck.index.inverted.search.matching import Documents, Float32s, Mask, WeightedTerms
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.phrases import POSITION_STATE, find_best_phrases
from lance_duck.kernels.postings.positions import GROUP

_NONE = np.empty(0, np.int64), np.empty(0, np.float32)
_MOST_SLOP = 1 << 32


@dataclass(frozen=True, eq=False)
class PhraseOrder:
    """The order of the words of a phrase.

    Attributes:
        places: The place of each word in the query, int64, strictly ascending.
        slop: Number of places by which each word may be farther from the one before than in the query.
    """

    places: NDArray[np.int64]
    slop: int = 0

    @property
    def distances(self) -> NDArray[np.int64]:
        """Distance of each word from the one before; 0 for the first."""
        return np.diff(self.places, prepend=self.places[:1])


def best_phrases(
    partition: InvertedPartition,
    terms: WeightedTerms,
    order: PhraseOrder,
    average: float,
    keys: NDArray[np.uint64],
    k: int | None = None,
    mask: Mask | None = None,
) -> tuple[Documents, Float32s] | None:
    """Return the documents that have a phrase, with the scores that they have by its words.

    Args:
        partition: The partition.
        terms: A term for each word, in the order of the words, all required.
        order: Order of the words.
        average: Average number of terms of a document.
        keys: The key of each document, uint64.
        k: Number of documents, at least 1: those with the greatest scores, of equal scores with the least keys; None
            for all.
        mask: Whether each document may match; None if all may.

    Returns:
        Documents and scores, in any order. None if postings have no impacts or no blocks of positions, or the words are
        too many; then the positions of all documents must be read.

    Raises:
        UnsupportedError: The form of the positions is not supported.
        CorruptError: Postings, impacts or positions are broken.
    """
    if len(terms.ids) < terms.num_slots:
        return _NONE
    if terms.num_slots > MOST_PRUNED_TERMS or (terms.weights == 0).any():
        return None
    postings = partition.postings(terms.ids)
    if postings.impacts is None:
        return None
    shortest = int(postings.lengths.min())
    if shortest == 0:
        return _NONE
    blocks = partition.position_blocks(terms.ids)
    if blocks is None:
        return None
    last, bounds = block_bounds(postings, postings.impacts, terms, average)
    windows = windows_of(postings.blocks.lists, last, bounds, partition.num_documents, every=True)
    norms = partition.norms(average)
    scoring = (readonly(terms.weights), readonly(norms), NO_MASK if mask is None else readonly(mask), readonly(keys))
    slop = min(order.slop, _MOST_SLOP)
    phrase = (blocks.data, blocks.begins, blocks.ends, blocks.has_groups, readonly(order.distances), slop)
    best = np.empty(shortest if k is None else min(k, shortest), np.float32)
    return _found(postings, last, scoring, windows, phrase, best)


def _found(
    postings: PostingBlocks, last: NDArray[np.int64], scoring: Any, windows: Any, phrase: Any, best: Float32s
) -> tuple[Documents, Float32s]:
    """Search, and once more if a document has more positions than there is room for."""
    blocks, form, count = postings.blocks, postings.form, len(postings)
    lists = (blocks.data, blocks.offsets, blocks.lists, readonly(postings.lengths), form.size, form.is_varint, last)
    documents = np.empty(len(best), np.int64)
    most = DOCUMENT_POSITIONS
    while True:
        counts, work = np.zeros(3, np.int64), intersection_work(postings)
        reading = (
            np.empty(count * GROUP, np.uint32),
            np.full((count, POSITION_STATE), -1, np.int64),
            np.empty((2, most), np.int64),
        )
        code = find_best_phrases(lists, scoring, windows, phrase, (best, documents), work, reading, counts)
        check_code(code, "postings or positions", postings.where, "term")
        if not counts[2]:
            return documents[: counts[0]], best[: counts[0]]
        most = 2 * int(counts[2])
