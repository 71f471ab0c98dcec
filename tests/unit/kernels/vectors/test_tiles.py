"""Nearest vectors equal those of numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.kernels.vectors.tiles import (
    ROWS,
    SLACK,
    TILE,
    candidates_room,
    fill_tiles,
    nearest_in_tiles,
    sort_nearest,
)


def vectors_of(kind: str, count: int, dim: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if kind == "whole numbers":
        return random.integers(-2, 3, (count, dim)).astype(np.float32)
    if kind == "equal":
        return np.full((count, dim), 3, np.float32)
    spread = np.exp(4 * random.standard_normal((count, 1))) if kind == "heavy" else 1
    return (random.standard_normal((count, dim)) * spread).astype(np.float32)


def nearest(
    vectors: np.ndarray, rows: np.ndarray, places: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared distances, rows of neighbours, and the number of candidates before they are sorted."""
    dim = -(-vectors.shape[1] // ROWS) * ROWS
    count = len(places) // TILE
    tiles, squares = np.empty((count, dim * TILE), np.float32), np.empty((count, TILE), np.float32)
    middle = vectors.mean(axis=0)
    fill_tiles(vectors, places, middle, tiles, squares)
    mine = np.zeros((-(-len(rows) // ROWS) * ROWS, dim), np.float32)
    mine[: len(rows), : vectors.shape[1]] = -2 * (vectors[rows] - middle)
    shape = (len(mine), candidates_room(k + 1))
    far, numbers, counts = np.empty(shape, np.float32), np.empty(shape, np.int32), np.empty(len(mine), np.int32)
    work = np.empty(len(mine) * TILE, np.float32), np.empty(len(mine), np.float32)
    nearest_in_tiles(mine, np.arange(count), tiles, squares, k + 1, work[0], far, numbers, counts, work[1])
    assert (counts <= k + 1 + SLACK).all()
    sorted_far = np.empty((len(vectors), k), np.float32)
    sorted_numbers = np.empty((len(vectors), k), np.int32)
    sort_nearest(vectors, rows, places.astype(np.int32), numbers, counts, sorted_far, sorted_numbers)
    return sorted_far[rows], sorted_numbers[rows], counts[: len(rows)]


@given(
    kind=st.sampled_from(["normal", "heavy", "whole numbers", "equal"]),
    count=st.integers(1, 500),
    dim=st.sampled_from([1, 2, 3, 4, 5, 16, 127, 128, 129, 300]),
    k=st.integers(1, 130),
    seed=st.integers(0, 1000),
)
def test_neighbours_equal_the_exact_ones(kind: str, count: int, dim: int, k: int, seed: int) -> None:
    vectors = vectors_of(kind, count, dim, seed)
    random = np.random.default_rng(seed)
    places = np.full((-(-count // TILE) + 1) * TILE, -1)
    places[random.choice(len(places), count, replace=False)] = np.arange(count)
    rows = random.choice(count, min(count, 9), replace=False)
    far, numbers, counts = nearest(vectors, rows, places, k)
    num_near = min(k, count - 1)
    assert (counts >= min(k + 1, count)).all()
    assert np.isinf(far[:, num_near:]).all()
    assert (numbers[:, num_near:] == -1).all()
    steps = vectors[rows, None].astype(np.float64) - vectors.astype(np.float64)
    truth = (steps**2).sum(axis=2)
    found = np.take_along_axis(truth, numbers[:, :num_near].astype(np.int64), axis=1)
    np.testing.assert_allclose(far[:, :num_near], found, rtol=1e-5)
    assert (np.diff(far[:, :num_near], axis=1) >= 0).all()
    for i, row in enumerate(rows.tolist()):
        assert row not in numbers[i]
        assert len(set(numbers[i, :num_near].tolist())) == num_near
    others = truth.copy()
    others[np.arange(len(rows)), rows] = np.inf
    rounding = 1e-5 * ((vectors - vectors.mean(axis=0)) ** 2).sum(axis=1).max()
    wanted = np.sort(others, axis=1)[:, :num_near]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=float(rounding))


def test_the_first_of_equally_near_vectors_wins() -> None:
    vectors = np.repeat(np.arange(6, dtype=np.float32), 3)[:, None]
    places = np.full(TILE, -1)
    places[:18] = np.arange(18)
    _, numbers, _ = nearest(vectors, np.array([4]), places, 7)
    assert numbers[0].tolist() == [3, 5, 0, 1, 2, 6, 7]


@pytest.mark.parametrize("dim", [1, 7])
def test_empty_slots_are_infinitely_distant(dim: int) -> None:
    tiles, squares = np.ones((1, 8 * TILE), np.float32), np.ones((1, TILE), np.float32)
    places = np.full(TILE, -1)
    places[5] = 0
    fill_tiles(np.full((1, dim), 3, np.float32), places, np.ones(dim, np.float32), tiles, squares)
    assert squares[0, 5] == 4 * dim
    assert np.isinf(np.delete(squares[0], 5)).all()
    numbers = tiles.reshape(8, TILE)
    assert (numbers[:dim, 5] == 2).all()
    assert not numbers[dim:].any()
    assert not np.delete(numbers, 5, axis=1).any()
