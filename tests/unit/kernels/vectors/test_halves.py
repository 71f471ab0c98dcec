"""Partitions are cut as numpy cuts them, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lance_duck.index.vector.training.balanced import halved

DIM = 16


def cut(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, int] | None:
    """Return means of halves, the gain, and the pairs between them.

    Returns None if the vectors cannot be halved.
    """
    middle = vectors.mean(axis=0)
    inside = vectors - middle
    scale = float(np.abs(inside).max(initial=0))
    if len(vectors) < 4 or not scale:
        return None
    inside /= np.float32(scale)
    axis = inside[np.einsum("ij,ij->i", inside, inside).argmax()]
    for _ in range(3):
        axis = (inside @ axis) @ inside
        axis /= np.maximum(np.linalg.norm(axis), np.float32(np.finfo(np.float32).tiny))
    side = inside @ axis > 0
    for turn in range(5):
        if side.all() or not side.any():
            return None
        one, other = inside[side].mean(axis=0), inside[~side].mean(axis=0)
        if turn < 4:
            side = inside @ (one - other) > (one @ one - other @ other) / 2
    ones, others = int(side.sum()), int((~side).sum())
    gain = scale**2 * (ones * float(one @ one) + others * float(other @ other))
    return np.stack([middle + scale * one, middle + scale * other]), gain, ones * others


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e15])
def test_partitions_are_halved_like_in_the_reference(scale: float) -> None:
    rng = np.random.default_rng(5)
    centres = 6 * rng.standard_normal((40, DIM))
    cluster = rng.integers(0, 40, 900)
    vectors = (scale * (centres[cluster] + 0.5 * rng.standard_normal((900, DIM)))).astype(np.float32)
    partitions = np.where(cluster < 36, cluster // 3, 13)  # partitions of three or four clusters; partition 12 is empty
    vectors[cluster == 0] = vectors[cluster == 0][0]
    order = np.argsort(partitions, kind="stable")
    starts = np.searchsorted(partitions[order], np.arange(15))
    found = halved(vectors, order, starts)
    assert np.isnan(found.middles[12]).all()
    for number in set(range(14)) - {12}:
        mine = vectors[partitions == number]
        wanted = cut(mine)
        assert wanted is not None
        means, gain, pairs = wanted
        np.testing.assert_allclose(found.middles[number], mine.mean(axis=0), rtol=1e-4, atol=1e-4 * scale)
        np.testing.assert_allclose(found.means[number], means, rtol=1e-4, atol=1e-4 * scale)
        assert found.gains[number] == pytest.approx(gain, rel=1e-4)
        assert found.pairs[number] == pairs


@pytest.mark.parametrize("count", [0, 3, 10])
def test_vectors_that_cannot_be_halved_are_unchanged(count: int) -> None:
    vectors = np.ones((count, DIM), np.float32)
    assert cut(vectors) is None if count else True
    found = halved(vectors, np.arange(count), np.array([0, count]))
    assert found.gains.tolist() == [0.0]
    assert found.pairs.tolist() == [0]
