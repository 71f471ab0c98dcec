"""BM25 as Lance computes it, in float32: what blocks say of their greatest score.

idf = ln((N - df + 0.5) / (df + 0.5) + 1); norm = 1.2 · (0.25 + 0.75 · tokens / average tokens);
score = idf · 2.2 · (f / (f + norm)).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.inverted.codecs.logarithms import natural_logs

Float32s = NDArray[np.float32]

K1: Final = np.float32(1.2)
B: Final = np.float32(0.75)
_HALF: Final = np.float32(0.5)
_ONE: Final = np.float32(1)


def inverse_frequencies(num_documents: int, frequencies: NDArray[np.integer]) -> Float32s:
    """Return the idf of terms that so many of the documents have each, float32."""
    those = frequencies.astype(np.float32)
    ratios = (np.float32(num_documents) - those + _HALF) / (those + _HALF) + _ONE
    return natural_logs(ratios)


def length_norms(lengths: NDArray[np.integer], average: float) -> Float32s:
    """Return the norm of documents of so many tokens each, float32."""
    return K1 * (_ONE - B + B * lengths.astype(np.float32) / np.float32(average))


def greatest_scores(
    starts: NDArray[np.int64], weights: Float32s, frequencies: NDArray[np.uint32], norms: Float32s
) -> Float32s:
    """Return the greatest score in each part of some postings.

    Args:
        starts: The first posting of each part, ascending from 0.
        weights: The idf of the term of each part.
        frequencies: Of each posting.
        norms: Of the document of each posting.
    """
    if not len(starts):
        return np.empty(0, np.float32)
    counts = frequencies.astype(np.float32)
    best = np.maximum.reduceat(counts / (counts + norms), starts)
    scores: Float32s = weights * (K1 + _ONE) * best
    return scores
