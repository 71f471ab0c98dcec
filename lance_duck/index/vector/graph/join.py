"""Graphs joined from near neighbours: several times as fast as inserting one vector after another.

Some vectors, chosen at random, are inserted into a sparse graph one after the other; all vectors of the higher levels
are among them. This graph connects all clusters. Then each vector is joined with its nearest neighbours: with those
that lie in different directions, with those that have it as a neighbour, and, in the remaining room, with the nearest.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.graph.hnsw import Graph, graph_of, index_of
from lance_duck.index.vector.graph.near import Far, Numbers, near
from lance_duck.index.vector.library import faiss

LEAST_M: Final = 8
MOST_M: Final = 64

_FAISS: Final[Any] = faiss  # its stubs do not have all of it
_SEED: Final = 1
_PART: Final = 4  # one of so many vectors is inserted into the sparse graph
_AT_ONCE: Final = 1 << 13  # rows that are sorted at once: 64 neighbours of each take 4 MB as int64, several times over
_ASKED: Final = 512  # vectors that a graph is tested with
_EF: Final = 64
_REACHED: Final = 0.98
_LARGEST: Final = 1e15


def join_graph(vectors: NDArray[np.float32], m: int, ef_construction: int, max_level: int) -> Graph | None:
    """Build a graph by squared Euclidean distance.

    Args:
        vectors: float32 (n, dim), finite; n is at least `_PART`.
        m: Neighbours of a vector at most, on level 0 twice as many; `LEAST_M` … `MOST_M`.
        ef_construction: Candidates that the insertion of a vector into the sparse graph keeps.
        max_level: Levels at most.

    Returns:
        The graph; None if walks do not reach all vectors in it, as among many equal vectors, or if the squares of the
        numbers would overflow.
    """
    count = len(vectors)
    if max(float(vectors.max()), -float(vectors.min())) > _LARGEST:
        return None
    order = np.random.default_rng(_SEED).permutation(count)
    graph = _joined(_shuffled(vectors, order), m, ef_construction, max_level)
    return None if graph is None else _renumbered(graph, order)


def _joined(storage: Any, m: int, ef_construction: int, max_level: int) -> Graph | None:
    """Build a graph over the vectors of a faiss index, which are around the origin and in no order."""
    shape = (storage.ntotal, storage.d)
    vectors = _FAISS.rev_swig_ptr(storage.get_xb(), shape[0] * shape[1]).reshape(shape)
    sparse = _sparse(vectors[: -(-len(vectors) // _PART)], len(vectors), m, ef_construction, max_level)
    joined = _NeighbourJoin(storage, vectors).table(_level_0(sparse), 2 * m)
    graph = _whole(sparse, joined)
    return graph if _is_sound(storage, graph, vectors) else None


def _shuffled(vectors: NDArray[np.float32], order: NDArray[np.int64]) -> Any:
    """Return a faiss index of vectors around the origin, in another order; they are in memory once."""
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    storage: Any = faiss.IndexFlatL2(vectors.shape[1])
    storage.codes.resize(vectors.nbytes)
    storage.ntotal = len(vectors)
    shuffled = _FAISS.rev_swig_ptr(storage.get_xb(), vectors.size).reshape(vectors.shape)
    for first in range(0, len(vectors), _AT_ONCE):
        batch = slice(first, first + _AT_ONCE)
        np.subtract(vectors[order[batch]], mean, out=shuffled[batch])
    return storage


def _sparse(vectors: NDArray[np.float32], count: int, m: int, ef_construction: int, max_level: int) -> Graph:
    """Return a graph of a part of `count` vectors, with the higher levels of all; its first vectors are on these."""
    levels = np.ones(len(vectors), np.int32)
    for level in range(1, max_level):
        levels[: int(count / m**level)] = level + 1
    index: Any = faiss.IndexHNSWFlat(vectors.shape[1], m)
    index.hnsw.efConstruction = ef_construction
    faiss.copy_array_to_vector(levels, index.hnsw.levels)
    index.add(vectors)
    return graph_of(index)


def _level_0(graph: Graph) -> Numbers:
    places = graph.offsets[:-1].astype(np.int64)[:, None] + np.arange(int(graph.room[1]))
    neighbors: Numbers = graph.neighbors[places]
    return neighbors


def _whole(sparse: Graph, joined: Numbers) -> Graph:
    """Return a graph with the higher levels of `sparse`, and `joined` as the level 0 of all vectors."""
    count, width = joined.shape
    num_sparse = sparse.num_vectors
    levels = np.concatenate([sparse.levels, np.ones(count - num_sparse, np.int32)])
    offsets = np.concatenate([[0], np.cumsum(sparse.room[levels].astype(np.int64))])
    neighbors = np.full(int(offsets[-1]), -1, np.int32)
    neighbors[: len(sparse.neighbors)] = sparse.neighbors
    for first in range(0, count, _AT_ONCE):
        last = min(first + _AT_ONCE, count)
        neighbors[offsets[first:last, None] + np.arange(width)] = joined[first:last]
    return Graph(levels, sparse.room, offsets.astype(np.uint64), neighbors, sparse.entry_point)


def _renumbered(graph: Graph, order: NDArray[np.int64]) -> Graph:
    """Return the graph with vector i renamed to `order[i]`."""
    levels = np.empty_like(graph.levels)
    levels[order] = graph.levels
    sizes = graph.room[levels].astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    starts = np.empty(len(order), np.int64)
    starts[order] = graph.offsets[:-1].astype(np.int64)
    neighbors = np.empty(int(offsets[-1]), np.int32)
    for first in range(0, len(order), _AT_ONCE):
        last = min(first + _AT_ONCE, len(order))
        low, high = int(offsets[first]), int(offsets[last])
        places = np.repeat(starts[first:last] - offsets[first:last], sizes[first:last]) + np.arange(low, high)
        old = graph.neighbors[places]
        neighbors[low:high] = np.where(old >= 0, order[old], -1)
    return Graph(levels, graph.room, offsets.astype(np.uint64), neighbors, int(order[graph.entry_point]))


def _is_sound(storage: Any, graph: Graph, vectors: NDArray[np.float32]) -> bool:
    """Return whether searches for vectors of the graph find them."""
    index = index_of(storage, graph)
    queries = np.ascontiguousarray(vectors[np.linspace(0, len(vectors) - 1, _ASKED).astype(np.int64)])
    nearest = index.search(queries, 1, params=_FAISS.SearchParametersHNSW(efSearch=_EF))[1][:, 0]
    is_same = (nearest >= 0) & (vectors[nearest] == queries).all(axis=1)
    return bool(is_same.mean() >= _REACHED)


class _NeighbourJoin:
    """The join of vectors with their near neighbours.

    Args:
        storage: faiss index of the vectors.
        vectors: float32 (n, dim), the same vectors.
    """

    def __init__(self, storage: Any, vectors: NDArray[np.float32]) -> None:
        self._storage = storage
        self._vectors = vectors

    def table(self, sparse: Numbers, width: int) -> Numbers:
        """Return the neighbours of all vectors, (n, width), -1 after the last; `sparse` has some of the first ones."""
        far, nearest = near(self._vectors, width)
        far, candidates = self._sorted(self._both_ways(self._diverse(far, nearest, width=width // 2 + 4), width))
        full = np.count_nonzero(candidates >= 0, axis=1) > width
        table = candidates[:, :width].copy()
        if full.any():
            candidates[~full] = -1
            table[full] = self._diverse(far, candidates, width=width)[full]
        num_sparse = len(sparse)
        table[:num_sparse] = _filled(_compact(sparse)[:, : 3 * width // 4], table[:num_sparse], width)
        return _filled(table, nearest, width)

    def _both_ways(self, neighbors: Numbers, most: int) -> Numbers:
        """Return neighbours of each vector, and the nearest vectors that have it as a neighbour."""
        return np.hstack([neighbors, self._back(neighbors, most)])

    def _diverse(self, far: Far, numbers: Numbers, *, width: int) -> Numbers:
        """Select neighbours that are nearer to the vector than to each other, nearest first, at most `width`."""
        count = len(numbers)
        bounds = np.arange(count + 1, dtype=np.uint64) * np.uint64(width)
        levels, room = np.ones(count, np.int32), np.array([0, width], np.int32)
        index = index_of(self._storage, Graph(levels, room, bounds, np.full(count * width, -1, np.int32), 0))
        wide, far = np.ascontiguousarray(numbers, np.int64), np.ascontiguousarray(far)
        index.init_level_0_from_knngraph(wide.shape[1], faiss.swig_ptr(far), faiss.swig_ptr(wide))
        neighbors: Numbers = faiss.vector_to_array(index.hnsw.neighbors).reshape(count, width)
        return neighbors

    def _sorted(self, numbers: Numbers) -> tuple[Far, Numbers]:
        """Return distances and numbers of neighbours, nearest first, each once; -1 at the end. Changes `numbers`."""
        far = np.empty(numbers.shape, np.float32)
        for first in range(0, len(numbers), _AT_ONCE):
            batch = slice(first, first + _AT_ONCE)
            rows = np.where(_repeats(numbers[batch]), -1, numbers[batch])
            distances = self._far(first, rows)
            order = np.argsort(distances, axis=1, kind="stable")
            numbers[batch] = np.take_along_axis(rows, order, axis=1)
            far[batch] = np.take_along_axis(distances, order, axis=1)
        return far, numbers

    def _far(self, first: int, numbers: Numbers) -> Far:
        """Return the distances of the vectors from `first` on to their neighbours; inf where there is none."""
        far = np.zeros(numbers.shape, np.float32)
        mine, ids = self._vectors[first : first + len(numbers)], np.ascontiguousarray(numbers, np.int64)
        pointers = (faiss.swig_ptr(each) for each in (far, mine, self._vectors, ids))
        _FAISS.fvec_L2sqr_by_idx(*pointers, mine.shape[1], *numbers.shape)
        return np.where(numbers >= 0, far, np.float32(np.inf))

    def _back(self, neighbors: Numbers, most: int) -> Numbers:
        """Return, for each vector, the nearest vectors that have it as a neighbour, (n, most)."""
        count = len(neighbors)
        steps = range(0, count, _AT_ONCE)
        is_neighbour = neighbors >= 0
        far = np.concatenate([self._far(i, neighbors[i : i + _AT_ONCE])[is_neighbour[i : i + _AT_ONCE]] for i in steps])
        ends = neighbors[is_neighbour]
        keys = ends.astype(np.uint64) << np.uint64(32) | far.view(np.uint32)
        order = np.argsort(keys)
        starts = np.repeat(np.arange(count, dtype=np.int32), np.count_nonzero(is_neighbour, axis=1))[order]
        ends = ends[order]
        rank = np.arange(len(ends)) - np.searchsorted(ends, np.arange(count))[ends]
        reverse = np.full((count, most), -1, np.int32)
        reverse[ends[rank < most], rank[rank < most]] = starts[rank < most]
        return reverse


def _compact(numbers: Numbers) -> Numbers:
    """Move neighbours to the front of each row, in their order, and -1 behind them."""
    return np.take_along_axis(numbers, np.argsort(numbers < 0, axis=1, kind="stable"), axis=1)


def _repeats(numbers: Numbers) -> NDArray[np.bool_]:
    """Return where a number repeats an earlier one of its row."""
    order = np.argsort(numbers, axis=1, kind="stable")
    ranked = np.take_along_axis(numbers, order, axis=1)
    is_repeated = np.zeros(numbers.shape, np.bool_)
    np.put_along_axis(is_repeated, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    return is_repeated


def _filled(neighbors: Numbers, others: Numbers, width: int) -> Numbers:
    """Fill the free places of neighbour lists with other neighbours; each once, -1 at the end."""
    table = np.full((len(neighbors), width), -1, np.int32)
    for first in range(0, len(neighbors), _AT_ONCE):
        candidates = np.hstack([neighbors[first : first + _AT_ONCE], others[first : first + _AT_ONCE]])
        candidates[_repeats(candidates)] = -1
        table[first : first + _AT_ONCE, : candidates.shape[1]] = _compact(candidates)[:, :width]
    return table
