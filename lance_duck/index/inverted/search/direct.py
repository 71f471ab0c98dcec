"""Searches of a partition whose postings are in memory, for words that no earlier search asked for.

One kernel gathers the postings and searches them, in scratch arrays. Nothing is kept. For repeated words,
`prepared_terms` and `prepared_phrase` are faster, because they keep the gathered postings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.blocks import POSTINGS_A_BYTE
from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.index.inverted.costs import FEW_MATCHES, FIRST_WINDOWS, MOST_PRUNED_TERMS, WAITING_DOCUMENTS
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.search.bounds import norms_of_codes, window_size
from lance_duck.index.inverted.search.intersect import every_window, expected_matches, with_work
from lance_duck.index.inverted.search.matching import SLOTS, Documents, Float32s, Mask, WeightedTerms
from lance_duck.index.inverted.search.phrases import MOST_SLOP, PhraseOrder
from lance_duck.index.inverted.search.scratch import ARENAS, NO_MASK, PHRASES, SUMS
from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.search.direct import BLOCKS, search_all, search_any, search_phrase, search_term

Found = tuple[Documents, Float32s]


class DirectSearch:
    """Searches of one partition. Safe to use from several threads.

    Args:
        partition: The partition.
        average: Average number of terms per document.
        keys: uint64 (documents,), key of each document.
    """

    def __init__(self, partition: InvertedPartition, average: float, keys: NDArray[np.uint64]) -> None:
        form = partition.block_form
        self._partition = partition
        self._norms = partition.norms(average)
        self._keys = readonly(keys)
        limits = form.size, POSTINGS_A_BYTE, partition.num_documents
        self._rest = norms_of_codes(average), limits, form.is_varint, True
        self._size = form.size

    def best(
        self,
        terms: WeightedTerms,
        counts: list[int],
        order: PhraseOrder | None,
        k: int,
        mask: Mask | None = None,
        least: float = 0,
    ) -> Found | None:
        """Return the k best documents, best first: see `best_documents` and `best_phrases`.

        Args:
            terms: The terms, which can match. Each word has one term.
            counts: Number of documents of each term.
            order: Order of the words of a phrase, or None.
            k: Number of documents, at least 1.
            mask: bool (documents,), whether each document may match. None if all documents may match.
            least: Minimum score of the returned documents, unless the words are a phrase.

        Returns:
            Documents and scores. None if the postings are not in memory, or cannot be skipped.

        Raises:
            CorruptError: The file is corrupt.
        """
        count, weights = len(terms.ids), terms.weights
        if count > MOST_PRUNED_TERMS or 0 in weights.tolist():
            return None
        columns = self._partition.columns_in_memory()
        positions = None if order is None else self._partition.positions_in_memory()
        if columns is None or (order is not None and positions is None):
            return None
        source = (*columns, *self._rest)
        scoring = readonly(weights), self._norms, NO_MASK if mask is None else readonly(mask), self._keys, SLOTS[:count]
        listed = readonly(terms.ids), np.empty(count + 1, np.int64), np.empty(count, np.int64)
        k = min(k, min(counts)) if terms.every else k
        best = np.empty(k, np.float32), np.empty(k, np.int64)
        if not k:
            return best[1], best[0]
        call = source, listed, scoring
        if order is not None:
            return self._in_arena(best, self._phrase(call, positions, counts, order, best), count)
        if count == 1:
            room = np.empty((2, self._size), np.uint32)
            return self._in_arena(best, lambda arena, n: search_term(*call, arena, least, best, room, n), count)
        return self._in_arena(best, (self._all if terms.every else self._any)(call, counts, best, least), count)

    def _in_arena(self, best: Any, search: Callable[[Any, Any], int], count: int) -> Found:
        """Call a kernel with scratch space for postings, and again with more space if it is too small."""
        arena = ARENAS.take(0)
        while True:
            counts = np.zeros(BLOCKS + 2, np.int64)
            code = search(arena, counts)
            check_code(code, "postings, impacts or positions", self._partition.where, "term")
            found, _, _, blocks, size = counts.tolist()
            if not blocks:
                break
            arena = ARENAS.larger(blocks, size)
        ARENAS.give(arena, 0)
        scores, documents = best
        return (documents, scores) if found == len(scores) else (documents[:found], scores[:found])

    def _all(self, call: Any, counts: list[int], best: Any, least: float) -> Callable[[Any, Any], int]:
        source, terms, scoring = call
        windows, sequence = self._windows(counts, every=True), _rarest_first(counts)

        def search(arena: Any, n: Any) -> int:
            def find(work: Any) -> int:
                return search_all(source, terms, scoring, arena, windows, FIRST_WINDOWS, least, best, work, n)

            return with_work(len(counts), self._size, sequence, windows[-1], find)

        return search

    def _any(self, call: Any, counts: list[int], best: Any, least: float) -> Callable[[Any, Any], int]:
        source, terms, scoring = call
        windows, count = self._windows(counts, every=False), len(counts)

        def search(arena: Any, n: Any) -> int:
            sums = SUMS.take(count, windows[-1])

            def find(work: Any) -> int:
                whole = work, *sums
                return search_any(source, terms, scoring, arena, windows, FIRST_WINDOWS, least, best, whole, n)

            code = with_work(count, self._size, np.empty(count, np.int64), windows[-1], find)
            if code == status.OK:
                SUMS.give(sums, count, windows[-1])
            return code

        return search

    def _phrase(
        self, call: Any, positions: Any, counts: list[int], order: PhraseOrder, best: Any
    ) -> Callable[[Any, Any], int]:
        source, terms, scoring = call
        windows, sequence = self._windows(counts, every=True), _rarest_first(counts)
        order_of_words = readonly(order.distances), min(order.slop, MOST_SLOP)
        sizes = len(counts), WAITING_DOCUMENTS

        def search(arena: Any, n: Any) -> int:
            pool, reading = arrays = PHRASES.take(*sizes)

            def find(work: Any) -> int:
                outputs = best, work, pool, reading, n
                return search_phrase(
                    source, positions, terms, scoring, arena, windows, FIRST_WINDOWS, order_of_words, *outputs
                )

            while True:
                reading[1].fill(-1)
                code = with_work(len(counts), self._size, sequence, windows[-1], find)
                if code != status.OK:
                    return code
                if not n[2]:
                    PHRASES.give(arrays, *sizes)
                    return code
                reading = (*reading[:2], np.empty((2, 2 * int(n[2])), np.int64))
                n.fill(0)

        return search

    def _windows(self, counts: list[int], *, every: bool) -> Any:
        """Return room for the bounds of windows, or windows without bounds if few documents match."""
        num_documents = self._partition.num_documents
        if every and expected_matches(counts, num_documents) <= FEW_MATCHES:
            return every_window(num_documents)
        size = window_size(sum(counts), num_documents)
        number = -(-num_documents // size)
        return np.zeros((len(counts), number)), np.empty(number), np.empty(number, np.int64), size


def _rarest_first(counts: list[int]) -> NDArray[np.int64]:
    return np.array(sorted(range(len(counts)), key=counts.__getitem__), np.int64)
