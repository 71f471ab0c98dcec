"""Searches a few rows that no index covers, for the fast way. The arithmetic is that of `leaves.Weights.matches`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lance_duck.cache import LruCache
from lance_duck.kernels.jit import readonly
from lance_duck.scan.nearest.passing_rows import PassingRows
from lance_duck.scan.text.bm25 import Scores, Statistics, term_scores
from lance_duck.scan.text.leaves import phrase_ends
from lance_duck.scan.text.matches import is_among
from lance_duck.scan.text.places import AnalysedRows
from lance_duck.scan.text.query.words import Word
from lance_duck.scan.text.ranking import row_ids
from lance_duck.snapshot import Snapshot

_MOST_MASKS = 8


class FewRows:
    """Analysed rows of one version. Safe to use from several threads.

    Attributes:
        rows: The rows. Documents are rows.

    Args:
        snapshot: The version.
        rows: The rows.
    """

    def __init__(self, snapshot: Snapshot, rows: AnalysedRows) -> None:
        self.rows = rows
        self._snapshot = snapshot
        self._norms: tuple[Statistics, Scores] | None = None
        self._masks: LruCache[NDArray[np.bool_]] = LruCache(_MOST_MASKS)

    @property
    def addresses(self) -> NDArray[np.uint64]:
        """uint64 (documents,), the row address of each document."""
        return self.rows.addresses

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """uint64 (documents,), the `_rowid` of each document, which orders equal scores."""
        return readonly(row_ids(self._snapshot, self.rows.addresses))

    @property
    def nbytes(self) -> int:
        """Approximate size of the rows and their postings in memory, in bytes."""
        return 4 * self.rows.nbytes

    def count(self, term: bytes) -> int:
        """Return the document count of a term."""
        return self.rows.frequencies([term]).get(term, 0)

    def best(
        self,
        words: Sequence[tuple[Word, np.float32]],
        statistics: Statistics,
        k: int,
        filtered: PassingRows | None,
        *,
        every: bool,
        slop: int | None,
    ) -> tuple[NDArray[np.int64], Scores]:
        """Return the k best documents and their scores, best first. Among equal scores, the least keys are first.

        Args:
            words: The words of the query and their weights.
            statistics: The statistics of all documents.
            k: Number of documents.
            filtered: Rows that pass the filter, or None if all rows pass.
            every: Whether a document must contain all words.
            slop: Number of additional words between two words of a phrase. None if the words are no phrase.
        """
        postings = self.rows.postings({word.term or b"" for word, _ in words})
        if not postings or (every and any(word.term not in postings for word, _ in words)):
            return np.empty(0, np.int64), np.empty(0, np.float32)
        norms, count = self._norms_of(statistics), len(self.rows.lengths)
        scores, hits = np.zeros(count, np.float32), np.zeros(count, np.uint32)
        for number, (word, idf) in enumerate(words):
            found = postings.get(word.term or b"")
            if found is not None:
                at = found.documents
                scores[at] += term_scores(idf, found.frequencies, norms[at])
                hits[at] = np.where(hits[at] == number, number + 1, hits[at]) if every else 1
        documents = np.flatnonzero(hits == len(words) if every else hits)
        if slop is not None:
            documents = documents[np.isin(documents, phrase_ends(postings, [word for word, _ in words], slop))]
        if filtered is not None:
            documents = documents[self._mask(filtered)[documents]]
        documents = documents[np.lexsort((self.keys[documents], -scores[documents]))[:k]]
        return documents, scores[documents]

    def _norms_of(self, statistics: Statistics) -> Scores:
        last = self._norms
        if last is None or last[0] is not statistics:
            last = self._norms = statistics, statistics.norms(self.rows.lengths)
        return last[1]

    def _mask(self, filtered: PassingRows) -> NDArray[np.bool_]:
        return self._masks.get(filtered, lambda: is_among(self.rows.addresses, filtered.rows.rows()))
