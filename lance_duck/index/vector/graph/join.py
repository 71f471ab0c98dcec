"""Joins graphs from near neighbours. This is several times as fast as inserting all vectors.

Randomly chosen vectors are inserted into a sparse graph, including all vectors of the higher levels. This graph
connects all clusters. Then each vector gets near neighbours until its slots are full: first neighbours in different
directions, then vectors that have it as a neighbour, and finally its nearest neighbours.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lance_duck.index.vector.graph.hnsw import Graph, flat_storage, graph_of, index_of
from lance_duck.index.vector.graph.near import NearNeighbors, Numbers, Rows, Vectors, near
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.threads import side_by_side
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.vectors.edges import choose_diverse, count_reversed, join_edges, reverse_edges

LEAST_M: Final = 8
MOST_M: Final = 64

_FAISS: Final[Any] = faiss  # faiss's stubs are incomplete
_SEED: Final = 1
_PART: Final = 4  # 1/4 of the vectors is inserted into the sparse graph
_AT_ONCE: Final = 1 << 12  # rows per task
_SPARSE_SHARE: Final = 0.75  # maximum share of a vector's slots for the sparse graph
_ASKED: Final = 512  # number of vectors for testing a graph
_EF: Final = 64
_REACHED: Final = 0.98
_LEAST_FOUND: Final = 0.9
"""Minimum share of the near neighbours of a sample that must be found for joining a graph. The share is lower for
vectors with many uncorrelated dimensions, heavy tails, or widely varying lengths. Their joined graphs have a lower
recall than graphs built by insertion, even if walks reach all vectors. The decrease was measured for 20,000 vectors
with 32 and 64 candidates. It was 0.05 and 0.03 at a share of 0.56, 0.12 and 0.07 at 0.81 (varying lengths), 0.02 and
0.01 at 0.87, and 0.002 and 0 at 0.94 (`benchmarks/graph_joins.py`)."""
_LARGEST: Final = 1e15


def join_graph(vectors: Vectors, m: int, ef_construction: int, max_level: int) -> Graph | None:
    """Build a graph by squared Euclidean distance.

    Args:
        vectors: float32 (n, dim), finite, with n >= `_PART`.
        m: Maximum number of neighbours of a vector, `LEAST_M` … `MOST_M`. Level 0 allows 2 m.
        ef_construction: Number of candidates for an insertion into the sparse graph.
        max_level: Maximum number of levels.

    Returns:
        The graph, or None if insertion is required. This is the case if too few near neighbours are found, if walks do
        not reach enough vectors (for example because many are equal), or if squared numbers could overflow.
    """
    if max(float(vectors.max()), -float(vectors.min())) > _LARGEST:
        return None
    nearest = near(vectors, 2 * m)
    if nearest.share < _LEAST_FOUND:
        return None
    members = np.random.default_rng(_SEED).permutation(len(vectors))[: -(-len(vectors) // _PART)]
    sparse = _sparse(vectors, members, m, ef_construction, max_level)
    table = _fixed(sparse, members, len(vectors), 2 * m)
    _join(readonly(vectors), nearest, table)
    graph = _whole(sparse, members, table)
    return graph if _is_sound(graph, vectors) else None


def _sparse(vectors: Vectors, members: Rows, m: int, ef_construction: int, max_level: int) -> Graph:
    """Return a graph of some vectors, sorted by descending level. It contains all vectors of the higher levels."""
    levels = np.ones(len(members), np.int32)
    for level in range(1, max_level):
        levels[: int(len(vectors) / m**level)] = level + 1
    index: Any = faiss.IndexHNSWFlat(vectors.shape[1], m)
    index.hnsw.efConstruction = ef_construction
    faiss.copy_array_to_vector(levels, index.hnsw.levels)
    index.add(vectors[members])
    return graph_of(index)


def _fixed(sparse: Graph, members: Rows, count: int, width: int) -> Numbers:
    """Return the neighbours on level 0 of the sparse graph, (count, width), padded with -1."""
    places = sparse.offsets[:-1].astype(np.int64)[:, None] + np.arange(width)
    numbers = sparse.neighbors[places]
    numbers = np.take_along_axis(numbers, np.argsort(numbers < 0, axis=1, kind="stable"), axis=1)
    taken = numbers[:, : int(_SPARSE_SHARE * width)]
    table = np.full((count, width), -1, np.int32)
    table[members, : taken.shape[1]] = np.where(taken >= 0, members[taken], -1)
    return table


def _join(vectors: Vectors, nearest: NearNeighbors, table: Numbers) -> None:
    """Add near neighbours of all vectors to the neighbours in the table."""
    far, numbers, order, _ = nearest
    count, width = table.shape
    batches = [order[first : first + _AT_ONCE] for first in range(0, count, _AT_ONCE)]
    chosen = np.empty(numbers.shape, np.bool_)
    most = width // 2 + 4

    def choose(rows: Rows) -> None:
        choose_diverse(vectors, rows, far, numbers, most, chosen, np.empty(most, np.int32))

    side_by_side(choose, batches)
    stops = np.empty(count + 1, np.int64)
    count_reversed(numbers, chosen, stops)
    ends, lengths = np.empty(int(stops[-1]), np.int32), np.empty(int(stops[-1]), np.float32)
    reverse_edges(far, numbers, chosen, stops, ends, lengths)
    room = numbers.shape[1] + width

    def join(rows: Rows) -> None:
        work, distances = np.empty(room, np.int32), np.empty(room, np.float32)
        join_edges(vectors, rows, far, numbers, chosen, stops, ends, lengths, table, work, distances)

    side_by_side(join, batches)


def _whole(sparse: Graph, members: Rows, table: Numbers) -> Graph:
    """Return a graph of all vectors, with `table` as level 0 and the higher levels of `sparse`."""
    count, width = table.shape
    levels = np.ones(count, np.int32)
    levels[members] = sparse.levels
    offsets = np.concatenate([[0], np.cumsum(sparse.room[levels].astype(np.int64))])
    neighbors = np.full(int(offsets[-1]), -1, np.int32)
    for first in range(0, count, _AT_ONCE):
        last = min(first + _AT_ONCE, count)
        neighbors[offsets[first:last, None] + np.arange(width)] = table[first:last]
    for level in range(1, len(sparse.room) - 1):
        high = np.flatnonzero(sparse.levels > level)
        places = np.arange(sparse.room[level], sparse.room[level + 1])
        numbers = sparse.neighbors[sparse.offsets[high].astype(np.int64)[:, None] + places]
        neighbors[offsets[members[high]][:, None] + places] = np.where(numbers >= 0, members[numbers], -1)
    entry_point = int(members[sparse.entry_point])
    return Graph(levels, sparse.room, offsets.astype(np.uint64), neighbors, entry_point)


def _is_sound(graph: Graph, vectors: Vectors) -> bool:
    """Return whether searches for vectors of the graph find these vectors."""
    storage = flat_storage(vectors.shape[1], "l2")
    storage.add(vectors)
    index = index_of(storage, graph)
    queries = np.ascontiguousarray(vectors[np.linspace(0, len(vectors) - 1, _ASKED).astype(np.int64)])
    nearest = index.search(queries, 1, params=_FAISS.SearchParametersHNSW(efSearch=_EF))[1][:, 0]
    is_same = (nearest >= 0) & (vectors[nearest] == queries).all(axis=1)
    return bool(is_same.mean() >= _REACHED)
