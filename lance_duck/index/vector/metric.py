"""What a distance is: Lance's `_distance`, and the plain reference of all searches.

l2        sum of squared differences
cosine    1 - inner product of the normalised vectors
dot       1 - inner product
hamming   number of different bits, of vectors of unsigned bytes
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
"""The metric by each of its spellings, in lower case."""


def metric_of(name: Any) -> str:
    """Return the metric that a user means: "l2", "cosine", "dot" or "hamming".

    Raises:
        InvalidInputError: There is no such metric.
    """
    metric = METRICS.get(name.lower()) if isinstance(name, str) else None
    if metric is None:
        raise unknown_value("metric", name, METRICS)
    return metric


def distances(metric: str, queries: NDArray[Any], vectors: NDArray[Any]) -> NDArray[np.float32]:
    """Return the distances of all vectors to all queries.

    Args:
        metric: As `metric_of` returns it.
        queries: (queries, dim), float32; uint8 for hamming.
        vectors: (n, dim), of the same type.

    Returns:
        float32 (queries, n). NaN where a vector is zero and the metric is cosine.
    """
    if metric == "hamming":
        different = queries.astype(np.uint8)[:, None, :] ^ vectors.astype(np.uint8)[None, :, :]
        bits: NDArray[np.float32] = np.bitwise_count(different).sum(axis=2, dtype=np.float32)
        return bits
    left, right = queries.astype(np.float64), vectors.astype(np.float64)
    if metric == "l2":
        result = np.empty((len(left), len(right)), np.float32)
        for row, query in zip(result, left, strict=True):
            row[:] = ((right - query) ** 2).sum(axis=1)
        return result
    if metric == "cosine":
        with np.errstate(invalid="ignore", divide="ignore"):
            left = left / np.linalg.norm(left, axis=1, keepdims=True)
            right = right / np.linalg.norm(right, axis=1, keepdims=True)
    return (1 - left @ right.T).astype(np.float32)


def normalized(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the vectors of length 1; those that are zero stay it. Numbers of any finite size keep their direction."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    largest[largest == 0] = 1
    scaled = vectors / largest
    result: NDArray[np.float32] = scaled / np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), np.float32(1e-30))
    return result
