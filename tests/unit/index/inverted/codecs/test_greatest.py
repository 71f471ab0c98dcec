"""The maximum score of a block equals that of its best document, to the last bit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from lance_duck.errors import InternalError
from lance_duck.index.inverted.codecs.scores import K1, greatest_scores, length_norms

ONE = np.float32(1)


def plain(starts, weights, frequencies, norms) -> np.ndarray:
    """Scores of parts of postings: the reference."""
    counts = frequencies.astype(np.float32)
    return weights * (K1 + ONE) * np.maximum.reduceat(counts / (counts + norms), starts)


@pytest.mark.parametrize("size", [128, 256])
def test_blocks_store_their_maximum_score(size: int) -> None:
    random = np.random.default_rng(size)
    lengths = np.array([1, size - 1, size, size + 1, 5, 3 * size, 700])
    bounds = np.append(0, np.cumsum(lengths))
    ids = np.concatenate([np.sort(random.choice(2000, n, replace=False)) for n in lengths]).astype(np.uint32)
    frequencies = random.geometric(0.4, len(ids)).astype(np.uint32)
    weights = random.uniform(0.01, 9, len(lengths)).astype(np.float32)
    norms = length_norms(random.integers(1, 300, 2000), 37.3)
    starts = np.concatenate([np.arange(low, high, size) for low, high in pairwise(bounds)])
    of_blocks = np.repeat(weights, -(-lengths // size))
    found = greatest_scores(bounds, ids, frequencies, weights, norms, size)
    assert found.dtype == np.float32
    assert found.tobytes() == plain(starts, of_blocks, frequencies, norms[ids]).tobytes()


def test_an_unknown_document_is_an_internal_error() -> None:
    one = np.ones(1, np.float32)
    with pytest.raises(InternalError):
        greatest_scores(np.array([0, 1]), np.array([1], np.uint32), np.array([1], np.uint32), one, one, 128)
