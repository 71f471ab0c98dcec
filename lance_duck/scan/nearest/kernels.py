"""Compiled distances between vectors and queries. Each pair is summed in the same order, regardless of its position.

Every kernel takes an array of numbers that contains vectors, the indices where m vectors begin, queries (q, dim) of the
same dtype, query numbers (m or 1) and an output of m distances. Without indices, vectors are consecutive from the first
number; a single query number applies to all pairs. The caller must check indices and query numbers. They are used as
unsigned integers, because signed ones are a third slower. Sums are of float64. Their reference implementation is
`index.vector.metric`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, summing_kernel

Int64s = NDArray[np.int64]
Distances = NDArray[np.float32]


@summing_kernel
def l2(numbers: NDArray[Any], starts: Int64s, queries: NDArray[Any], which: Int64s, out: Distances) -> None:
    """Compute squared Euclidean distances."""
    dim = queries.shape[1]
    for i in range(len(out)):
        start = np.uint64(starts[i]) if len(starts) else np.uint64(i * dim)
        query = np.uint64(which[i]) if len(which) > 1 else np.uint64(which[0])
        total = 0.0
        for j in range(dim):
            apart = np.float64(numbers[start + np.uint64(j)]) - np.float64(queries[query, j])
            total += apart * apart
        out[i] = total


@summing_kernel
def dot(numbers: NDArray[Any], starts: Int64s, queries: NDArray[Any], which: Int64s, out: Distances) -> None:
    """Compute 1 - inner products."""
    dim = queries.shape[1]
    for i in range(len(out)):
        start = np.uint64(starts[i]) if len(starts) else np.uint64(i * dim)
        query = np.uint64(which[i]) if len(which) > 1 else np.uint64(which[0])
        total = 0.0
        for j in range(dim):
            total += np.float64(numbers[start + np.uint64(j)]) * np.float64(queries[query, j])
        out[i] = 1.0 - total


@summing_kernel
def cosine(numbers: NDArray[Any], starts: Int64s, queries: NDArray[Any], which: Int64s, out: Distances) -> None:
    """Compute 1 - cosine, at least 0, or NaN if a vector or query is zero."""
    dim = queries.shape[1]
    last = np.uint64(len(queries))
    norm = 0.0
    for i in range(len(out)):
        start = np.uint64(starts[i]) if len(starts) else np.uint64(i * dim)
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
            total += np.float64(numbers[start + np.uint64(j)]) * np.float64(queries[query, j])
            length += np.float64(numbers[start + np.uint64(j)]) ** 2
        distance = 1.0 - total / (norm * np.sqrt(length))
        out[i] = 0.0 if distance < 0 else distance


@kernel
def hamming(numbers: NDArray[Any], starts: Int64s, queries: NDArray[Any], which: Int64s, out: Distances) -> None:
    """Count different bits of uint8 vectors."""
    dim = queries.shape[1]
    for i in range(len(out)):
        start = np.uint64(starts[i]) if len(starts) else np.uint64(i * dim)
        query = np.uint64(which[i]) if len(which) > 1 else np.uint64(which[0])
        total = np.int64(0)
        for j in range(dim):
            bits = np.int64(numbers[start + np.uint64(j)] ^ queries[query, j])
            bits = bits - ((bits >> 1) & 0x55)
            bits = (bits & 0x33) + ((bits >> 2) & 0x33)
            total += (bits + (bits >> 4)) & 0x0F
        out[i] = total
