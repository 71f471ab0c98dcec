"""HNSW graphs as rows of Lance's files.

index.idx   rows of a partition: one per vector and level, level by level
    __vector_id u32             position of the vector in the partition; level 0 has all vectors, in order
    __neighbors list<u32>       neighbours of the vector on this level: at most 2·m on level 0, m on higher levels
    _distance list<f32>         distances of the neighbours: always written, but searches do not read them
lance:hnsw  JSON text per partition: entry_point, params {m, ef_construction, max_level, …}, level_offsets: first row of
            each level, followed by the number of rows; trailing levels may be empty; "" for a partition without vectors
            pylance before 12: vector 0 is the entry point, and has a row on every level up to max_level. level_offsets
            only count its row on level 0, so a partition has one additional row for each higher level, even if the
            level is empty otherwise

Readers validate everything that a walk depends on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.vector.graph.hnsw import EF_CONSTRUCTION, MAX_LEVEL, MOST_LEVELS, Graph, M
from lance_duck.index.vector.layout import json_integer, parsed
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.open import VectorFiles

GRAPH_SCHEMA: Final = pa.schema(
    [
        pa.field("__vector_id", pa.uint32()),
        pa.field("__neighbors", pa.list_(pa.uint32())),
        pa.field("_distance", pa.list_(pa.float32())),
    ]
)

METADATA_KEY: Final = "lance:hnsw"

_FAISS: Final[Any] = faiss  # faiss's stubs are incomplete
_SPARSEST: Final = 64  # maximum ratio of neighbour slots to neighbours
_BLOCK: Final = 1 << 16


@dataclass(frozen=True)
class GraphMetadata:
    """Metadata of the graph of one partition, from `lance:hnsw`.

    Attributes:
        entry_point: Vector at which walks begin.
        level_offsets: First row of each level, followed by the number of rows.
        params: m, ef_construction, max_level and other parameters, as written.
    """

    entry_point: int
    level_offsets: tuple[int, ...]
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        """Number of rows of all levels."""
        return self.level_offsets[-1] if self.level_offsets else 0

    def to_json(self) -> str:
        """Return the metadata as JSON, or "" if the partition does not have vectors."""
        if not self.num_rows:
            return ""
        text = {
            "entry_point": self.entry_point,
            "params": dict(self.params),
            "level_offsets": list(self.level_offsets),
        }
        return json.dumps(text, separators=(",", ":"))


@dataclass(frozen=True)
class GraphRows:
    """A graph as rows of a file.

    Attributes:
        rows: Rows with `GRAPH_SCHEMA`.
        metadata: The first row of each level, the entry point and the parameters.
    """

    rows: pa.RecordBatch
    metadata: GraphMetadata


def graph_metadata(text: str, *, where: str) -> list[GraphMetadata]:
    """Parse `lance:hnsw`, which has one entry per partition.

    Raises:
        CorruptError: The text is not valid JSON for graphs.
    """
    parts = parsed(text, list, f"{where}: {METADATA_KEY}")
    return [_metadata(part, where) for part in parts]


def graphs_of(files: VectorFiles) -> list[GraphMetadata]:
    """Return the metadata of the graphs of a segment's partitions. Returns [] if its kind does not have graphs.

    Raises:
        CorruptError: The metadata contradicts the rows of the file.
    """
    if files.graph_partitions is None:
        return []
    where = files.index.path
    graphs = graph_metadata(files.index.metadata.get(METADATA_KEY, ""), where=where)
    lengths = files.graph_partitions.lengths.tolist()
    if len(graphs) == len(lengths):
        graphs = [_entry_counted(graph, length) for graph, length in zip(graphs, lengths, strict=True)]
    rows = [graph.num_rows for graph in graphs]
    if rows != lengths:
        raise CorruptError(
            "wrong row count of the graphs", where=where, expected=f"{files.index.num_rows}", found=str(rows)[:80]
        )
    return graphs


def metadata_text(graphs: Sequence[GraphMetadata]) -> str:
    """Return the text of `lance:hnsw` for the graphs of all partitions."""
    return json.dumps([graph.to_json() for graph in graphs], separators=(",", ":"))


def read_graph(metadata: GraphMetadata, ids: pa.Array, neighbors: pa.Array, num_vectors: int, *, where: str) -> Graph:
    """Read a graph from its rows.

    Args:
        metadata: Metadata of the graph.
        ids: uint32, `__vector_id` of the rows.
        neighbors: list<uint32>, `__neighbors` of the rows.
        num_vectors: Number of vectors of the partition.
        where: Path for error messages.

    Raises:
        CorruptError: Level 0 lacks a vector, a higher level has a vector that the level below lacks, a neighbour is not
            on the level of its vector, or the entry point is not a vector.
    """
    starts, lengths, items = _lists(neighbors, where)
    numbers = _plain(ids, where).astype(np.int64)
    if not len(ids) == len(neighbors) == metadata.num_rows:
        raise CorruptError("wrong row count of a graph", where=where, expected=metadata.num_rows, found=len(ids))
    bounds = _bounds(metadata.level_offsets)
    levels = _levels(numbers, bounds, num_vectors, where)
    if num_vectors and not 0 <= metadata.entry_point < num_vectors:
        raise CorruptError(
            "the entry point is out of range", where=where, expected=f"< {num_vectors}", found=metadata.entry_point
        )
    widths = [0, *(int(lengths[low:high].max(initial=1)) for low, high in bounds)]
    room = np.cumsum(np.array(widths, np.int64))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(room[levels])])
    if int(offsets[-1]) > _SPARSEST * (len(items) + len(ids)):
        raise CorruptError("too few neighbours in a graph", where=where, found=f"{len(items)} for {offsets[-1]}")
    filled = np.full(int(offsets[-1]), -1, np.int32)
    for level, (low, high) in enumerate(bounds):
        first, count = starts[low:high], lengths[low:high]
        edges = items[first[0] : first[-1] + count[-1]]
        _check_neighbors(edges, levels, level, where)
        if level == 0:  # all vectors in order; most rows of the file belong to this level
            filled[_taken(count, room[levels])] = edges
        else:
            places = offsets[numbers[low:high]] + room[level] - (first - first[0])
            filled[np.repeat(places, count) + np.arange(len(edges))] = edges
    return Graph(
        levels.astype(np.int32),
        room.astype(np.int32),
        offsets.astype(np.uint64),
        filled,
        metadata.entry_point if num_vectors else -1,
    )


def graph_rows(graph: Graph, vectors: NDArray[np.float32], metric: str, **params: Any) -> GraphRows:
    """Convert a graph to the rows that Lance writes.

    Args:
        graph: Graph over the vectors.
        vectors: float32 (n, dim), C-contiguous. Normalised for cosine. The rows store distances between them.
        metric: "l2", "cosine" or "dot".
        params: m, ef_construction and max_level used for the build. max_level is at least the number of levels.
    """
    parameters = {"max_level": MAX_LEVEL, "m": M, "ef_construction": EF_CONSTRUCTION, "prefetch_distance": 2, **params}
    height = len(graph.room) - 1
    parameters["max_level"] = max(int(parameters["max_level"]), height)
    batches: list[pa.RecordBatch] = []
    ends = [0]
    for level in range(height):
        members = np.flatnonzero(graph.levels > level)
        blocks = (members[first : first + _BLOCK] for first in range(0, len(members), _BLOCK))
        batches.extend(_level_rows(graph, block, level, vectors, metric) for block in blocks)
        ends.append(ends[-1] + len(members))
    ends += [ends[-1]] * (parameters["max_level"] + 1 - len(ends))
    table = pa.Table.from_batches(batches, GRAPH_SCHEMA).combine_chunks()
    rows = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], GRAPH_SCHEMA)
    return GraphRows(rows, GraphMetadata(max(graph.entry_point, 0), tuple(ends), parameters))


def _metadata(text: object, where: str) -> GraphMetadata:
    if not isinstance(text, str):
        raise CorruptError("invalid metadata of a graph", where=where, expected="a string", found=type(text).__name__)
    if not text:
        return GraphMetadata(0, ())
    metadata = parsed(text, dict, where)
    offsets, params = metadata.get("level_offsets"), metadata.get("params")
    if not isinstance(offsets, list) or any(type(n) is not int for n in offsets):
        raise CorruptError("invalid level offsets", where=where, expected="whole numbers", found=repr(offsets)[:80])
    if offsets and (offsets[0] != 0 or offsets[-1] >= 1 << 40 or any(a > b for a, b in pairwise(offsets))):
        raise CorruptError("invalid level offsets", where=where, expected="ascending from 0", found=str(offsets)[:80])
    entry = json_integer(metadata, "entry_point", 0, 1 << 32, where)
    return GraphMetadata(entry, tuple(offsets), params if isinstance(params, dict) else {})


def _entry_counted(graph: GraphMetadata, num_rows: int) -> GraphMetadata:
    """Return metadata that count the entry point's row on every level, unlike metadata from pylance before 12."""
    upper = len(graph.level_offsets) - 2
    if upper < 1 or num_rows != graph.num_rows + upper:
        return graph
    counted = (0, *(offset + level for level, offset in enumerate(graph.level_offsets[1:])))
    return replace(graph, level_offsets=counted)


def _bounds(offsets: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the first row and the end of each level, except for empty levels at the end."""
    bounds = list(pairwise(offsets))
    while bounds and bounds[-1][0] == bounds[-1][1]:
        bounds.pop()
    return bounds


def _plain(array: pa.Array, where: str) -> NDArray[Any]:
    if array.null_count or array.type != pa.uint32():
        raise CorruptError("invalid vector numbers", where=where, expected="uint32 without nulls", found=array.type)
    numbers: NDArray[Any] = array.to_numpy()
    return numbers


def _lists(array: pa.Array, where: str) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """Return the index of each list's first item, the item count of each list, and all items."""
    if array.null_count or not pa.types.is_list(array.type) or array.type.value_type != pa.uint32():
        raise CorruptError("invalid neighbour lists", where=where, expected="lists of uint32", found=array.type)
    bounds = array.offsets.to_numpy().astype(np.int64)
    return bounds[:-1], np.diff(bounds), _plain(array.values, where)


def _levels(
    numbers: NDArray[np.int64], bounds: list[tuple[int, int]], num_vectors: int, where: str
) -> NDArray[np.int64]:
    """Return the number of levels of each vector."""
    first = bounds[0][1] if bounds else 0
    if first != num_vectors or not np.array_equal(numbers[:first], np.arange(first)):
        raise CorruptError(
            "invalid level 0 of a graph", where=where, expected=f"{num_vectors} vectors in order", found=first
        )
    if len(bounds) > MOST_LEVELS:
        raise CorruptError("too many levels in a graph", where=where, expected=f"<= {MOST_LEVELS}", found=len(bounds))
    levels = np.ones(num_vectors, np.int64)
    for level, (low, high) in enumerate(bounds[1:], 1):
        members = numbers[low:high]
        if (members >= num_vectors).any() or (levels[members] != level).any():
            raise CorruptError(f"invalid level {level} of a graph", where=where, expected="vectors of the level below")
        levels[members] = level + 1
        if np.count_nonzero(levels > level) != len(members):
            raise CorruptError(f"invalid level {level} of a graph", where=where, expected="each vector once")
    return levels


def _taken(counts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return a mask of used slots: the first `counts[i]` of the `sizes[i]` slots of vector i."""
    turns = np.stack([counts, sizes - counts], axis=1).ravel()
    return np.repeat(np.tile(np.array([True, False]), len(counts)), turns)


def _check_neighbors(neighbors: NDArray[Any], levels: NDArray[np.int64], level: int, where: str) -> None:
    if int(neighbors.max(initial=0)) >= max(len(levels), 1) or (level and (levels[neighbors] <= level).any()):
        raise CorruptError(
            f"invalid neighbours on level {level} of a graph", where=where, expected="vectors of this level"
        )


def _level_rows(
    graph: Graph, members: NDArray[np.int64], level: int, vectors: NDArray[np.float32], metric: str
) -> pa.RecordBatch:
    low, high = int(graph.room[level]), int(graph.room[level + 1])
    places = (graph.offsets[members].astype(np.int64) + low)[:, None] + np.arange(high - low)
    block = graph.neighbors[places].astype(np.int64)
    is_neighbour = block >= 0
    counts = np.concatenate([[0], np.cumsum(is_neighbour.sum(axis=1))]).astype(np.int32)
    far = _distances(vectors, np.ascontiguousarray(vectors[members]), block, metric)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(members.astype(np.uint32)),
            pa.ListArray.from_arrays(pa.array(counts), pa.array(block[is_neighbour].astype(np.uint32))),
            pa.ListArray.from_arrays(pa.array(counts), pa.array(far[is_neighbour])),
        ],
        schema=GRAPH_SCHEMA,
    )


def _distances(
    vectors: NDArray[np.float32], mine: NDArray[np.float32], block: NDArray[np.int64], metric: str
) -> NDArray[np.float32]:
    """Return the distances of vectors to their neighbours. Undefined for missing neighbours (-1)."""
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
