"""HNSW graphs: rows of Lance's files ↔ arrays that faiss takes.

index.idx   rows of a partition: one per vector and level, level by level
    __vector_id u32             position of the vector in the partition; level 0 has all of them, in order
    __neighbors list<u32>       its neighbours on this level: at most 2·m on level 0, m above
    _distance list<f32>         how far they are: written, read by no search
lance:hnsw  JSON text per partition: entry_point, params {m, ef_construction, max_level, …}, level_offsets: first row of
            each level, and the number of rows at the end; trailing levels may be empty; "" for no vectors at all

faiss keeps the neighbours of all levels of a vector side by side, each level with room for as many as there may be,
filled up with -1. It checks nothing: what it gets was checked here.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

import faiss
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, InvalidInputError

GRAPH_SCHEMA: Final = pa.schema(
    [
        pa.field("__vector_id", pa.uint32()),
        pa.field("__neighbors", pa.list_(pa.uint32())),
        pa.field("_distance", pa.list_(pa.float32())),
    ]
)

METADATA_KEY: Final = "lance:hnsw"
MAX_LEVEL: Final = 7
MOST_NEIGHBORS: Final = 1024  # that `m` may ask for

_FAISS: Final[Any] = faiss  # its stubs do not have all of it
_MOST_LEVELS: Final = 64
_SPARSEST: Final = 64  # places for neighbours, for each one that there is
_BLOCK: Final = 1 << 16


@dataclass(frozen=True)
class GraphMetadata:
    """What `lance:hnsw` says of the graph of one partition.

    Attributes:
        entry_point: Vector where walks begin.
        level_offsets: First row of each level, and the number of rows.
        params: m, ef_construction, max_level and others, as they were written.
    """

    entry_point: int
    level_offsets: tuple[int, ...]
    params: MappingProxyType[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def num_rows(self) -> int:
        """Rows of all levels."""
        return self.level_offsets[-1] if self.level_offsets else 0

    def to_json(self) -> str:
        """The text of it."""
        text = {
            "entry_point": self.entry_point,
            "params": dict(self.params),
            "level_offsets": list(self.level_offsets),
        }
        return json.dumps(text, separators=(",", ":"))


@dataclass(frozen=True)
class Graph:
    """A graph over the vectors 0 … n - 1, as faiss takes it.

    Attributes:
        levels: int32 (n,): on how many levels each vector is.
        room: int32 (levels + 1,): places for neighbours on all levels below.
        offsets: uint64 (n + 1,): first place of each vector.
        neighbors: int32: neighbours of each vector, level by level, filled up with -1.
        entry_point: Where walks begin, on its highest level; -1 where there are no vectors.
    """

    levels: NDArray[np.int32]
    room: NDArray[np.int32]
    offsets: NDArray[np.uint64]
    neighbors: NDArray[np.int32]
    entry_point: int

    @property
    def num_vectors(self) -> int:
        """Vectors."""
        return len(self.levels)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.levels.nbytes + self.offsets.nbytes + self.neighbors.nbytes


@dataclass(frozen=True)
class GraphRows:
    """A graph as rows of a file.

    Attributes:
        rows: Of `GRAPH_SCHEMA`.
        metadata: Where levels and walks begin.
    """

    rows: pa.RecordBatch
    metadata: GraphMetadata


def graph_metadata(text: str, *, where: object = None) -> list[GraphMetadata]:
    """Read `lance:hnsw`: one entry per partition.

    Raises:
        CorruptError: It is no such text.
    """
    parts = _parsed(text, where)
    if not isinstance(parts, list):
        raise CorruptError("metadata of graphs", where=where, expected="a list of texts", found=text[:80])
    return [_metadata(part, where) for part in parts]


def metadata_text(graphs: Sequence[GraphMetadata]) -> str:
    """`lance:hnsw` of the partitions."""
    return json.dumps([graph.to_json() for graph in graphs], separators=(",", ":"))


def read_graph(
    metadata: GraphMetadata, ids: pa.Array, neighbors: pa.Array, num_vectors: int, *, where: object = None
) -> Graph:
    """Make a graph of its rows.

    Args:
        metadata: Of the partition.
        ids: uint32, `__vector_id` of its rows.
        neighbors: list<uint32>, `__neighbors` of its rows.
        num_vectors: Vectors of the partition.
        where: For messages.

    Raises:
        CorruptError: Level 0 has not all vectors, another level one that the level below has not, a vector a neighbour
            that is not on its level, or the entry point is no vector.
    """
    starts, lengths, items = _lists(neighbors, where)
    numbers = _plain(ids, where).astype(np.int64)
    if not len(ids) == len(neighbors) == metadata.num_rows:
        raise CorruptError("rows of a graph", where=where, expected=metadata.num_rows, found=len(ids))
    bounds = _bounds(metadata.level_offsets)
    levels = _levels(numbers, bounds, num_vectors, where)
    if num_vectors and not 0 <= metadata.entry_point < num_vectors:
        raise CorruptError("entry point", where=where, expected=f"< {num_vectors}", found=metadata.entry_point)
    widths = [int(lengths[low:high].max(initial=0)) for low, high in bounds]
    room = np.concatenate([[0], np.cumsum(np.maximum(widths, 1, dtype=np.int64))]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(room[levels])])
    if int(offsets[-1]) > _SPARSEST * (len(items) + len(ids)):
        raise CorruptError("a graph with hardly a neighbour", where=where, found=f"{len(items)} for {offsets[-1]}")
    filled = np.full(int(offsets[-1]), -1, np.int32)
    for level, (low, high) in enumerate(bounds):
        first, count = starts[low:high], lengths[low:high]
        found = items[first[0] : first[-1] + count[-1]].astype(np.int64)
        _check_neighbors(found, levels, level, where)
        places = offsets[numbers[low:high]] + room[level] - (first - first[0])
        filled[np.repeat(places, count) + np.arange(len(found))] = found
    return Graph(
        levels.astype(np.int32),
        room.astype(np.int32),
        offsets.astype(np.uint64),
        filled,
        metadata.entry_point if num_vectors else -1,
    )


def graph_rows(graph: Graph, vectors: NDArray[np.float32], metric: str, **params: Any) -> GraphRows:
    """Write a graph as rows, as Lance writes them.

    Args:
        graph: It.
        vectors: float32 (n, dim), C-contiguous, whose distances are written; for cosine normalised.
        metric: "l2", "cosine" or "dot".
        params: m, ef_construction and max_level that it was built with. There are at least as many levels as the
            graph has.
    """
    chosen = {"max_level": MAX_LEVEL, "m": 20, "ef_construction": 150, "prefetch_distance": 2, **params}
    height = len(graph.room) - 1
    chosen["max_level"] = max(int(chosen["max_level"]), height)
    batches, ends = [], [0]
    for level in range(height):
        members = np.flatnonzero(graph.levels > level)
        blocks = (members[first : first + _BLOCK] for first in range(0, len(members), _BLOCK))
        batches.extend(_level_rows(graph, block, level, vectors, metric) for block in blocks)
        ends.append(ends[-1] + len(members))
    ends += [ends[-1]] * (chosen["max_level"] + 1 - len(ends))
    table = pa.Table.from_batches(batches, GRAPH_SCHEMA).combine_chunks()
    rows = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], GRAPH_SCHEMA)
    return GraphRows(rows, GraphMetadata(max(graph.entry_point, 0), tuple(ends), MappingProxyType(chosen)))


def build_graph(
    vectors: NDArray[np.float32],
    metric: str,
    *,
    m: int = 20,
    ef_construction: int = 150,
    max_level: int = MAX_LEVEL,
    storage: Any = None,
) -> Graph:
    """Build a graph; by all threads.

    Args:
        vectors: float32 (n, dim), C-contiguous and finite; for cosine normalised.
        metric: "l2", "cosine" or "dot".
        m: Neighbours of a vector at most, on level 0 twice as many; 2 or more.
        ef_construction: Candidates that are kept while a vector looks for its neighbours.
        max_level: Levels at most.
        storage: A trained faiss index without vectors whose distances the graph is built by; it gets the vectors.
            None: exact distances.

    Raises:
        InvalidInputError: A parameter makes no sense.
    """
    _check_parameter("m", m, 2, MOST_NEIGHBORS)
    _check_parameter("ef_construction", ef_construction, 1, 1 << 20)
    _check_parameter("max_level", max_level, 1, _MOST_LEVELS)
    kept = storage if storage is not None else flat_storage(vectors.shape[1], metric)
    index = faiss.IndexHNSW(kept, m)
    index.hnsw.efConstruction = ef_construction
    chances = faiss.vector_to_array(index.hnsw.assign_probas)[:max_level]
    faiss.copy_array_to_vector(np.ascontiguousarray(chances), index.hnsw.assign_probas)
    if len(vectors):
        index.add(vectors)
    return graph_of(index)


def graph_of(index: Any) -> Graph:
    """The graph of a faiss IndexHNSW, copied."""
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
    """A faiss IndexHNSW that walks over a graph. It does not keep `storage` alive: the caller does.

    Args:
        storage: faiss index that holds the vectors; its metric is that of the walks.
        graph: Over just these vectors.
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


def flat_storage(dim: int, metric: str) -> Any:
    """A faiss index of vectors as they are; cosine is the Euclidean distance of normalised vectors."""
    return faiss.IndexFlatIP(dim) if metric == "dot" else faiss.IndexFlatL2(dim)


def _parsed(text: str, where: object) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptError("metadata of graphs is no JSON", where=where, found=text[:80]) from error


def _metadata(text: object, where: object) -> GraphMetadata:
    if not isinstance(text, str):
        raise CorruptError("metadata of a graph", where=where, expected="a text", found=type(text).__name__)
    if not text:
        return GraphMetadata(0, ())
    found = _parsed(text, where)
    if not isinstance(found, dict):
        raise CorruptError("metadata of a graph", where=where, expected="an object", found=text[:80])
    entry, offsets, params = found.get("entry_point"), found.get("level_offsets"), found.get("params")
    if type(entry) is not int or not isinstance(offsets, list) or any(type(n) is not int for n in offsets):
        raise CorruptError("metadata of a graph", where=where, expected="entry_point, level_offsets", found=text[:80])
    if offsets and (offsets[0] != 0 or offsets[-1] >= 1 << 40 or any(a > b for a, b in pairwise(offsets))):
        raise CorruptError("level offsets", where=where, expected="rising from 0", found=str(offsets)[:80])
    return GraphMetadata(entry, tuple(offsets), MappingProxyType(params if isinstance(params, dict) else {}))


def _bounds(offsets: tuple[int, ...]) -> list[tuple[int, int]]:
    """First and last row of each level, without the empty ones at the end."""
    bounds = list(pairwise(offsets))
    while bounds and bounds[-1][0] == bounds[-1][1]:
        bounds.pop()
    return bounds


def _plain(array: pa.Array, where: object) -> NDArray[Any]:
    if array.null_count or array.type != pa.uint32():
        raise CorruptError("numbers of vectors", where=where, expected="uint32, none null", found=array.type)
    numbers: NDArray[Any] = array.to_numpy()
    return numbers


def _lists(array: pa.Array, where: object) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """First item, number of items of each list, and all items."""
    if array.null_count or array.type.value_type != pa.uint32():
        raise CorruptError("lists of neighbours", where=where, expected="lists of uint32", found=array.type)
    bounds = array.offsets.to_numpy().astype(np.int64)
    return bounds[:-1], np.diff(bounds), _plain(array.values, where)


def _levels(
    numbers: NDArray[np.int64], bounds: list[tuple[int, int]], num_vectors: int, where: object
) -> NDArray[np.int64]:
    """On how many levels each vector is."""
    first = bounds[0][1] if bounds else 0
    if first != num_vectors or not np.array_equal(numbers[:first], np.arange(first)):
        raise CorruptError("level 0 of a graph", where=where, expected=f"{num_vectors} vectors in order", found=first)
    if len(bounds) > _MOST_LEVELS:
        raise CorruptError("levels of a graph", where=where, expected=f"<= {_MOST_LEVELS}", found=len(bounds))
    levels = np.ones(num_vectors, np.int64)
    for level, (low, high) in enumerate(bounds[1:], 1):
        members = numbers[low:high]
        if (members >= num_vectors).any() or (levels[members] != level).any():
            raise CorruptError(f"level {level} of a graph", where=where, expected="vectors of the level below")
        levels[members] = level + 1
        if np.count_nonzero(levels > level) != len(members):
            raise CorruptError(f"level {level} of a graph", where=where, expected="each vector once")
    return levels


def _check_neighbors(found: NDArray[np.int64], levels: NDArray[np.int64], level: int, where: object) -> None:
    if (found >= len(levels)).any() or (level and (levels[found] <= level).any()):
        raise CorruptError(f"neighbours on level {level} of a graph", where=where, expected="vectors of this level")


def _level_rows(
    graph: Graph, members: NDArray[np.int64], level: int, vectors: NDArray[np.float32], metric: str
) -> pa.RecordBatch:
    low, high = int(graph.room[level]), int(graph.room[level + 1])
    places = (graph.offsets[members].astype(np.int64) + low)[:, None] + np.arange(high - low)
    block = graph.neighbors[places].astype(np.int64)
    there = block >= 0
    counts = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    far = _distances(vectors, np.ascontiguousarray(vectors[members]), block, metric)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(members.astype(np.uint32)),
            pa.ListArray.from_arrays(pa.array(counts), pa.array(block[there].astype(np.uint32))),
            pa.ListArray.from_arrays(pa.array(counts), pa.array(far[there])),
        ],
        schema=GRAPH_SCHEMA,
    )


def _distances(
    vectors: NDArray[np.float32], mine: NDArray[np.float32], block: NDArray[np.int64], metric: str
) -> NDArray[np.float32]:
    """Distances of vectors to their neighbours; anything where there is none (-1)."""
    far = np.zeros(block.shape, np.float32)
    ask = _FAISS.fvec_inner_products_by_idx if metric == "dot" else _FAISS.fvec_L2sqr_by_idx
    ids = np.ascontiguousarray(block)
    ask(
        faiss.swig_ptr(far),
        faiss.swig_ptr(mine),
        faiss.swig_ptr(vectors),
        faiss.swig_ptr(ids),
        vectors.shape[1],
        len(mine),
        block.shape[1],
    )
    if metric == "dot":
        np.subtract(1, far, out=far)
    elif metric == "cosine":
        far *= 0.5
    return far


def _check_parameter(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInputError(name, expected=f"{least} … {most}", found=value)
