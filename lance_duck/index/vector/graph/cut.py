"""Removes vectors from a graph. The other vectors keep their remaining neighbours.

If a vector loses many neighbours, the neighbours of the lost vectors fill its slots, nearest first.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.graph.hnsw import Graph

Neighbors = NDArray[np.int64]

_MANY: Final = 0.25
_FEW_GONE: Final = 4  # maximum number of lost neighbours whose neighbours may fill the slots of a vector
_AT_ONCE: Final = 32 << 20  # size of the vectors that are compared together, in bytes


def living_graph(graph: Graph, vectors: NDArray[np.float32], lives: NDArray[np.bool_], metric: str) -> Graph:
    """Return a graph over the live vectors, renumbered in the same order.

    Args:
        graph: Graph over all vectors.
        vectors: float32 (n, dim), vectors of the graph. Normalised for cosine.
        lives: bool (n,), whether each vector remains. At least one vector must remain.
        metric: "l2", "cosine" or "dot".
    """
    numbers = np.where(lives, np.cumsum(lives) - 1, -1)
    levels = graph.levels[lives]
    height = int(levels.max())
    room = graph.room[: height + 1].astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(room[levels])])
    neighbors = np.full(int(offsets[-1]), -1, np.int32)
    for level in range(height):
        members = np.flatnonzero((graph.levels > level) & lives)
        table = _Level(graph, level, vectors, lives, metric).cut(members)
        table = np.where(table >= 0, numbers[table], -1)
        places = offsets[numbers[members]] + room[level]
        neighbors[places[:, None] + np.arange(table.shape[1])] = table
    entry = graph.entry_point
    start = int(numbers[entry]) if lives[entry] and graph.levels[entry] == height else int(np.argmax(levels))
    return Graph(levels, room.astype(np.int32), offsets.astype(np.uint64), neighbors, start)


class _Level:
    """One level of a graph, while vectors are removed from it."""

    def __init__(
        self, graph: Graph, level: int, vectors: NDArray[np.float32], lives: NDArray[np.bool_], metric: str
    ) -> None:
        self._graph = graph
        self._room = slice(int(graph.room[level]), int(graph.room[level + 1]))
        self._vectors = vectors
        self._lives = np.append(lives, np.False_)  # index -1 stands for a missing neighbour, which is not live
        self._is_dot = metric == "dot"

    def cut(self, members: Neighbors) -> Neighbors:
        """Return the live neighbours of vectors, (members, room), padded with -1."""
        table = self._of(members)
        alive = self._lives[table]
        had = np.count_nonzero(table >= 0, axis=1)
        num_lost = had - np.count_nonzero(alive, axis=1)
        worth = np.flatnonzero((num_lost > 0) & (num_lost >= _MANY * had))
        living = np.where(alive, table, -1)
        width = table.shape[1]
        step = max(1, _AT_ONCE // (4 * self._vectors.shape[1] * width * _FEW_GONE))
        for first in range(0, len(worth), step):
            batch = worth[first : first + step]
            living[batch] = self._mended(members[batch], table[batch], living[batch])
        return _left(living)

    def _of(self, members: Neighbors) -> Neighbors:
        starts = self._graph.offsets[members].astype(np.int64)
        places = starts[:, None] + np.arange(self._room.start, self._room.stop)
        neighbors: Neighbors = self._graph.neighbors[places].astype(np.int64)
        return neighbors

    def _mended(self, members: Neighbors, table: Neighbors, living: Neighbors) -> Neighbors:
        deleted = _left(np.where(self._lives[table], -1, table))[:, :_FEW_GONE]
        offered = np.where(
            deleted[:, :, None] >= 0, self._of(np.maximum(deleted, 0).reshape(-1)).reshape(*deleted.shape, -1), -1
        )
        offered = offered.reshape(len(members), -1)
        offered[~self._lives[offered] | (offered == members[:, None])] = -1
        candidates = np.hstack([living, offered])
        order = np.argsort(candidates, axis=1, kind="stable")
        ranked = np.take_along_axis(candidates, order, axis=1)
        is_repeated = np.zeros(candidates.shape, np.bool_)
        np.put_along_axis(is_repeated, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
        offered[is_repeated[:, living.shape[1] :]] = -1
        nearest = np.take_along_axis(offered, np.argsort(self._distances(members, offered), axis=1), axis=1)
        return _left(np.hstack([_left(living), nearest]))[:, : living.shape[1]]

    def _distances(self, members: Neighbors, others: Neighbors) -> NDArray[np.float32]:
        mine, theirs = self._vectors[members], self._vectors[others]
        if self._is_dot:
            result = -np.einsum("nd,nkd->nk", mine, theirs)
        else:
            result = ((theirs - mine[:, None, :]) ** 2).sum(axis=2)
        return np.where(others >= 0, result, np.float32(np.inf))


def _left(table: Neighbors) -> Neighbors:
    """Move the neighbours in each row to the front, in their order, and pad the row with -1."""
    return np.take_along_axis(table, np.argsort(table < 0, axis=1, kind="stable"), axis=1)
