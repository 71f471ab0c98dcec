"""Definition of Lance's `_distance`. `distances` is the reference for all searches.

l2        sum of squared differences
cosine    1 - inner product of the normalised vectors
dot       1 - inner product
hamming   number of different bits of uint8 vectors
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.arguments import unknown_value

METRICS: Final = MappingProxyType(
    {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot", "hamming": "hamming"}
)
"""The metric for each accepted name, in lower case."""


def metric_of(name: Any) -> str:
    """Normalise a user's metric name to "l2", "cosine", "dot" or "hamming".

    Raises:
        InvalidInputError: The metric does not exist.
    """
    metric = METRICS.get(name.lower()) if isinstance(name, str) else None
    if metric is None:
        raise unknown_value("metric", name, METRICS)
    return metric


def distances(metric: str, queries: NDArray[Any], vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return the distances of all vectors to all queries.

    Args:
        metric: A result of `metric_of`.
        queries: float32 (queries, dim); uint8 for hamming.
        vectors: (n, dim), with the same dtype.

    Returns: float32 (queries, n), infinite on float32 overflow. For cosine, NaN for zero vectors.
    """
    if metric == "hamming":
        different = queries.astype(np.uint8)[:, None, :] ^ vectors.astype(np.uint8)[None, :, :]
        bits: NDArray[np.float32] = np.bitwise_count(different).sum(axis=2, dtype=np.float32)
        return bits
    wide_queries, wide_vectors = queries.astype(np.float64), vectors.astype(np.float64)
    if metric == "l2":
        result = np.empty((len(wide_queries), len(wide_vectors)), np.float32)
        with np.errstate(over="ignore"):
            for row, query in zip(result, wide_queries, strict=True):
                row[:] = ((wide_vectors - query) ** 2).sum(axis=1)
        return result
    if metric == "cosine":
        with np.errstate(invalid="ignore", divide="ignore"):
            wide_queries = wide_queries / np.linalg.norm(wide_queries, axis=1, keepdims=True)
            wide_vectors = wide_vectors / np.linalg.norm(wide_vectors, axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        return (1 - wide_queries @ wide_vectors.T).astype(np.float32)


def normalized(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors to length 1. Zero vectors stay zero. Very short and very long vectors keep their direction."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    largest[largest == 0] = 1
    scaled = vectors / largest
    result: NDArray[np.float32] = scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), np.float32(1e-30))
    return result


def has_residual(metric: str) -> bool:
    """Return whether residuals (vector minus centroid) are encoded instead of vectors."""
    return metric != "dot"
