"""Documents in which words come in their order: positions are read of those alone that have all words.

Documents are found as `best` finds those that have all of several terms. Positions of one are decoded once its score
is known to be among the best.
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
    """How words follow each other.

    Attributes:
        places: The place of each word in the query, int64, each greater than the one before.
        slop: Places that a word may be farther behind the one before than in the query, each of them.
    """

    places: NDArray[np.int64]
    slop: int = 0

    @property
    def distances(self) -> NDArray[np.int64]:
        """How far each word is behind the one before; 0 for the first."""
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
    """Return the documents in which words come in their order, with the scores that they have by the words alone.

    Args:
        partition: The partition.
        terms: A term for each word, in the order of the words; every one is asked for.
        order: How they follow each other.
        average: Terms of a document on average.
        keys: The key of each document.
        k: How many, at least 1: those with the greatest scores, of equal ones with the least keys; None: all.
        mask: Whether each document may match; None: all may.

    Returns:
        Documents and scores, in any order. None: postings have no impacts or no blocks of positions, or the words are
        too many; positions of all documents are to be read.

    Raises:
        UnsupportedError: Positions are written as is not read.
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
    """Search; once more where a document has more positions than there is room for."""
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
