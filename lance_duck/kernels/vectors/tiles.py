"""Kernels that compute the nearest vectors from tiled products.

The vectors to search are stored in tiles of `TILE` vectors, transposed: dimension by dimension. The processor then
multiplies one number with as many other numbers as its registers hold. This is faster than a full matrix product and a
search of the result. The reference implementation is in `tests/unit/kernels/vectors`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine, summing_kernel, summing_subroutine

Floats = NDArray[np.float32]
Numbers = NDArray[np.int32]
Int64s = NDArray[np.int64]

TILE: Final = 64  # vectors; 128 dimensions of each take 32 KB and stay in the L1 cache
ROWS: Final = 4  # vectors multiplied with a tile together; also dimensions per step
SLACK: Final = 8  # extra candidates above k, with which a bound is found in few steps

_CHUNK: Final = 128  # dimensions to multiply before moving to the next vectors
_HALVINGS: Final = 30


def candidates_room(k: int) -> int:
    """Return the number of candidate slots that each vector needs to find its k nearest."""
    return k + SLACK + 2 * TILE


@kernel
def fill_tiles(vectors: Floats, rows: Int64s, middle: Floats, tiles: Floats, squares: Floats) -> None:
    """Copy vectors into tiles.

    Args:
        vectors: float32 (n, dim).
        rows: int64 (tiles · `TILE`,), row of each tile slot, or -1 for an empty slot.
        middle: float32 (dim,), subtracted from each vector.
        tiles: float32 (tiles, padded dim · `TILE`), output. dim is zero-padded to a multiple of `ROWS`.
        squares: float32 (tiles, `TILE`), output: squared lengths, infinity for empty slots.
    """
    dim = vectors.shape[1]
    for tile in range(len(tiles)):
        out, square = tiles[tile], squares[tile]
        out[:] = 0
        for place in range(TILE):
            row = rows[tile * TILE + place]
            total = np.float32(np.inf)
            if row >= 0:
                total = np.float32(0)
                for i in range(dim):
                    number = vectors[row, i] - middle[i]
                    out[i * TILE + place] = number
                    total += number * number
            square[place] = total


@summing_kernel
def nearest_in_tiles(
    mine: Floats,
    chosen: Int64s,
    tiles: Floats,
    squares: Floats,
    k: int,
    products: Floats,
    far: Floats,
    places: Numbers,
    counts: Numbers,
    bounds: Floats,
) -> None:
    """Find the k nearest vectors in some tiles, and a few more. The result is not sorted.

    Args:
        mine: float32 (rows, padded dim), vectors minus the `middle` of the tiles, times -2. rows is a multiple of
            `ROWS`.
        chosen: int64, tiles to search. Faster if tiles with near vectors come first.
        tiles: float32 (tiles, padded dim · `TILE`).
        squares: float32 (tiles, `TILE`), squared lengths of the vectors, infinity for empty slots.
        k: Number of vectors to find for each row.
        products: float32 (rows · `TILE`,), scratch space.
        far: float32 (rows, `candidates_room(k)`), output: squared distances minus the row's squared length.
        places: int32 of the same shape, output: tile slots of the vectors.
        counts: int32 (rows,), output: number of candidates of each row. Between k and k + `SLACK` if the tiles hold
            enough vectors.
        bounds: float32 (rows,), scratch space.
    """
    rows, dim = mine.shape
    most = far.shape[1] - TILE
    counts[:] = 0
    bounds[:] = np.inf
    for tile in chosen:
        numbers, square = tiles[tile], squares[tile]
        for first in range(0, dim, _CHUNK):
            for row in range(0, rows, ROWS):
                add_products(mine, row, first, min(first + _CHUNK, dim), numbers, products)
        for row in range(rows):
            line = products[row * TILE : (row + 1) * TILE]
            bound, num_near = bounds[row], 0
            for i in range(TILE):
                line[i] += square[i]
                num_near += line[i] < bound
            if num_near:
                count = counts[row]
                for i in range(TILE):
                    far[row, count] = line[i]
                    places[row, count] = tile * TILE + i
                    count += line[i] < bound
                if count > most:
                    count, bounds[row] = keep_nearest(far[row], places[row], count, k, bound)
                counts[row] = count
    for row in range(rows):
        if counts[row] > k + SLACK:
            counts[row], _ = keep_nearest(far[row], places[row], counts[row], k, bounds[row])


@summing_subroutine
def add_products(mine: Floats, row: int, first: int, last: int, numbers: Floats, products: Floats) -> None:
    """Add the products of four vectors with a tile for the dimensions from `first`. Dimension 0 resets the sums."""
    out = products[row * TILE : (row + 4) * TILE]
    if first == 0:
        out[:] = 0
    for n in range(first, last, 4):
        other = numbers[n * TILE : (n + 4) * TILE]
        a0, a1, a2, a3 = mine[row, n], mine[row, n + 1], mine[row, n + 2], mine[row, n + 3]
        b0, b1, b2, b3 = mine[row + 1, n], mine[row + 1, n + 1], mine[row + 1, n + 2], mine[row + 1, n + 3]
        c0, c1, c2, c3 = mine[row + 2, n], mine[row + 2, n + 1], mine[row + 2, n + 2], mine[row + 2, n + 3]
        d0, d1, d2, d3 = mine[row + 3, n], mine[row + 3, n + 1], mine[row + 3, n + 2], mine[row + 3, n + 3]
        for i in range(TILE):
            o0, o1, o2, o3 = other[i], other[TILE + i], other[2 * TILE + i], other[3 * TILE + i]
            out[i] += a0 * o0 + a1 * o1 + a2 * o2 + a3 * o3
            out[TILE + i] += b0 * o0 + b1 * o1 + b2 * o2 + b3 * o3
            out[2 * TILE + i] += c0 * o0 + c1 * o1 + c2 * o2 + c3 * o3
            out[3 * TILE + i] += d0 * o0 + d1 * o1 + d2 * o2 + d3 * o3


@subroutine
def keep_nearest(far: Floats, places: Numbers, count: int, k: int, bound: np.float32) -> tuple[int, np.float32]:
    """Keep the k nearest of more than k + `SLACK` candidates, and a few more. All candidates are below `bound`.

    Returns:
        (number of candidates kept, new upper bound of their distances).
    """
    low, high, num_low, num_high = np.float32(-np.inf), bound, 0, count
    for i in range(count):
        low = far[i] if i == 0 else min(low, far[i])
    middle = np.float32(low + (high - low) * np.float32(0.5))
    if high == np.inf:
        middle = low
        for i in range(count):
            middle = max(middle, far[i])
    for _ in range(_HALVINGS):
        if not low < middle < high:
            break
        below = 0
        for i in range(count):
            below += far[i] < middle
        if below < k:
            low, num_low = middle, below
        else:
            high, num_high = middle, below
            if below <= k + SLACK:
                break
        middle = np.float32(low + (high - low) * np.float32(0.5))
    spare = num_high - num_low if num_high <= k + SLACK else k - num_low
    kept = 0
    for i in range(count):
        distance = far[i]
        take = distance < low
        if not take and distance < high and spare > 0:
            take = True
            spare -= 1
        far[kept], places[kept] = distance, places[i]
        kept += take
    return kept, high


@summing_kernel
def sort_nearest(
    vectors: Floats,
    rows: Int64s,
    numbers: Numbers,
    places: Numbers,
    counts: Numbers,
    far: Floats,
    nearest: Numbers,
) -> None:
    """Write the nearest candidates of each vector, ordered by exact distance. Excludes the vector itself.

    Args:
        vectors: float32 (n, dim).
        rows: int64 (r,), rows of the vectors.
        numbers: int32, row of each tile slot.
        places: int32 (r, room), candidates as tile slots.
        counts: int32 (r,), number of candidates of each vector.
        far: float32 (n, k), output: squared distances, ascending, then infinity. Only the rows `rows` are written.
        nearest: int32 (n, k), output: rows of the neighbours, then -1. Only the rows `rows` are written. If distances
            are equal, the smaller row comes first.
    """
    k = far.shape[1]
    for i in range(len(rows)):
        row = rows[i]
        mine, distances, found = vectors[row], far[row], nearest[row]
        distances[:] = np.inf
        found[:] = -1
        size = 0
        for j in range(counts[i]):
            number = numbers[places[i, j]]
            if number == row:
                continue
            distance = squared_distance(mine, vectors[number])
            at = size
            while at > 0 and (
                distances[at - 1] > distance or (distances[at - 1] == distance and found[at - 1] > number)
            ):
                at -= 1
            if at >= k:
                continue
            size = min(size + 1, k)
            for back in range(size - 1, at, -1):
                distances[back], found[back] = distances[back - 1], found[back - 1]
            distances[at], found[at] = distance, number


@summing_subroutine
def squared_distance(one: Floats, other: Floats) -> np.float32:
    """Return the squared distance of two vectors."""
    total = np.float32(0)
    for i in range(len(one)):
        step = one[i] - other[i]
        total += step * step
    return total
