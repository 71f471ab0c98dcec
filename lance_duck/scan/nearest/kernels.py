"""Compiled distances between rows of a matrix and queries, each pair summed in the same order wherever it stands.

Every kernel takes vectors (n, dim), row numbers (m), queries (q, dim) of the vectors' dtype, query numbers (m or 1) and
room for m distances. Without row numbers all n rows are meant; one query number holds for all pairs. The caller has
checked the numbers, which are used as unsigned ones: those that may be negative cost a third of the speed. Sums are of
float64. Their plain reference is `index.vector.metric`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, summing_kernel

Numbers = NDArray[np.int64]
Distances = NDArray[np.float32]


@summing_kernel
def l2(vectors: NDArray[Any], rows: Numbers, queries: NDArray[Any], which: Numbers, out: Distances) -> None:
    """Compute squared Euclidean distances."""
    dim = vectors.shape[1]
    for i in range(len(out)):
        row = np.uint64(rows[i]) if len(rows) else np.uint64(i)
        query = np.uint64(which[i]) if len(which) > 1 else np.uint64(which[0])
        total = 0.0
        for j in range(dim):
            apart = np.float64(vectors[row, j]) - np.float64(queries[query, j])
            total += apart * apart
        out[i] = total


@summing_kernel
def dot(vectors: NDArray[Any], rows: Numbers, queries: NDArray[Any], which: Numbers, out: Distances) -> None:
    """Compute 1 - inner products."""
    dim = vectors.shape[1]
    for i in range(len(out)):
        row = np.uint64(rows[i]) if len(rows) else np.uint64(i)
        query = np.uint64(which[i]) if len(which) > 1 else np.uint64(which[0])
        total = 0.0
        for j in range(dim):
            total += np.float64(vectors[row, j]) * np.float64(queries[query, j])
        out[i] = 1.0 - total


@summing_kernel
def cosine(vectors: NDArray[Any], rows: Numbers, queries: NDArray[Any], which: Numbers, out: Distances) -> None:
    """Compute 1 - cosines, not below 0; NaN where a vector or query is zero."""
    dim = vectors.shape[1]
    last = np.uint64(len(queries))
    norm = 0.0
    for i in range(len(out)):
        row = np.uint64(rows[i]) if len(rows) else np.uint64(i)
        query = np.uint64(which[i]) if len(which) > 1 else np.uint64(which[0])
        if query != last:
            last = query
            norm = 0.0
            for j in range(dim):
                norm += np.float64(queries[query, j]) ** 2
            norm = np.sqrt(norm)
        total = 0.0
        length = 0.0
        for j in range(dim):
            total += np.float64(vectors[row, j]) * np.float64(queries[query, j])
            length += np.float64(vectors[row, j]) ** 2
        distance = 1.0 - total / (norm * np.sqrt(length))
        out[i] = 0.0 if distance < 0 else distance


@kernel
def hamming(vectors: NDArray[Any], rows: Numbers, queries: NDArray[Any], which: Numbers, out: Distances) -> None:
    """Count different bits of uint8 vectors."""
    dim = vectors.shape[1]
    for i in range(len(out)):
        row = np.uint64(rows[i]) if len(rows) else np.uint64(i)
        query = np.uint64(which[i]) if len(which) > 1 else np.uint64(which[0])
        total = np.int64(0)
        for j in range(dim):
            bits = np.int64(vectors[row, j] ^ queries[query, j])
            bits = bits - ((bits >> 1) & 0x55)
            bits = (bits & 0x33) + ((bits >> 2) & 0x33)
            total += (bits + (bits >> 4)) & 0x0F
        out[i] = total
