"""Kernels that measure the distances of queries to vectors by their codes, each pair in the same order of sums.

faiss has another order where it walks over a graph than where it compares all vectors, and so other last bits.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import summing_kernel

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]

_BYTE: Final = 256  # vectors of a codebook that a byte numbers


@summing_kernel
def measure_flat(queries: Floats, vectors: Floats, places: Int64s, is_dot: bool, distances: Floats) -> None:
    """Measure squared Euclidean distances, or inner products, of queries and vectors.

    Args:
        queries: float32 (queries, dim).
        vectors: float32 (n, dim).
        places: int64 (queries, k), vectors of each query; -1 for none.
        is_dot: Whether inner products are measured.
        distances: float32 (queries, k), filled; the worst where there is no vector.
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
    """Measure as `measure_flat` does, of codes of scalar quantisation.

    Args:
        queries: float32 (queries, dim).
        codes: uint8 (n, dim).
        start: Number that the middle of code 0 stands for.
        step: Difference of the numbers of two codes.
        places: int64 (queries, k), vectors of each query; -1 for none.
        is_dot: Whether inner products are measured.
        distances: float32 (queries, k), filled; the worst where there is no vector.
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
    """Measure as `measure_flat` does, of codes of product quantisation.

    Args:
        queries: float32 (queries, dim).
        codes: uint8 (n, sub-vectors), or two sub-vectors a byte, the lower half first.
        codebook: float32 (sub-vectors, 256 or 16, numbers of a sub-vector).
        places: int64 (queries, k), vectors of each query; -1 for none.
        is_dot: Whether inner products are measured.
        distances: float32 (queries, k), filled; the worst where there is no vector.
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
