"""Kernels that rotate vectors for RaBitQ. A row's result does not depend on the other rows.

The summation order of a matrix product depends on the row count, which changes the last bits. The reference
implementation of the fast rotation is `transformed` in `index.vector.codecs.rotation`. The kernels produce
bit-identical results.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine, summing_kernel

Floats = NDArray[np.float32]

WORK_ROWS: Final = 2

_ROOT_OF_HALF: Final = np.float32(np.sqrt(0.5))


@kernel
def rotate_fast(vectors: Floats, scales: Floats, work: Floats, rotated: Floats) -> None:
    """Rotate vectors with rounds of sign changes, Walsh-Hadamard transforms, and sums and differences of halves.

    Args:
        vectors: float32 (n, dim), dim even and not 0.
        scales: float32 (rounds, dim), factors applied to the numbers at the start of each round.
        work: float32 (`WORK_ROWS`, dim), scratch space.
        rotated: float32 (n, dim), output.
    """
    dim = vectors.shape[1]
    half, size = dim // 2, 1
    while 2 * size <= dim:
        size *= 2
    for i in range(len(vectors)):
        row, other = work[0], work[1]
        for j in range(dim):
            row[j] = vectors[i, j]
        for number in range(len(scales)):
            first = 0 if number % 2 == 0 else dim - size
            for j in range(dim):
                row[j] *= scales[number, j]
            is_moved = transform(row[first : first + size], other[first : first + size])
            if size == dim:
                if is_moved:
                    row, other = other, row
                continue
            if is_moved:
                for j in range(first, first + size):
                    row[j] = other[j]
            for j in range(half):
                one, two = row[j], row[half + j]
                other[j] = (one + two) * _ROOT_OF_HALF
                other[half + j] = (one - two) * _ROOT_OF_HALF
            row, other = other, row
        for j in range(dim):
            rotated[i, j] = row[j]


@subroutine
def transform(row: Floats, other: Floats) -> bool:
    """Apply an unnormalized Walsh-Hadamard transform to 2 ** n numbers. Returns whether the result is in `other`.

    Each pass handles two levels. It combines four neighbouring numbers, and moves the results to the four quarters. The
    next levels therefore also combine neighbours, which keeps all loops long and their writes sequential. After all
    levels, each number is at its final index.

    Args:
        row: float32 (2 ** n,), the numbers; overwritten.
        other: float32 (2 ** n,), scratch space.
    """
    size = len(row)
    quarter, half, left = size // 4, size // 2, size
    is_moved = False
    while left >= 4:
        for j in range(quarter):
            sum_one, difference_one = row[4 * j] + row[4 * j + 1], row[4 * j] - row[4 * j + 1]
            sum_two, difference_two = row[4 * j + 2] + row[4 * j + 3], row[4 * j + 2] - row[4 * j + 3]
            other[j] = sum_one + sum_two
            other[quarter + j] = difference_one + difference_two
            other[half + j] = sum_one - sum_two
            other[half + quarter + j] = difference_one - difference_two
        row, other, is_moved, left = other, row, not is_moved, left // 4
    if left == 2:
        for j in range(half):
            other[j] = row[2 * j] + row[2 * j + 1]
            other[half + j] = row[2 * j] - row[2 * j + 1]
        is_moved = not is_moved
    return is_moved


@summing_kernel
def rotate_by_matrix(vectors: Floats, matrix: Floats, rotated: Floats) -> None:
    """Multiply each vector by a matrix. Each read of a vector serves four matrix rows.

    Args:
        vectors: float32 (n, dim), dim a multiple of 4.
        matrix: float32 (dim, dim).
        rotated: float32 (n, dim), output: the products.
    """
    dim = vectors.shape[1]
    for first in range(0, dim, 4):
        for i in range(len(vectors)):
            one, two, three, four = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
            for at in range(dim):
                number = vectors[i, at]
                one += matrix[first, at] * number
                two += matrix[first + 1, at] * number
                three += matrix[first + 2, at] * number
                four += matrix[first + 3, at] * number
            rotated[i, first], rotated[i, first + 1] = one, two
            rotated[i, first + 2], rotated[i, first + 3] = three, four


@summing_kernel
def sum_weights(bits: NDArray[np.uint8], weights: Floats, sums: Floats) -> None:
    """Sum the weights of the set bits in each row.

    Args:
        bits: uint8 (n, width), lowest bit first.
        weights: float32 (8 * width,).
        sums: float32 (n,), output.
    """
    for i in range(len(bits)):
        total = np.float32(0)
        for at in range(bits.shape[1]):
            for bit in range(8):
                total += np.float32((bits[i, at] >> bit) & 1) * weights[8 * at + bit]
        sums[i] = total
