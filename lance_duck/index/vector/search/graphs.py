"""Searches of graphs: for each query faiss finds the nearest partitions, and walks over the graph of each of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from lance_duck.cache import SizedCache
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.index.vector.costs import KEPT_BYTES, LEAST_EF
from lance_duck.index.vector.graph.hnsw import Graph
from lance_duck.index.vector.graph.rows import graphs_of, read_graph
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.metric import normalized
from lance_duck.index.vector.search.chance import AllowedCounts
from lance_duck.index.vector.search.contract import Hits, Probe, Queries, Shape
from lance_duck.index.vector.search.figures import figures
from lance_duck.index.vector.search.graph_partition import Distances, GraphPartition, Places
from lance_duck.index.vector.search.ranks import partition_ranks
from lance_duck.index.vector.storage.files import VectorFiles
from lance_duck.index.vector.storage.pq import has_residual
from lance_duck.index.vector.threads import safe_after_fork


class GraphIndex:
    """An open segment with graphs: a `VectorIndex`.

    Attributes:
        metric: "l2", "cosine" or "dot".
        dim: Numbers of a vector.
        num_rows: Number of vectors.
        is_exact: Whether the storage is flat.
        files: Files of the segment.
        graphs: Metadata of the graph of each partition.

    Args:
        files: Files of the segment.
        limit: Bytes of partitions that are cached; the one used last is cached even if it is larger.

    Raises:
        CorruptError: The metadata of the graphs contradict the rows of the file.
        UnsupportedError: The metric is hamming.
    """

    def __init__(self, files: VectorFiles, limit: int = KEPT_BYTES) -> None:
        if files.metric == "hamming" or files.graph_partitions is None:
            raise UnsupportedError("graphs of bits", where=files.index.path, expected="l2, cosine, dot")
        self.files = files
        self.metric = files.metric
        self.dim = files.dim
        self.num_rows = files.num_rows
        self.is_exact = files.storage == "FLAT"
        self.graphs = graphs_of(files)
        self._partitions: SizedCache[GraphPartition] = SizedCache(limit, lambda partition: partition.nbytes, grows=True)
        self._alive: WeakValueDictionary[int, GraphPartition] = WeakValueDictionary()
        self._centroids = faiss.IndexFlat(files.dim, faiss.METRIC_INNER_PRODUCT if self._is_dot else faiss.METRIC_L2)
        self._centroids.add(np.ascontiguousarray(files.centroids))
        self._allowed_counts = AllowedCounts(files.partitions)

    def rows(self) -> NDArray[np.uint64]:
        """Return the name of each row, uint64, by position; read once, cached, not to be changed."""
        return self.files.rows()

    @safe_after_fork
    def search(self, queries: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe) -> Hits:
        """Return the nearest neighbours; see `contract.VectorIndex.search`."""
        vectors = self._comparable(queries, k, allowed)
        best = _Best(len(vectors), k, self.num_rows)
        if not self.num_rows or not len(vectors):
            return best.hits()
        if self.files.num_partitions == 1:
            best.put(*self._look(0, vectors, best.k, allowed, probe))
            return best.hits()
        for partition, mine in self._visits(vectors, best, allowed, probe):
            if allowed is None or allowed[self.files.partitions.rows(partition)].any():
                result = self._look(partition, np.ascontiguousarray(vectors[mine]), best.k, allowed, probe)
                best.merge(mine, *result)
        return best.hits()

    @safe_after_fork
    def partition_ranks(self, queries: Queries, positions: Places) -> Places:
        """Return ranks of partitions; see `contract.VectorIndex.partition_ranks`."""
        count = self.files.num_partitions
        vectors = self._comparable(queries, 1, None)
        return partition_ranks(self.files, vectors, positions, lambda batch: self._centroids.search(batch, count)[1])

    @property
    def shape(self) -> Shape:
        """The properties that the work of a search depends on."""
        width = self.files.code_width * (4 if self.is_exact else 1)
        return Shape(self.num_rows, self.files.num_partitions, True, width)

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of a segment, as pylance's index_statistics does."""
        return figures(self.files, self.graphs)

    @safe_after_fork
    def prewarm(self) -> None:
        """Read all that searches read, and cache as much of it as the limit allows."""
        self.rows()
        for partition in np.flatnonzero(self.files.partitions.lengths).tolist():
            self._partition(partition).walker()

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        total = sum(partition.nbytes for partition in list(self._alive.values()))
        return self.files.nbytes + int(self.files.centroids.nbytes) + total

    @property
    def _is_dot(self) -> bool:
        return self.metric == "dot"

    def _comparable(self, queries: Queries, k: int, allowed: NDArray[np.bool_] | None) -> Queries:
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise InvalidInputError("dimension of a query", expected=self.dim, found=queries.shape[-1])
        if k < 1:
            raise InvalidInputError("k", expected="at least 1", found=k)
        if allowed is not None and (allowed.shape != (self.num_rows,) or allowed.dtype != np.bool_):
            raise InvalidInputError("allowed positions", expected=self.num_rows, found=allowed.shape)
        vectors = np.ascontiguousarray(queries, np.float32)
        return np.ascontiguousarray(normalized(vectors)) if self.metric == "cosine" else vectors

    def _visits(
        self, vectors: Queries, best: _Best, allowed: NDArray[np.bool_] | None, probe: Probe
    ) -> Iterator[tuple[int, Places]]:
        """Yield partitions with the queries to search there; then further ones for queries that need them.

        These are queries with fewer than k hits, and those whose allowed neighbours lie farther than the first ones.
        """
        count = self.files.num_partitions
        max_partitions = count if probe.max_nprobes is None else min(max(probe.max_nprobes, 1), count)
        first, last = 0, min(max(probe.nprobes, 1), max_partitions)
        query_ids = np.arange(len(vectors))
        far = np.zeros(len(vectors), np.bool_)
        while len(query_ids) and first < last:
            _, order = self._centroids.search(np.ascontiguousarray(vectors[query_ids]), last)
            partitions = order[:, first:last]
            for partition in np.unique(partitions[partitions >= 0]).tolist():
                if self.files.partitions.lengths[partition]:
                    yield partition, query_ids[(partitions == partition).any(axis=1)]
            if not first and allowed is not None and probe.share is not None:
                far = self._allowed_counts.are_few(allowed, probe.share, partitions)
            query_ids = query_ids[best.are_short(query_ids) | far[query_ids]]
            first, last = last, min(2 * last, max_partitions)

    def _look(
        self, partition: int, vectors: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe
    ) -> tuple[Distances, Places]:
        """Return distances and positions of the nearest vectors of a partition; -1 at the end if fewer than k."""
        rows = self.files.partitions.rows(partition)
        mine = None if allowed is None else allowed[rows]
        if self.files.storage == "PQ" and has_residual(self.metric):
            vectors = vectors - self.files.centroids[partition]
        ef = probe.ef or max(k + k // 2, LEAST_EF)
        opened, candidates = self._partition(partition), k
        while True:
            distances, positions = opened.search(vectors, candidates, mine, ef)
            self._measure(distances)
            if probe.lower is None or distances.shape[1] < candidates:
                break
            if (np.count_nonzero(distances >= np.float32(probe.lower), axis=1) >= k).all():
                break
            candidates *= 4
        if rows.start:
            positions[positions >= 0] += rows.start
        if probe.lower is not None:
            positions[distances < np.float32(probe.lower)] = -1
        if probe.upper is not None:
            positions[distances >= np.float32(probe.upper)] = -1
        return distances, positions

    def _measure(self, distances: Distances) -> None:
        """Convert distances of faiss to those of Lance, in place."""
        if self._is_dot:
            np.subtract(1, distances, out=distances)
        elif self.metric == "cosine":
            distances *= np.float32(0.5)

    def _partition(self, partition: int) -> GraphPartition:
        return self._partitions.get(partition, partial(self._open, partition))

    def _open(self, partition: int) -> GraphPartition:
        (codes,) = self.files.codes([partition])
        opened = GraphPartition(self.files, codes, partial(self._graph, partition))
        self._alive[partition] = opened
        return opened

    def _graph(self, partition: int) -> Graph:
        index, partitions = self.files.index, self.files.graph_partitions
        assert partitions is not None
        ids, neighbors = index.read(["__vector_id", "__neighbors"], partitions.rows(partition))
        size = int(self.files.partitions.lengths[partition])
        return read_graph(self.graphs[partition], ids, neighbors, size, where=f"{index.path}: partition {partition}")


class _Best:
    """The nearest vectors of each query so far.

    Attributes:
        k: Neighbours of a query, at most the number of vectors.

    Args:
        queries: Number of queries.
        k: Neighbours of each query.
        num_rows: Number of vectors.
    """

    def __init__(self, queries: int, k: int, num_rows: int) -> None:
        self.k = min(k, num_rows)
        self._width = k
        self._distances = np.full((queries, self.k), np.inf, np.float32)
        self._positions = np.full((queries, self.k), -1, np.int64)

    def put(self, distances: Distances, positions: Places) -> None:
        """Merge in neighbours of all queries; the first ones are taken as they are, if each query has k."""
        if distances.shape[1] == self.k and (not self.k or positions.min() >= 0):
            self._distances, self._positions = distances, positions
        else:
            self.merge(np.arange(len(distances)), distances, positions)

    def merge(self, queries: Places, distances: Distances, positions: Places) -> None:
        """Merge in neighbours of some queries; a position of -1 stands for none."""
        distances = np.hstack([self._distances[queries], np.where(positions < 0, np.float32(np.inf), distances)])
        positions = np.hstack([self._positions[queries], positions])
        order = np.argsort(distances, axis=1, kind="stable")[:, : self.k]
        self._distances[queries] = np.take_along_axis(distances, order, axis=1)
        self._positions[queries] = np.take_along_axis(positions, order, axis=1)

    def are_short(self, queries: Places) -> NDArray[np.bool_]:
        """Return whether each of some queries has fewer than k neighbours."""
        short: NDArray[np.bool_] = self._positions[queries, -1] < 0
        return short

    def hits(self) -> Hits:
        """Return the neighbours; infinity and -1 where a query has fewer than k."""
        num_missing = self._width - self.k
        if not num_missing:
            return Hits(self._distances, self._positions)
        return Hits(
            np.pad(self._distances, ((0, 0), (0, num_missing)), constant_values=np.float32(np.inf)),
            np.pad(self._positions, ((0, 0), (0, num_missing)), constant_values=-1),
        )
