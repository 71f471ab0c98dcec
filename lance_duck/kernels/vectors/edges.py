"""Kernels that select the neighbours of vectors in a graph.

The reference implementation is in `tests/unit/kernels/vectors`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, summing_kernel, summing_subroutine
from lance_duck.kernels.vectors.tiles import squared_distance

Floats = NDArray[np.float32]
Numbers = NDArray[np.int32]
Int64s = NDArray[np.int64]
Flags = NDArray[np.bool_]


@summing_kernel
def choose_diverse(
    vectors: Floats, rows: Int64s, far: Floats, nearest: Numbers, most: int, chosen: Flags, work: Numbers
) -> None:
    """Select neighbours that are closer to their vector than to each other, nearest first.

    Args:
        vectors: float32 (n, dim).
        rows: int64, rows of the vectors for which to select neighbours.
        far: float32 (n, k), squared distances to the candidates, ascending.
        nearest: int32 (n, k), rows of the candidates, then -1.
        most: Maximum number of neighbours.
        chosen: bool (n, k), output: the selected candidates. Only the rows `rows` are written.
        work: int32 (most,), scratch space.
    """
    k = nearest.shape[1]
    for row in rows:
        chosen[row, :] = False
        size = 0
        for j in range(k):
            number = nearest[row, j]
            if number < 0 or size == most:
                break
            if is_diverse(vectors, number, far[row, j], work, size):
                work[size] = number
                size += 1
                chosen[row, j] = True


@summing_subroutine
def is_diverse(vectors: Floats, number: int, distance: np.float32, others: Numbers, size: int) -> bool:
    """Return whether a vector is at least `distance` away from each of the first `size` others."""
    mine = vectors[number]
    for i in range(size):  # noqa: SIM110  a kernel has no generators
        if squared_distance(mine, vectors[others[i]]) < distance:
            return False
    return True


@kernel
def count_reversed(nearest: Numbers, chosen: Flags, starts: Int64s) -> None:
    """Count how often each vector is selected as a neighbour.

    Args:
        nearest: int32 (n, k), rows of candidates.
        chosen: bool (n, k), the selected candidates.
        starts: int64 (n + 1,), output: cumulative counts.
    """
    count, k = nearest.shape
    starts[:] = 0
    for row in range(count):
        for j in range(k):
            if chosen[row, j]:
                starts[nearest[row, j] + 1] += 1
    for row in range(count):
        starts[row + 1] += starts[row]


@kernel
def reverse_edges(far: Floats, nearest: Numbers, chosen: Flags, starts: Int64s, ends: Numbers, lengths: Floats) -> None:
    """Write, for each vector, the vectors that selected it as a neighbour.

    Args:
        far: float32 (n, k), squared distances to the candidates.
        nearest: int32 (n, k), rows of candidates.
        chosen: bool (n, k), the selected candidates.
        starts: int64 (n + 1,). Input: the counts of `count_reversed`. Output: the end of each vector's range.
        ends: int32 (edges,), output: rows, vector by vector.
        lengths: float32 (edges,), output: squared distances to these rows.
    """
    count, k = nearest.shape
    for row in range(count):
        for j in range(k):
            if chosen[row, j]:
                other = nearest[row, j]
                place = starts[other]
                ends[place], lengths[place] = row, far[row, j]
                starts[other] = place + 1


@summing_kernel
def join_edges(
    vectors: Floats,
    rows: Int64s,
    far: Floats,
    nearest: Numbers,
    chosen: Flags,
    stops: Int64s,
    ends: Numbers,
    lengths: Floats,
    table: Numbers,
    work: Numbers,
    distances: Floats,
) -> None:
    """Merge each vector's neighbours: vectors that it selected, vectors that selected it, then the nearest candidates.

    The nearest candidates only fill free slots. If there are more neighbours than slots, the kernel keeps neighbours
    that are closer to their vector than to each other.

    Args:
        vectors: float32 (n, dim).
        rows: int64, rows of the vectors.
        far: float32 (n, k), squared distances to the candidates, ascending.
        nearest: int32 (n, k), rows of the candidates, then -1.
        chosen: bool (n, k), the selected candidates.
        stops: int64 (n + 1,), end of each vector's range in `ends`.
        ends: int32 (edges,), rows of the vectors that selected each vector.
        lengths: float32 (edges,), squared distances to these rows.
        table: int32 (n, width), output: distinct neighbours after the existing ones, then -1. Only the rows `rows` are
            written.
        work: int32 (k + width,), scratch space.
        distances: float32 (k + width,), scratch space.
    """
    k, width = nearest.shape[1], table.shape[1]
    for row in rows:
        size = 0
        for j in range(k):
            if chosen[row, j]:
                work[size], distances[size] = nearest[row, j], far[row, j]
                size += 1
        size = add_reversed(row, stops, ends, lengths, size, size + width, work, distances)
        mine = table[row]
        filled = 0
        while filled < width and mine[filled] >= 0:
            filled += 1
        if size > width:
            size = keep_diverse(vectors, size, width, work, distances)
        filled = fill_places(mine, filled, work, size)
        for j in range(k):
            if nearest[row, j] < 0 or filled == width:
                break
            filled = add_once(mine, filled, nearest[row, j])
        for j in range(filled, width):
            mine[j] = -1


@summing_subroutine
def add_reversed(
    row: int,
    stops: Int64s,
    ends: Numbers,
    lengths: Floats,
    size: int,
    most: int,
    work: Numbers,
    distances: Floats,
) -> int:
    """Insert the nearest vectors that selected a vector into its sorted neighbours, without duplicates.

    Returns the new number of neighbours.
    """
    for place in range(stops[row - 1] if row else 0, stops[row]):
        number, distance = ends[place], lengths[place]
        if size == most and distances[size - 1] <= distance:
            continue
        is_there = False
        for i in range(size):
            is_there |= work[i] == number
        if is_there:
            continue
        at = size
        while at > 0 and distances[at - 1] > distance:
            at -= 1
        size = min(size + 1, most)
        for back in range(size - 1, at, -1):
            work[back], distances[back] = work[back - 1], distances[back - 1]
        work[at], distances[at] = number, distance
    return size


@summing_subroutine
def keep_diverse(vectors: Floats, size: int, width: int, work: Numbers, distances: Floats) -> int:
    """Keep sorted neighbours that are closer to their vector than to each other. Returns their number."""
    kept = 0
    for i in range(size):
        if kept == width:
            break
        if is_diverse(vectors, work[i], distances[i], work, kept):
            work[kept] = work[i]
            kept += 1
    return kept


@summing_subroutine
def fill_places(mine: Numbers, filled: int, others: Numbers, size: int) -> int:
    """Append the first `size` of `others` to `mine`, without repeats. Returns the number of filled slots."""
    for i in range(size):
        if filled == len(mine):
            break
        filled = add_once(mine, filled, others[i])
    return filled


@summing_subroutine
def add_once(mine: Numbers, filled: int, number: int) -> int:
    """Append a number unless it is among the first `filled` numbers. Returns the new count."""
    is_there = False
    for i in range(filled):
        is_there |= mine[i] == number
    if is_there:
        return filled
    mine[filled] = number
    return filled + 1
