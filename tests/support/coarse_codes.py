"""The precision of distances by 4-bit PQ codes."""

from __future__ import annotations

import numpy as np

from lance_duck.index.vector.metric import normalized


def rounding_error(codebook: np.ndarray, centroids: np.ndarray, metric: str, asked: np.ndarray) -> float:
    """Return how much lookup tables with one byte per entry may change a distance.

    Args:
        codebook: (sub-vectors, 16, dim / sub-vectors).
        centroids: (partitions, dim), of the partitions that have rows.
        metric: "l2", "cosine" or "dot".
        asked: Queries (n, dim), not normalised.
    """
    parts, _, width = codebook.shape
    asked = normalized(asked) if metric == "cosine" else asked
    origins = np.zeros_like(centroids[:1]) if metric == "dot" else centroids
    split = (asked[:, None] - origins[None]).reshape(-1, parts, 1, width)
    tables = (split * codebook).sum(axis=3) if metric == "dot" else ((split - codebook) ** 2).sum(axis=3)
    step = float(np.ptp(tables, axis=2).max()) / 255
    return (parts + 1) / 2 * step / (2 if metric == "cosine" else 1)
