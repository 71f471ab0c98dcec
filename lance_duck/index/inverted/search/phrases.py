"""The search for documents that contain a phrase. Positions are read only for documents that contain all its words.

These documents are found by the search of `best` for several required terms. The positions of documents with high
scores are decoded first, until enough documents contain the phrase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.costs import MOST_PRUNED_TERMS, WAITING_DOCUMENTS
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.search.best import TermScoring
from lance_duck.index.inverted.search.intersect import Intersection, intersected, with_work
from lance_duck.index.inverted.search.matching import Documents, Float32s, Mask, WeightedTerms
from lance_duck.index.inverted.search.scratch import PHRASES
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.search.phrases import find_best_phrases

_NONE = np.empty(0, np.int64), np.empty(0, np.float32)
MOST_SLOP = 1 << 32


@dataclass(frozen=True, eq=False)
class PhraseOrder:
    """The order of the words of a phrase.

    Attributes:
        places: int64 (words,), position of each word in the query, strictly ascending.
        slop: Maximum number of additional positions between a word and the previous word.
    """

    places: NDArray[np.int64]
    slop: int = 0

    @property
    def distances(self) -> NDArray[np.int64]:
        """Distance of each word from the previous word, 0 for the first word."""
        distances = np.zeros(len(self.places), np.int64)
        np.subtract(self.places[1:], self.places[:-1], out=distances[1:])
        return distances


def best_phrases(
    partition: InvertedPartition,
    terms: WeightedTerms,
    order: PhraseOrder,
    average: float,
    keys: NDArray[np.uint64],
    k: int | None = None,
    mask: Mask | None = None,
) -> tuple[Documents, Float32s] | None:
    """Return the documents that contain a phrase, with the scores of its words.

    Args:
        partition: The partition.
        terms: One term for each word, in the order of the words. All terms are required.
        order: Order of the words.
        average: Average number of terms per document.
        keys: uint64 (documents,), key of each document.
        k: Maximum number of documents, at least 1. The highest scores are kept, and ties are resolved by the smallest
            key. By default, all documents are returned.
        mask: bool (documents,), whether each document may match. None if all documents may match.

    Returns:
        Documents and scores, best first. None if the partition does not store position blocks, or the phrase has too
        many words. The caller must then read the positions of all documents.

    Raises:
        UnsupportedError: The position format is not supported.
        CorruptError: Postings, impacts or positions are corrupt.
    """
    if len(terms.ids) < terms.num_slots:
        return _NONE
    prepared = prepared_phrase(partition, terms, order, average, keys)
    return None if prepared is None else prepared.best(k, mask)


class BestOfPhrase:
    """A search for documents with a phrase. It holds the postings, and may run several times, also in several threads.

    Args:
        found: The postings of the words.
        scoring: The scoring.
        phrase: The argument `phrase` of `kernels.postings.search.phrases`, or None if no document has all words.
    """

    def __init__(self, found: Intersection, scoring: TermScoring, phrase: Any) -> None:
        self._found = found
        self._scoring = scoring
        self._phrase = phrase

    @property
    def nbytes(self) -> int:
        """Size of postings and positions in memory, in bytes. Bounds of scores are counted like postings."""
        positions: int = 0 if self._phrase is None else self._phrase[0].nbytes + self._phrase[1].nbytes
        return 2 * self._found.postings.nbytes + positions

    def best(self, k: int | None, mask: Mask | None = None) -> tuple[Documents, Float32s]:
        """Return the k best documents, or all documents, best first.

        If a document has too many positions for the buffer, the search is repeated with a larger buffer.

        Raises:
            CorruptError: Postings or positions are corrupt.
        """
        found, count, scoring = self._found, len(self._found.postings), self._scoring.over(mask)
        if self._phrase is None:
            return _NONE
        best = np.empty(found.shortest if k is None else min(k, found.shortest), np.float32)
        documents, counts, sizes = np.empty(len(best), np.int64), np.zeros(3, np.int64), (count, WAITING_DOCUMENTS)
        arrays = PHRASES.take(*sizes)
        pool, reading = arrays

        def find(work: Any) -> int:
            outputs = (best, documents), work, pool, reading, counts
            return find_best_phrases(found.lists, scoring, found.windows, self._phrase, *outputs)

        while True:
            reading[1].fill(-1)
            code = with_work(count, found.postings.form.size, found.sequence, found.windows[-1], find)
            check_code(code, "postings or positions", found.postings.where, "term")
            if not counts[2]:
                PHRASES.give(arrays, *sizes)
                return documents[: counts[0]], best[: counts[0]]
            reading = (*reading[:2], np.empty((2, 2 * int(counts[2])), np.int64))
            counts.fill(0)


def prepared_phrase(
    partition: InvertedPartition,
    terms: WeightedTerms,
    order: PhraseOrder,
    average: float,
    keys: NDArray[np.uint64],
) -> BestOfPhrase | None:
    """Prepare a search by the arguments of `best_phrases`, or return None like it. The partition has all terms.

    Raises:
        UnsupportedError, CorruptError: See `best_phrases`.
    """
    if terms.num_slots > MOST_PRUNED_TERMS or 0 in terms.weights.tolist():
        return None
    found = intersected(partition, terms, average)
    scoring = TermScoring.of(terms, partition.norms(average), keys)
    if not found.shortest:
        return BestOfPhrase(found, scoring, None)
    blocks = partition.position_blocks(terms.ids)
    if blocks is None:
        return None
    slop = min(order.slop, MOST_SLOP)
    phrase = (blocks.data, blocks.begins, blocks.ends, blocks.has_groups, readonly(order.distances), slop)
    return BestOfPhrase(found, scoring, phrase)
