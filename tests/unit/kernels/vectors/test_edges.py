"""Graph neighbours equal those that plain Python selects."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.kernels.vectors.edges import choose_diverse, count_reversed, join_edges, reverse_edges


def squared(vectors: np.ndarray, one: int, other: int) -> np.float32:
    step = vectors[one] - vectors[other]
    return np.float32((step * step).sum())


def diverse(vectors: np.ndarray, candidates: list[tuple[np.float32, int]], most: int) -> list[tuple[np.float32, int]]:
    kept: list[tuple[np.float32, int]] = []
    for distance, number in candidates:
        if len(kept) < most and all(squared(vectors, number, other) >= distance for _, other in kept):
            kept.append((distance, number))
    return kept


def reference(
    vectors: np.ndarray, nearest: list[list[tuple[np.float32, int]]], most: int, fixed: list[list[int]], width: int
) -> list[list[int]]:
    chosen = [diverse(vectors, candidates, most) for candidates in nearest]
    backward: list[list[tuple[np.float32, int]]] = [[] for _ in chosen]
    for row, neighbors in enumerate(chosen):
        for distance, number in neighbors:
            backward[number].append((distance, row))
    table = []
    for row, neighbors in enumerate(chosen):
        have = {number for _, number in neighbors}
        new = [(distance, other) for distance, other in backward[row] if other not in have]
        both = sorted(neighbors + new, key=lambda pair: pair[0])[: len(neighbors) + width]
        if len(both) > width:
            both = diverse(vectors, both, width)
        wanted = fixed[row] + [number for _, number in both] + [number for _, number in nearest[row]]
        table.append(list(dict.fromkeys(wanted))[:width])
    return table


@given(
    count=st.integers(2, 60),
    k=st.integers(1, 12),
    most=st.integers(1, 8),
    width=st.integers(1, 12),
    seed=st.integers(0, 1000),
)
def test_edges_equal_those_of_the_reference(count: int, k: int, most: int, width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    vectors = random.integers(-3, 4, (count, 3)).astype(np.float32)  # distances are exact, and many are equal
    far = np.full((count, k), np.inf, np.float32)
    numbers = np.full((count, k), -1, np.int32)
    nearest = []
    for row in range(count):
        others = random.permutation(np.delete(np.arange(count), row))[: random.integers(1, k + 1)].tolist()
        pairs = sorted(((squared(vectors, row, other), other) for other in others), key=lambda pair: pair[0])
        far[row, : len(pairs)], numbers[row, : len(pairs)] = zip(*pairs, strict=True)
        nearest.append(pairs)
    table = np.full((count, width), -1, np.int32)
    fixed = []
    for row in range(count):
        taken = random.permutation(np.delete(np.arange(count), row))[: random.integers(0, width + 1)].tolist()
        table[row, : len(taken)] = taken
        fixed.append(taken)
    rows = random.permutation(count)
    chosen = np.ones((count, k), np.bool_)
    choose_diverse(vectors, rows, far, numbers, most, chosen, np.empty(most, np.int32))
    for row in range(count):
        wanted = {number for _, number in diverse(vectors, nearest[row], most)}
        assert set(numbers[row, chosen[row]].tolist()) == wanted
    stops = np.empty(count + 1, np.int64)
    count_reversed(numbers, chosen, stops)
    assert np.diff(stops).tolist() == np.bincount(numbers[chosen], minlength=count).tolist()
    ends, lengths = np.empty(int(stops[-1]), np.int32), np.empty(int(stops[-1]), np.float32)
    reverse_edges(far, numbers, chosen, stops, ends, lengths)
    work, distances = np.empty(k + width, np.int32), np.empty(k + width, np.float32)
    join_edges(vectors, rows, far, numbers, chosen, stops, ends, lengths, table, work, distances)
    for row, wanted_neighbors in enumerate(reference(vectors, nearest, most, fixed, width)):
        assert table[row].tolist() == wanted_neighbors + [-1] * (width - len(wanted_neighbors))
