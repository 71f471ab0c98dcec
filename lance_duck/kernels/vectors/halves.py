"""Kernels that split partitions of vectors in two with 2-means, initialized along the longest axis.

Sums are float64. Vectors are compared after subtracting their partition's mean and scaling, which keeps all products
finite. The reference implementation is in `tests/unit/kernels/vectors`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import summing_kernel, summing_subroutine

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Int64s = NDArray[np.int64]
Sides = NDArray[np.bool_]

WORK_ROWS: Final = 3

_LEAST_HALVED: Final = 4  # minimum number of vectors in a partition to split
_TURNS: Final = 3  # rounds of power iteration
_HALVINGS: Final = 4  # rounds of 2-means


@summing_kernel
def halve_partitions(
    vectors: Floats,
    order: Int64s,
    starts: Int64s,
    inside: Floats,
    sides: Sides,
    work: Doubles,
    middles: Floats,
    halves: Floats,
    gains: Doubles,
    pairs: Int64s,
) -> None:
    """Split partitions in two.

    Args:
        vectors: float32 (n, dim), whose squared distances are finite.
        order: int64 (n,), rows sorted by partition.
        starts: int64 (partitions + 1,), start of each partition in `order`.
        inside: float32 (largest partition size, dim), scratch space.
        sides: bool (largest partition size,), scratch space.
        work: float64 (`WORK_ROWS`, dim), scratch space.
        middles: float32 (partitions, dim), output: means. Unchanged for empty partitions.
        halves: float32 (partitions, 2, dim), output: means of the halves.
        gains: float64 (partitions,), output: decrease of the sum of squared distances, 0 if not split.
        pairs: int64 (partitions,), output: number of vector pairs with one vector in each half, 0 if not split.
    """
    dim = vectors.shape[1]
    for part in range(len(gains)):
        first, count = starts[part], starts[part + 1] - starts[part]
        gains[part], pairs[part] = 0.0, 0
        if not count:
            continue
        scale = centred(vectors, order, first, count, inside, work[0])
        for j in range(dim):
            middles[part, j] = work[0, j]
        if count < _LEAST_HALVED or not scale > 0:
            continue
        begin_sides(inside, count, sides, work)
        ones = 0
        for turn in range(_HALVINGS + 1):
            ones = half_means(inside, count, sides, work)
            if not 0 < ones < count or turn == _HALVINGS:
                break
            cut = 0.0
            for j in range(dim):
                cut += (work[1, j] * work[1, j] - work[2, j] * work[2, j]) / 2
            for i in range(count):
                along = 0.0
                for j in range(dim):
                    along += inside[i, j] * (work[1, j] - work[2, j])
                sides[i] = along > cut
        if not 0 < ones < count:
            continue
        square_one, square_other = 0.0, 0.0
        for j in range(dim):
            square_one += work[1, j] * work[1, j]
            square_other += work[2, j] * work[2, j]
            halves[part, 0, j] = work[0, j] + scale * work[1, j]
            halves[part, 1, j] = work[0, j] + scale * work[2, j]
        gains[part] = scale * scale * (ones * square_one + (count - ones) * square_other)
        pairs[part] = ones * (count - ones)


@summing_subroutine
def centred(vectors: Floats, order: Int64s, first: int, count: int, inside: Floats, middle: Doubles) -> float:
    """Fill `inside` with vectors minus their mean, scaled. Returns the scale, or 0 if all vectors are equal."""
    dim = vectors.shape[1]
    middle[:] = 0.0
    for i in range(count):
        row = order[first + i]
        for j in range(dim):
            middle[j] += vectors[row, j]
    for j in range(dim):
        middle[j] = np.float32(middle[j] / count)
    scale = np.float32(0)
    for i in range(count):
        row = order[first + i]
        for j in range(dim):
            inside[i, j] = vectors[row, j] - np.float32(middle[j])
            scale = max(scale, abs(inside[i, j]))
    if scale > 0:
        for i in range(count):
            for j in range(dim):
                inside[i, j] /= scale
    return float(scale)


@summing_subroutine
def begin_sides(inside: Floats, count: int, sides: Sides, work: Doubles) -> None:
    """Assign vectors to the two sides of their approximate principal axis."""
    dim = inside.shape[1]
    longest, place = -1.0, 0
    for i in range(count):
        square = 0.0
        for j in range(dim):
            square += np.float64(inside[i, j]) * inside[i, j]
        if square > longest:
            longest, place = square, i
    for j in range(dim):
        work[1, j] = inside[place, j]
    for _ in range(_TURNS):
        work[2, :] = 0.0
        for i in range(count):
            along = 0.0
            for j in range(dim):
                along += inside[i, j] * work[1, j]
            for j in range(dim):
                work[2, j] += along * inside[i, j]
        square = 0.0
        for j in range(dim):
            square += work[2, j] * work[2, j]
        for j in range(dim):
            work[1, j] = work[2, j] / np.sqrt(square) if square > 0 else 0.0
    for i in range(count):
        along = 0.0
        for j in range(dim):
            along += inside[i, j] * work[1, j]
        sides[i] = along > 0


@summing_subroutine
def half_means(inside: Floats, count: int, sides: Sides, work: Doubles) -> int:
    """Write the means of both sides to rows 1 and 2 of `work`, unless a side is empty. Returns the first one's size."""
    dim = inside.shape[1]
    work[1:3, :] = 0.0
    ones = 0
    for i in range(count):
        ones += sides[i]
        side = 1 if sides[i] else 2
        for j in range(dim):
            work[side, j] += inside[i, j]
    if 0 < ones < count:
        for j in range(dim):
            work[1, j] /= ones
            work[2, j] /= count - ones
    return ones
