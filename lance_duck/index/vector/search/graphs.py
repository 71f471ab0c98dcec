"""Graph searches. For each query, faiss finds the nearest partitions, and walks their graphs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.cache import SizedCache
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.index.files import INDEX_BLOCK_ROWS
from lance_duck.index.vector.costs import KEPT_BYTES, LEAST_EF
from lance_duck.index.vector.graph.hnsw import Graph
from lance_duck.index.vector.graph.rows import graphs_of, read_graph
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.metric import has_residual, normalized
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.best_hits import BestHits
from lance_duck.index.vector.search.centroids import near_partitions
from lance_duck.index.vector.search.chance import AllowedCounts
from lance_duck.index.vector.search.contract import Hits, Probe, Queries, Shape
from lance_duck.index.vector.search.figures import figures
from lance_duck.index.vector.search.frontier import Frontier, Spread, faiss_limits, sampled_places
from lance_duck.index.vector.search.graph_partition import Distances, GraphPartition, Int64s
from lance_duck.index.vector.search.ranks import partition_ranks
from lance_duck.index.vector.search.walk import GraphWalk
from lance_duck.index.vector.threads import one_thread, safe_after_fork


class GraphIndex:
    """An open segment with graphs: a `VectorIndex`.

    Attributes:
        metric: "l2", "cosine" or "dot".
        dim: Number of dimensions.
        num_rows: Number of vectors.
        is_exact: Whether the storage is flat.
        files: Files of the segment.
        graphs: Metadata of the graph of each partition.

    Args:
        files: Files of the segment.
        limit: Cache size for partitions, in bytes. The last used partition is cached even if it is larger.

    Raises:
        CorruptError: The metadata of the graphs contradicts the rows of the file.
        UnsupportedError: The metric is hamming.
    """

    def __init__(self, files: VectorFiles, limit: int = KEPT_BYTES) -> None:
        if files.metric == "hamming" or files.graph_partitions is None:
            raise UnsupportedError(
                "graphs do not support the hamming metric", where=files.index.path, expected="l2, cosine, dot"
            )
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
        self._known_spread: Spread | None = None

    def rows(self) -> NDArray[np.uint64]:
        """Return the row id or address of each position: uint64 (num_rows,). Read once and cached; do not modify."""
        return self.files.rows()

    @safe_after_fork
    def search(self, queries: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe) -> Hits:
        """Return the nearest neighbours. See `contract.VectorIndex.search`."""
        vectors = self._comparable(queries, k, allowed)
        best = BestHits(len(vectors), k, self.num_rows)
        if not self.num_rows or not len(vectors):
            return best.hits()
        if self.files.num_partitions == 1:
            best.put(*self._look(0, vectors, best.k, allowed, probe))
            return best.hits()
        if allowed is not None and probe.share is not None and self.is_tied(allowed):
            visits = self._tied_visits(vectors, best, allowed, probe, np.arange(len(vectors)))
        else:
            visits = self._visits(vectors, best, allowed, probe)
        for partition, mine in visits:
            if allowed is None or allowed[self.files.partitions.rows(partition)].any():
                result = self._look(partition, np.ascontiguousarray(vectors[mine]), best.k, allowed, probe)
                best.merge(mine, *result)
        return best.hits()

    def walk(self, k: int, probe: Probe) -> GraphWalk | None:
        """Return a prepared search. See `contract.VectorIndex.walk`."""
        has_residual_codes = self.files.storage == "PQ" and has_residual(self.metric)
        is_bounded = probe.lower is not None or probe.upper is not None
        if self.files.num_partitions != 1 or has_residual_codes or is_bounded or probe.is_alone:
            return None
        return self._partition(0).walk(k, probe.ef or max(k + k // 2, LEAST_EF))

    def is_tied(self, allowed: NDArray[np.bool_]) -> bool:
        """Return whether a filter is tied to the vectors. See `contract.VectorIndex.is_tied`."""
        return self._allowed_counts.are_tied(allowed)

    @safe_after_fork
    def partition_ranks(self, queries: Queries, positions: Int64s) -> Int64s:
        """Return the ranks of partitions. See `contract.VectorIndex.partition_ranks`."""
        count = self.files.num_partitions
        vectors = self._comparable(queries, 1, None)
        return partition_ranks(
            self.files, vectors, positions, lambda batch: near_partitions(self._centroids, batch, count)[1]
        )

    @property
    def shape(self) -> Shape:
        """The properties that determine the cost of a search."""
        width = self.files.code_width * (4 if self.is_exact else 1)
        return Shape(self.num_rows, self.files.num_partitions, True, width)

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the segment with the fields of pylance's index_statistics."""
        return figures(self.files, self.graphs)

    @safe_after_fork
    def prewarm(self) -> None:
        """Read all data that searches use, and cache it within the limit."""
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
            raise InvalidInputError("the query vector has the wrong length", expected=self.dim, found=queries.shape[-1])
        if k < 1:
            raise InvalidInputError("k", expected="at least 1", found=k)
        if allowed is not None and (allowed.shape != (self.num_rows,) or allowed.dtype != np.bool_):
            raise InvalidInputError(
                "the allowed positions have the wrong shape", expected=self.num_rows, found=allowed.shape
            )
        vectors = np.ascontiguousarray(queries, np.float32)
        return np.ascontiguousarray(normalized(vectors)) if self.metric == "cosine" else vectors

    def _visits(
        self, vectors: Queries, best: BestHits, allowed: NDArray[np.bool_] | None, probe: Probe
    ) -> Iterator[tuple[int, Int64s]]:
        """Yield partitions with the queries that search them: first the nearest ones, then more for some queries.

        Queries search more partitions if they have fewer than k hits, or if their allowed neighbours may be in farther
        partitions.
        """
        count = self.files.num_partitions
        max_partitions = count if probe.max_nprobes is None else min(max(probe.max_nprobes, 1), count)
        first, last = 0, min(max(probe.nprobes, 1), max_partitions)
        query_ids = np.arange(len(vectors))
        while len(query_ids) and first < last:
            _, order = near_partitions(self._centroids, np.ascontiguousarray(vectors[query_ids]), last)
            yield from self._by_partition(query_ids, order[:, first:last])
            if not first and allowed is not None and probe.share is not None and last < max_partitions:
                far = self._allowed_counts.are_few(allowed, probe.share, order)
                yield from self._tied_visits(vectors, best, allowed, probe, query_ids[far])
                query_ids = query_ids[~far]
            query_ids = query_ids[best.are_short(query_ids)]
            first, last = last, min(2 * last, max_partitions)

    def _tied_visits(
        self, vectors: Queries, best: BestHits, allowed: NDArray[np.bool_], probe: Probe, ids: Int64s
    ) -> Iterator[tuple[int, Int64s]]:
        """Yield partitions with the queries that search them, for a filter that is tied to the vectors."""
        counts, count = self._allowed_counts.of(allowed), self.files.num_partitions
        step = max(INDEX_BLOCK_ROWS // count, 1)
        for numbers in (ids[i : i + step] for i in range(0, len(ids), step)):
            batch = np.ascontiguousarray(vectors[numbers])
            near, order = near_partitions(self._centroids, batch, count)
            distances = np.full_like(near, np.inf)  # faiss omits infinite distances
            np.put_along_axis(distances, order, -near if self._is_dot else near, axis=1)
            lengths = np.linalg.norm(batch, axis=1) if self._is_dot else None
            frontier = Frontier(distances, lengths, counts, self._spread(), best.k, probe)
            partitions = frontier.first()
            while partitions.shape[1]:
                yield from self._by_partition(numbers, partitions)
                partitions = frontier.further(faiss_limits(best.limits[numbers], self.metric, probe))

    def _by_partition(self, query_ids: Int64s, partitions: Int64s) -> Iterator[tuple[int, Int64s]]:
        """Yield each non-empty partition with the queries that search it.

        Args:
            query_ids: int64 (queries,).
            partitions: int64 (queries, n): partitions of each query, padded with -1.
        """
        for partition in distinct(partitions[partitions >= 0]).tolist():
            if self.files.partitions.lengths[partition]:
                yield partition, query_ids[(partitions == partition).any(axis=1)]

    def _spread(self) -> Spread:
        """Return the spread of vectors around their centroids, measured on a sample on first use."""
        if self._known_spread is None:
            places = sampled_places(self.files.partitions)
            owners = np.array([partition for partition, _ in places])
            vectors = np.empty((len(places), self.dim), np.float32)
            for partition in distinct(owners).tolist():
                is_here = owners == partition
                ids = np.array([place for owner, place in places if owner == partition])
                vectors[is_here] = self._partition(partition).decode(ids)
            centroids = np.ascontiguousarray(self.files.centroids[owners], np.float32)
            if self.files.storage == "PQ" and has_residual(self.metric):
                vectors += centroids
            self._known_spread = Spread.of(vectors, centroids, is_dot=self._is_dot)
        return self._known_spread

    def _look(
        self, partition: int, vectors: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe
    ) -> tuple[Distances, Int64s]:
        """Return distances and positions of the k nearest vectors in a partition. Positions are padded with -1."""
        rows = self.files.partitions.rows(partition)
        mine = None if allowed is None else allowed[rows]
        if self.files.storage == "PQ" and has_residual(self.metric):
            vectors = vectors - self.files.centroids[partition]
        ef = probe.ef or max(k + k // 2, LEAST_EF)
        opened, candidates = self._partition(partition), k
        while True:
            with one_thread(probe.is_alone):  # for a few short walks, threads would mostly wait for each other
                distances, positions = opened.search(vectors, candidates, mine, ef, is_alone=probe.is_alone)
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
        """Convert faiss's distances to Lance's, in place."""
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
