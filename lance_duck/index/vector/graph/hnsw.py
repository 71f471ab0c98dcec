"""HNSW graphs as the arrays of faiss: building and searching them.

faiss stores the neighbours of a vector consecutively, level by level. On each of its levels, a vector has the maximum
number of slots, and empty slots contain -1. faiss does not validate these arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError
from lance_duck.index.vector.library import faiss

M: Final = 20
EF_CONSTRUCTION: Final = 150
MAX_LEVEL: Final = 7
MOST_LEVELS: Final = 64

_MOST_NEIGHBORS: Final = 1024


@dataclass(frozen=True)
class Graph:
    """A graph over the vectors 0 … n - 1, in faiss's format.

    Attributes:
        levels: int32 (n,), number of levels of each vector.
        room: int32 (levels + 1,), total number of neighbour slots on the levels below each level.
        offsets: uint64 (n + 1,), first slot of each vector in `neighbors`.
        neighbors: int32, neighbours of each vector, level by level, padded with -1.
        entry_point: Vector at which walks begin, on the highest level. -1 if the graph does not have vectors.
    """

    levels: NDArray[np.int32]
    room: NDArray[np.int32]
    offsets: NDArray[np.uint64]
    neighbors: NDArray[np.int32]
    entry_point: int

    @property
    def num_vectors(self) -> int:
        """Number of vectors."""
        return len(self.levels)

    @property
    def nbytes(self) -> int:
        """Size of the arrays, in bytes."""
        return self.levels.nbytes + self.offsets.nbytes + self.neighbors.nbytes


def build_graph(
    vectors: NDArray[np.float32],
    metric: str,
    *,
    m: int = M,
    ef_construction: int = EF_CONSTRUCTION,
    max_level: int = MAX_LEVEL,
    storage: Any = None,
) -> Graph:
    """Build a graph by inserting the vectors one by one, with all threads.

    Args:
        vectors: float32 (n, dim), C-contiguous and finite. Normalised for cosine.
        metric: "l2", "cosine" or "dot".
        m: Maximum number of neighbours of a vector, at least 2. Level 0 allows 2 m.
        ef_construction: Number of candidates in the search for a vector's neighbours.
        max_level: Maximum number of levels.
        storage: Trained, empty faiss index that receives the vectors and computes the distances. By default, distances
            are exact.

    Raises:
        InvalidInputError: A parameter is out of range.
    """
    _check_parameter("m", m, 2, _MOST_NEIGHBORS)
    _check_parameter("ef_construction", ef_construction, 1, 1 << 20)
    _check_parameter("max_level", max_level, 1, MOST_LEVELS)
    vector_storage = storage if storage is not None else flat_storage(vectors.shape[1], metric)
    index: Any = faiss.IndexHNSW(vector_storage, m)
    index.hnsw.efConstruction = ef_construction
    index.keep_max_size_level0 = True  # as in Lance: preserves the recall of walks whose ef is close to k
    chances = faiss.vector_to_array(index.hnsw.assign_probas)[:max_level]
    faiss.copy_array_to_vector(np.ascontiguousarray(chances), index.hnsw.assign_probas)
    if len(vectors):
        index.add(vectors)
    return graph_of(index)


def graph_of(index: Any) -> Graph:
    """Return a copy of the graph of a faiss IndexHNSW."""
    hnsw = index.hnsw
    levels = faiss.vector_to_array(hnsw.levels).astype(np.int32)
    height = int(levels.max(initial=0))
    return Graph(
        levels,
        faiss.vector_to_array(hnsw.cum_nneighbor_per_level).astype(np.int32)[: height + 1],
        faiss.vector_to_array(hnsw.offsets).astype(np.uint64),
        faiss.vector_to_array(hnsw.neighbors).astype(np.int32),
        int(hnsw.entry_point),
    )


def index_of(storage: Any, graph: Graph) -> Any:
    """Return a faiss IndexHNSW that searches a graph. The caller must keep `storage` alive.

    Args:
        storage: faiss index of the vectors. It defines the metric of searches.
        graph: Graph over these vectors.
    """
    index: Any = faiss.IndexHNSW(storage, 16)
    index.is_trained = True
    index.ntotal = graph.num_vectors
    hnsw: Any = index.hnsw
    faiss.copy_array_to_vector(graph.room, hnsw.cum_nneighbor_per_level)
    faiss.copy_array_to_vector(graph.levels, hnsw.levels)
    faiss.copy_array_to_vector(graph.offsets, hnsw.offsets)
    faiss.copy_array_to_vector(graph.neighbors, hnsw.neighbors)
    hnsw.entry_point = graph.entry_point
    hnsw.max_level = int(graph.levels[graph.entry_point]) - 1 if graph.num_vectors else -1
    return index


def points(vectors: NDArray[Any], metric: str) -> tuple[NDArray[np.float32], str]:
    """Return the float32 vectors from which graphs are built, and the metric for building.

    Each bit of a binary vector becomes the number 0 or 1. The squared distance is then the number of different bits.
    """
    if metric != "hamming":
        return np.ascontiguousarray(vectors, np.float32), metric
    return np.unpackbits(np.ascontiguousarray(vectors), axis=1).astype(np.float32), "l2"


def flat_storage(dim: int, metric: str) -> Any:
    """Return an empty faiss index of uncompressed vectors. Cosine is the Euclidean distance of normalised vectors."""
    return faiss.IndexFlatIP(dim) if metric == "dot" else faiss.IndexFlatL2(dim)


def _check_parameter(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInputError(name, expected=f"{least} … {most}", found=value)
