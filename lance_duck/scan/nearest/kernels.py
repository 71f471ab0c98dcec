"""Compiled kernels for distances between vectors and queries. The summation order is the same for every pair.

Arguments of every kernel: an array of numbers that contains vectors; the start indices of m vectors in it; queries
(q, dim) of the same dtype; the query index of each pair, or one for all pairs; and an output of m distances. If there
are no start indices, the vectors follow each other from the first number. The caller must check that all indices are
in range. They are used as unsigned integers, because signed integers are a third slower. Sums are computed in float64.
`index.vector.metric` is the reference implementation.
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
    """Compute 1 minus the inner product of each pair."""
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
    """Compute 1 minus the cosine of each pair, at least 0. The distance is NaN if the vector or query is zero."""
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
