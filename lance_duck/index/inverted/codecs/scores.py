"""Maximum block scores: BM25 in float32, computed as in Lance.

idf = ln((N - df + 0.5) / (df + 0.5) + 1); norm = 1.2 · (0.25 + 0.75 · tokens / average tokens);
score = idf · 2.2 · (f / (f + norm)).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import InternalError
from lance_duck.index.inverted.codecs.logarithms import natural_logs
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.scores import find_greatest

Float32s = NDArray[np.float32]
Norms = tuple[NDArray[np.unsignedinteger], Float32s]
"""The code of each document, and the norm of each code. Both arrays are read-only."""

K1: Final = np.float32(1.2)
B: Final = np.float32(0.75)
_HALF: Final = np.float32(0.5)
_ONE: Final = np.float32(1)


def inverse_frequencies(num_documents: int, frequencies: NDArray[np.integer]) -> Float32s:
    """Return the idf of terms, float32, from their document counts."""
    document_counts = frequencies.astype(np.float32)
    ratios = (np.float32(num_documents) - document_counts + _HALF) / (document_counts + _HALF) + _ONE
    return natural_logs(ratios)


def length_norms(lengths: NDArray[np.integer], average: float) -> Float32s:
    """Return the norms of documents, float32, from their token counts."""
    divisor = np.float32(average or 1)  # 0 if no list element has a word
    return K1 * (_ONE - B + B * lengths.astype(np.float32) / divisor)


def coded_lengths(lengths: NDArray[np.uint32]) -> tuple[NDArray[np.unsignedinteger], NDArray[np.uint32]]:
    """Number the distinct lengths. Returns the code of each length as a narrow integer, and the length of each code.

    Searches read norms in random order, so memory latency dominates. If texts have up to 255 words, codes take a
    quarter of the memory that norms would take.
    """
    most = int(lengths.max(initial=0))
    if most < 1 << 16:
        return readonly(lengths.astype(np.uint8 if most < 1 << 8 else np.uint16)), np.arange(most + 1, dtype=np.uint32)
    distinct, codes = np.unique(lengths, return_inverse=True)
    return readonly(codes.astype(np.uint32)), distinct


def greatest_scores(
    bounds: NDArray[np.int64],
    ids: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    weights: Float32s,
    norms: Float32s,
    block_size: int,
) -> Float32s:
    """Return the maximum score of each posting block.

    Args:
        bounds: Index of each term's first posting, followed by the number of postings.
        ids: Documents, ascending within each term.
        frequencies: Frequency of each posting, at least 1.
        weights: The idf of each term.
        norms: Norm of each document.
        block_size: Number of postings per block.
    """
    scores = np.empty(int((-(-np.diff(bounds) // block_size)).sum()), np.float32)
    postings = readonly(bounds), readonly(ids), readonly(frequencies)
    if find_greatest(*postings, readonly(weights), readonly(norms), block_size, scores) != len(scores):
        raise InternalError("a posting refers to a document that does not exist")
    return scores
