"""Finds near neighbours of all vectors of a set within the set, block by block.

A block consists of the vectors around a centroid. These vectors are compared with the blocks that are near most of
them. Vectors at the border of a block may miss some of their neighbours.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.threads import side_by_side
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.vectors.tiles import (
    ROWS,
    SLACK,
    TILE,
    candidates_room,
    fill_tiles,
    nearest_in_tiles,
    sort_nearest,
)

Vectors = NDArray[np.float32]
Far = NDArray[np.float32]
Numbers = NDArray[np.int32]
Rows = NDArray[np.int64]

PROBES: Final = 8
"""Number of blocks that count as near a vector. For clustered vectors, 2 blocks find a share of 0.980 of 40 neighbours,
4 blocks find 0.994, and 8 and 16 blocks find 0.997. For uniform vectors, the shares are 0.37 to 0.39
(`benchmarks/partition_costs.py --rows 40000 --dimension 32 --only PROBES`)."""

MOST_BLOCKS: Final = 24
"""Maximum number of blocks with which a block is compared. For uniform vectors, 12 blocks find 0.26 of the neighbours
in 0.8 of the time, and 24 blocks find 0.39. 48 blocks find 0.41, although not all their tiles are compared. For
clustered vectors, 12 blocks find 0.991 of the neighbours, and 24 and 48 blocks find 0.997
(`benchmarks/partition_costs.py --rows 40000 --dimension 32 --only MOST_BLOCKS`)."""

ENOUGH: Final = 0.9
"""A block is compared with this share of the blocks that are near its vectors. The other blocks are near only a few
vectors. For clustered vectors, 0.7 finds 0.988 of the neighbours, and 0.9 finds 0.997. 1 also finds 0.997, in a tenth
more time (`benchmarks/partition_costs.py --rows 40000 --dimension 32 --only ENOUGH`)."""

_SEED: Final = 7
_ALL: Final = 2048  # up to this many vectors form a single block
_BLOCK: Final = 256
_AT_ONCE: Final = 256  # vectors compared per step: their products with a tile take 64 KB
_MOST_TILES: Final = 32 * _BLOCK // TILE  # maximum number of tiles per vector, for blocks of very different sizes
_ROUNDS: Final = 4
_SAMPLE: Final = 32  # vectors for each centroid
_FILLED: Final = 64  # tiles that one task fills
_ASSIGNED: Final = 1 << 13  # vectors that one task assigns to blocks
_TESTED: Final = 64  # vectors that each of two tasks of `found_share` compares with all vectors
_ROUNDED: Final = np.float32(1.0001)  # distances within this ratio may be equal except for rounding


class NearNeighbors(NamedTuple):
    """The near neighbours of each vector, nearest first, without the vector itself.

    Attributes:
        far: float32 (n, k), squared distances, or inf for missing neighbours.
        numbers: int32 (n, k), rows of the neighbours, or -1 for missing neighbours.
        order: int64 (n,), all rows, block by block.
        share: Share of nearest neighbours found, 0 to 1, measured on a sample.
    """

    far: Far
    numbers: Numbers
    order: Rows
    share: float


def near(vectors: Vectors, k: int) -> NearNeighbors:
    """Return approximately the k nearest neighbours of each vector.

    Args:
        vectors: float32 (n, dim), C-contiguous, finite, with n >= 1.
        k: Number of neighbours of each vector, at least 1.
    """
    vectors = readonly(vectors)
    middle = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    num_blocks = len(vectors) // _BLOCK if len(vectors) > _ALL else 1
    probes = _probes(vectors, middle, num_blocks)
    blocks = _VectorBlocks(vectors, middle, probes, num_blocks)
    far = np.empty((len(vectors), k), np.float32)
    numbers = np.empty((len(vectors), k), np.int32)
    side_by_side(lambda block: blocks.compare(block, far, numbers), range(num_blocks))
    return NearNeighbors(far, numbers, blocks.order, blocks.found_share(far))


def _probes(vectors: Vectors, middle: Vectors, num_blocks: int) -> Numbers:
    """Return the nearest blocks of each vector, (n, probes). The first one is the block of the vector."""
    if num_blocks == 1:
        return np.zeros((len(vectors), 1), np.int32)
    size = min(len(vectors), num_blocks * _SAMPLE)
    sample = vectors[np.random.default_rng(_SEED).choice(len(vectors), size, replace=False)]
    centroids = sample[:num_blocks].copy()
    for _ in range(_ROUNDS):
        own = _nearest_centroids(sample, centroids, middle, 1)[:, 0]
        order = np.argsort(own, kind="stable")
        sizes = np.bincount(own, minlength=num_blocks)
        has_vectors = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[has_vectors]
        sums = np.add.reduceat(sample[order], starts, axis=0, dtype=np.float64)
        centroids[has_vectors] = sums / sizes[has_vectors, None]
    return _nearest_centroids(vectors, centroids, middle, min(PROBES, num_blocks))


def _nearest_centroids(vectors: Vectors, centroids: Vectors, middle: Vectors, k: int) -> Numbers:
    """Return the k nearest centroids of each vector, nearest first."""
    places = np.full(-(-len(centroids) // TILE) * TILE, -1, np.int64)
    places[: len(centroids)] = np.arange(len(centroids))
    tiles = _Tiles(readonly(centroids), middle, places)
    all_tiles = np.arange(len(places) // TILE)
    vectors, result = readonly(vectors), np.empty((len(vectors), k), np.int32)

    def assign(first: int) -> None:
        for begin in range(first, min(first + _ASSIGNED, len(vectors)), _AT_ONCE):
            rows = np.arange(begin, min(begin + _AT_ONCE, len(vectors)))
            far, numbers, counts = tiles.nearest(vectors, rows, all_tiles, k)
            far[np.arange(k + SLACK) >= counts[:, None]] = np.inf
            order = np.argsort(far, axis=1, kind="stable")[:, :k]
            result[rows] = np.take_along_axis(numbers, order, axis=1)

    side_by_side(assign, range(0, len(vectors), _ASSIGNED))
    return result


class _Tiles:
    """Vectors in tiles. Other vectors are compared with whole tiles.

    Args:
        vectors: float32 (n, dim), read-only.
        middle: float32 (dim,), a central vector. It is subtracted to reduce rounding errors of products.
        places: int64 (tiles · `TILE`,), row of each slot; -1 for empty slots.
    """

    def __init__(self, vectors: Vectors, middle: Vectors, places: Rows) -> None:
        self._middle = middle
        self._dim = -(-vectors.shape[1] // ROWS) * ROWS
        count = len(places) // TILE
        self._tiles = np.empty((count, self._dim * TILE), np.float32)
        self._squares = np.empty((count, TILE), np.float32)

        def fill(first: int) -> None:
            last = first + _FILLED
            rows = places[first * TILE : last * TILE]
            fill_tiles(vectors, rows, middle, self._tiles[first:last], self._squares[first:last])

        side_by_side(fill, range(0, count, _FILLED))

    def nearest(self, vectors: Vectors, rows: Rows, chosen: Rows, k: int) -> tuple[Far, Numbers, Numbers]:
        """Find the k nearest vectors in some tiles, and a few more candidates.

        Returns:
            Squared distances minus the row's squared length, slots in the tiles, and the number of candidates of each
            row. Distances and slots are (rows, k + `SLACK`) and unsorted.
        """
        height = -(-len(rows) // ROWS) * ROWS
        mine = np.zeros((height, self._dim), np.float32)
        mine[: len(rows), : vectors.shape[1]] = np.float32(-2) * (vectors[rows] - self._middle)
        shape = (height, candidates_room(k))
        far, places, counts = np.empty(shape, np.float32), np.empty(shape, np.int32), np.empty(height, np.int32)
        products, bounds = np.empty(height * TILE, np.float32), np.empty(height, np.float32)
        nearest_in_tiles(mine, chosen, self._tiles, self._squares, k, products, far, places, counts, bounds)
        return far[: len(rows), : k + SLACK], places[: len(rows), : k + SLACK], counts[: len(rows)]


class _VectorBlocks:
    """The vectors of all blocks, in tiles. A tile contains vectors of a single block.

    Args:
        vectors: float32 (n, dim), read-only.
        middle: float32 (dim,), the mean of the vectors.
        probes: int32 (n, probes), near blocks of each vector. The first one is the block of the vector.
        count: Number of blocks.

    Attributes:
        order: int64 (n,), rows ordered by block.
    """

    def __init__(self, vectors: Vectors, middle: Vectors, probes: Numbers, count: int) -> None:
        self._vectors = vectors
        self._probes = probes
        self.order = np.argsort(probes[:, 0], kind="stable")
        sizes = np.bincount(probes[:, 0], minlength=count)
        self._ends = np.cumsum(sizes)
        num_tiles = -(-sizes // TILE)
        self._tile_ends = np.cumsum(num_tiles)
        padding = np.repeat((self._tile_ends - num_tiles) * TILE - (self._ends - sizes), sizes)
        places = np.full(int(num_tiles.sum()) * TILE, -1, np.int64)
        places[np.arange(len(vectors)) + padding] = self.order
        self._tiles = _Tiles(vectors, middle, places)
        self._numbers = places.astype(np.int32)

    def compare(self, block: int, far: Far, numbers: Numbers) -> None:
        """Compare the vectors of a block with near blocks, and write their neighbours to `far` and `numbers`."""
        mine = self.order[self._ends[block - 1] if block else 0 : self._ends[block]]
        if not len(mine):
            return
        chosen = self._near_tiles(block, self._probes[mine])
        for first in range(0, len(mine), _AT_ONCE):
            rows = mine[first : first + _AT_ONCE]
            _, places, counts = self._tiles.nearest(self._vectors, rows, chosen, far.shape[1] + 1)
            sort_nearest(self._vectors, rows, self._numbers, np.ascontiguousarray(places), counts, far, numbers)

    def found_share(self, far: Far) -> float:
        """Return the share of true nearest neighbours in `far`, measured by distance for a sample of vectors."""
        count, k = len(self._vectors), min(far.shape[1], len(self._vectors) - 1)
        if not k:
            return 1.0
        sample = np.random.default_rng(_SEED).choice(count, min(2 * _TESTED, count), replace=False)
        all_tiles = np.arange(len(self._numbers) // TILE)
        found = np.empty(len(sample), np.int64)

        def test(first: int) -> None:
            rows = sample[first : first + _TESTED]
            _, places, counts = self._tiles.nearest(self._vectors, rows, all_tiles, k + 1)
            for i, row in enumerate(rows.tolist()):
                others = self._numbers[places[i, : counts[i]]]
                steps = self._vectors[others[others != row]] - self._vectors[row]
                distances = np.einsum("ij,ij->i", steps, steps)
                last = np.partition(distances, k - 1)[k - 1] * _ROUNDED
                found[first + i] = (far[row, :k] <= last).sum()

        side_by_side(test, range(0, len(sample), _TESTED))
        return float(found.sum() / (k * len(sample)))

    def _near_tiles(self, block: int, probes: Numbers) -> Rows:
        """Return the tiles of a block, followed by the tiles of near blocks.

        If there are too many tiles, the tiles of the farthest blocks are dropped.
        """
        counts = np.bincount(probes.ravel(), minlength=len(self._ends))
        counts[block] = len(probes)
        order = np.argsort(-counts, kind="stable")
        order = np.concatenate([[block], order[order != block]])[:MOST_BLOCKS]
        enough = int(np.searchsorted(np.cumsum(counts[order]), ENOUGH * probes.size)) + 1
        own, *others = [np.arange(self._tile_ends[i - 1] if i else 0, self._tile_ends[i]) for i in order[:enough]]
        if len(own) > _MOST_TILES:
            return np.random.default_rng(block).choice(own, _MOST_TILES, replace=False)
        return np.concatenate([own, *others])[:_MOST_TILES]
