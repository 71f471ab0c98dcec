"""Near neighbours of all vectors among themselves, by products of matrices, block by block.

A block is the vectors around a centroid. The vectors of a block are compared with those of the blocks that are near to
most of them; a vector at the border of a block may miss some of its neighbours.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.threads import side_by_side

Far = NDArray[np.float32]
Numbers = NDArray[np.int32]

_SEED: Final = 7
_ALL: Final = 2048  # up to so many vectors are one block
_BLOCK: Final = 256
_AT_ONCE: Final = 1024  # vectors of a block that are compared at once
_PROBES: Final = 6  # blocks that are near to a vector
_MOST_BLOCKS: Final = 16
_MOST: Final = 32 * _BLOCK  # vectors that one is compared with, where blocks are of very different sizes
_ENOUGH: Final = 0.9  # share of the near blocks of the vectors of a block that are compared with it
_ROUNDS: Final = 4
_SAMPLE: Final = 32  # vectors for each centroid


def near(vectors: NDArray[np.float32], k: int) -> tuple[Far, Numbers]:
    """Return approximately the k nearest neighbours of each vector, nearest first, without itself.

    Args:
        vectors: float32 (n, dim), C-contiguous, finite, around the origin.
        k: Neighbours of each vector, at least 1.

    Returns:
        Squared distances, float32 (n, k), inf where there is no neighbour; and numbers of vectors, int32 (n, k), -1
        there.
    """
    count = len(vectors)
    neighbors = _Neighbors(vectors, k)
    if count <= _ALL:
        neighbors.compare(np.arange(count), np.arange(count))
        return neighbors.far, neighbors.numbers
    blocks = count // _BLOCK
    probes = _probes(vectors, blocks)
    order = np.argsort(probes[:, 0], kind="stable")
    ends = np.searchsorted(probes[order, 0], np.arange(1, blocks))
    members = np.split(order, ends)
    side_by_side(partial(_look, neighbors, members, probes), range(blocks))
    return neighbors.far, neighbors.numbers


def _probes(vectors: NDArray[np.float32], blocks: int) -> Numbers:
    """Return the blocks that are nearest to each vector, (n, probes); the first one is its own."""
    clustering: Any = faiss.Clustering(vectors.shape[1], blocks)
    clustering.niter, clustering.seed = _ROUNDS, _SEED
    clustering.min_points_per_centroid, clustering.max_points_per_centroid = 1, _SAMPLE
    index: Any = faiss.IndexFlatL2(vectors.shape[1])
    clustering.train(vectors, index)
    probes: Numbers = index.search(vectors, min(_PROBES, blocks))[1].astype(np.int32)
    return probes


def _look(neighbors: _Neighbors, members: list[NDArray[np.int64]], probes: Numbers, block: int) -> None:
    """Compare the vectors of a block with those of near blocks."""
    mine = members[block]
    if not len(mine):
        return
    counts = np.bincount(np.maximum(probes[mine], 0).ravel(), minlength=len(members))
    counts[block] = len(mine)
    order = np.argsort(-counts, kind="stable")
    order = np.concatenate([[block], order[order != block]])[:_MOST_BLOCKS]
    enough = int(np.searchsorted(np.cumsum(counts[order]), _ENOUGH * probes[mine].size)) + 1
    others = np.concatenate([members[other] for other in order[:enough]])
    if len(others) > _MOST:
        others = np.random.default_rng(block).choice(others, _MOST, replace=False)
    for first in range(0, len(mine), _AT_ONCE):
        neighbors.compare(mine[first : first + _AT_ONCE], others)


class _Neighbors:
    """The nearest neighbours of vectors so far.

    Args:
        vectors: float32 (n, dim), vectors to compare.
        k: Neighbours of each vector.
    """

    def __init__(self, vectors: NDArray[np.float32], k: int) -> None:
        self._vectors = vectors
        self.far = np.full((len(vectors), k), np.inf, np.float32)
        self.numbers = np.full((len(vectors), k), -1, np.int32)

    def compare(self, mine: NDArray[np.int64], others: NDArray[np.int64]) -> None:
        """Set the neighbours of some vectors to the nearest among others."""
        num_near = min(self.numbers.shape[1] + 1, len(others))
        far, places = faiss.knn(self._vectors[mine], self._vectors[others], num_near)
        numbers = others[places]
        itself = (numbers == mine[:, None]) | (places < 0)
        itself[~itself.any(axis=1), -1] = True
        order = np.argsort(itself, axis=1, kind="stable")[:, : num_near - 1]
        is_duplicate = np.take_along_axis(itself, order, axis=1)
        self.far[mine, : num_near - 1] = np.where(is_duplicate, np.inf, np.take_along_axis(far, order, axis=1))
        self.numbers[mine, : num_near - 1] = np.where(is_duplicate, -1, np.take_along_axis(numbers, order, axis=1))
