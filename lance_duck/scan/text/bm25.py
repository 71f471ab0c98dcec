"""BM25 scores in float32. The operations are the same as in Lance, so that scores are bit-identical.

    idf    = ln((N - df + 0.5) / (df + 0.5) + 1)
    norm   = 1.2 · (0.25 + 0.75 · length / average)
    score  = Σ idf · (2.2 · frequency / (frequency + norm))             over the terms of the query, in their order

If a word of a fuzzy query expands to several terms, their scores are added first, in the byte order of the terms. Lance
adds them in the order of term ids in a partition. The last bit may therefore differ if a document contains three or
more of these terms.

N: document count; df: number of documents with the term; length: term count of a document; average: mean length of
all documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.impacts import length_codes, length_floors
from lance_duck.index.inverted.codecs.logarithms import natural_log

Scores = NDArray[np.float32]

K1: Final = np.float32(1.2)
B: Final = np.float32(0.75)
ONE: Final = np.float32(1)
HALF: Final = np.float32(0.5)


@dataclass(frozen=True)
class Statistics:
    """Statistics of all documents, from which scores are computed. They do not depend on a filter.

    Attributes:
        num_documents: Number of documents.
        total_tokens: Total number of terms in all documents.
        rounds_lengths: Whether lengths are rounded down to the shortest length with the same code, as in an index with
            blocks of 256 documents.
    """

    num_documents: int
    total_tokens: int
    rounds_lengths: bool = False

    @property
    def average(self) -> np.float32:
        """Average number of terms per document, or 0 without documents."""
        if not self.num_documents:
            return np.float32(0)
        return np.float32(self.total_tokens) / np.float32(self.num_documents)

    def idf(self, document_frequency: int) -> np.float32:
        """Return the weight of a term that occurs in `document_frequency` documents."""
        count, frequency = np.float32(self.num_documents), np.float32(document_frequency)
        return natural_log((count - frequency + HALF) / (frequency + HALF) + ONE)

    def norms(self, lengths: NDArray[Any]) -> Scores:
        """Return the norms of documents by their lengths."""
        if self.rounds_lengths:
            lengths = length_floors()[length_codes(lengths)]
        scaled: Scores = K1 * ((ONE - B) + B * lengths.astype(np.float32) / self.average)
        return scaled


def term_scores(idf: np.float32, frequencies: NDArray[Any], norms: Scores) -> Scores:
    """Return a term's contribution to document scores.

    Args:
        idf: Weight of the term.
        frequencies: Frequency of the term in each document, at least 1.
        norms: Norm of each document.
    """
    counts = frequencies.astype(np.float32)
    scores: Scores = idf * ((K1 + ONE) * counts / (counts + norms))
    return scores
