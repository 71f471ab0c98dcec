"""Kernels that compute distances from queries to encoded vectors. The summation order is the same for every pair.

faiss uses different summation orders for a graph walk and for a full scan, which changes the last bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import summing_kernel

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]

_BYTE: Final = 256  # codebook size with 8-bit codes


@summing_kernel
def measure_flat(queries: Floats, vectors: Floats, places: Int64s, is_dot: bool, distances: Floats) -> None:
    """Compute squared Euclidean distances or inner products of queries and vectors.

    Args:
        queries: float32 (queries, dim).
        vectors: float32 (n, dim).
        places: int64 (queries, k), indices of the vectors to compare with each query, or -1.
        is_dot: Whether to compute inner products.
        distances: float32 (queries, k), output. Slots without a vector get the worst value.
    """
    for i in range(len(queries)):
        for j in range(places.shape[1]):
            place = places[i, j]
            if place < 0:
                distances[i, j] = -np.inf if is_dot else np.inf
                continue
            total = np.float32(0)
            if is_dot:
                for at in range(queries.shape[1]):
                    total += queries[i, at] * vectors[place, at]
            else:
                for at in range(queries.shape[1]):
                    apart = queries[i, at] - vectors[place, at]
                    total += apart * apart
            distances[i, j] = total


@summing_kernel
def measure_scalar(
    queries: Floats, codes: Bytes, start: float, step: float, places: Int64s, is_dot: bool, distances: Floats
) -> None:
    """Compute distances like `measure_flat`, from scalar quantisation codes.

    Args:
        queries: float32 (queries, dim).
        codes: uint8 (n, dim).
        start: Number that code 0 represents.
        step: Difference between the numbers of consecutive codes.
        places: int64 (queries, k), indices of the vectors to compare with each query, or -1.
        is_dot: Whether to compute inner products.
        distances: float32 (queries, k), output. Slots without a vector get the worst value.
    """
    first, width = np.float32(start), np.float32(step)
    for i in range(len(queries)):
        for j in range(places.shape[1]):
            place = places[i, j]
            if place < 0:
                distances[i, j] = -np.inf if is_dot else np.inf
                continue
            total = np.float32(0)
            if is_dot:
                for at in range(queries.shape[1]):
                    total += queries[i, at] * (first + np.float32(codes[place, at]) * width)
            else:
                for at in range(queries.shape[1]):
                    apart = queries[i, at] - (first + np.float32(codes[place, at]) * width)
                    total += apart * apart
            distances[i, j] = total


@summing_kernel
def measure_product(
    queries: Floats, codes: Bytes, codebook: Floats, places: Int64s, is_dot: bool, distances: Floats
) -> None:
    """Compute distances like `measure_flat`, from product quantisation codes.

    Args:
        queries: float32 (queries, dim).
        codes: uint8 (n, sub-vectors). With 4-bit codes, each byte holds two sub-vectors, the first in the lower half.
        codebook: float32 (sub-vectors, 256 or 16, sub-vector dim).
        places: int64 (queries, k), indices of the vectors to compare with each query, or -1.
        is_dot: Whether to compute inner products.
        distances: float32 (queries, k), output. Slots without a vector get the worst value.
    """
    parts, size, width = codebook.shape
    for i in range(len(queries)):
        for j in range(places.shape[1]):
            place = places[i, j]
            if place < 0:
                distances[i, j] = -np.inf if is_dot else np.inf
                continue
            total = np.float32(0)
            for part in range(parts):
                code = np.int64(codes[place, part] if size == _BYTE else codes[place, part // 2] >> 4 * (part % 2) & 15)
                for at in range(width):
                    number = queries[i, part * width + at]
                    apart = number - codebook[part, code, at]
                    total += number * codebook[part, code, at] if is_dot else apart * apart
            distances[i, j] = total
