"""Binary vector searches. numpy compares each query with all vectors of its nearest partitions.

flat    fixed_size_list<uint8, dim>, partition by partition; centroids have the same type

These searches do not use graphs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.cache import SizedCache
from lance_duck.errors import InvalidInputError
from lance_duck.index.vector.costs import KEPT_BYTES
from lance_duck.index.vector.graph.rows import graphs_of
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.chance import AllowedCounts, are_few
from lance_duck.index.vector.search.contract import Hits, Probe, Queries, Shape
from lance_duck.index.vector.search.figures import figures
from lance_duck.index.vector.search.ranks import partition_ranks


class HammingIndex:
    """An open segment of uint8 vectors: a `VectorIndex`. A distance is the number of different bits.

    Attributes:
        metric: "hamming".
        dim: Size of a vector, in bytes.
        num_rows: Number of vectors.
        is_exact: True.
        files: Files of the segment.
        graphs: Metadata of the graph of each partition. [] if the index type does not have graphs.

    Args:
        files: Files of the segment.
        limit: Cache size for partitions, in bytes.

    Raises:
        CorruptError: The metadata of the graphs contradicts the rows of the file.
    """

    metric = "hamming"
    is_exact = True

    def __init__(self, files: VectorFiles, limit: int = KEPT_BYTES) -> None:
        self.files = files
        self.graphs = graphs_of(files)
        self.dim = files.dim
        self.num_rows = files.num_rows
        self._codes: SizedCache[NDArray[np.uint8]] = SizedCache(limit, lambda codes: codes.nbytes)
        self._allowed_counts = AllowedCounts(files.partitions)

    def rows(self) -> NDArray[np.uint64]:
        """Return the row id or address of each position: uint64 (num_rows,). Read once and cached; do not modify."""
        return self.files.rows()

    def search(self, queries: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe) -> Hits:
        """Return the nearest neighbours. See `contract.VectorIndex.search`. Queries contain whole numbers, 0 … 255."""
        if k < 1:
            raise InvalidInputError("k", expected="at least 1", found=k)
        if allowed is not None and allowed.shape != (self.num_rows,):
            raise InvalidInputError(
                "the allowed positions have the wrong shape", expected=self.num_rows, found=allowed.shape
            )
        bit_queries = self._bits_of(queries)
        hits = Hits(np.full((len(bit_queries), k), np.inf, np.float32), np.full((len(bit_queries), k), -1, np.int64))
        for row, query in enumerate(bit_queries):
            self._search(query, allowed, probe, hits.distances[row], hits.positions[row])
        return hits

    def walk(self, k: int, probe: Probe) -> None:
        """Return None, because the segment has no graph."""

    def is_tied(self, allowed: NDArray[np.bool_]) -> bool:
        """Return whether a filter is tied to the vectors. See `contract.VectorIndex.is_tied`."""
        return self._allowed_counts.are_tied(allowed)

    def partition_ranks(self, queries: Queries, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ranks of partitions. See `contract.VectorIndex.partition_ranks`."""

        def nearest_first(batch: NDArray[np.uint8]) -> NDArray[np.int64]:
            return np.stack([self._partitions_of(query) for query in batch])

        return partition_ranks(self.files, self._bits_of(queries), positions, nearest_first)

    @property
    def shape(self) -> Shape:
        """The properties that determine the cost of a search."""
        return Shape(self.num_rows, self.files.num_partitions, False, self.dim)

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the segment with the fields of pylance's index_statistics."""
        return figures(self.files, self.graphs)

    def prewarm(self) -> None:
        """Read all data that searches use, and cache it within the limit."""
        self.rows()
        for partition in range(self.files.num_partitions):
            self._partition(partition)

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.files.nbytes + self._codes.nbytes

    def _search(
        self,
        query: NDArray[np.uint8],
        allowed: NDArray[np.bool_] | None,
        probe: Probe,
        distances: NDArray[np.float32],
        positions: NDArray[np.int64],
    ) -> None:
        """Write the neighbours of one query to `distances` and `positions`."""
        k = len(distances)
        order = self._partitions_of(query).tolist()
        max_partitions = len(order) if probe.max_nprobes is None else max(probe.max_nprobes, 1)
        pieces: list[NDArray[np.int64]] = []
        results: list[NDArray[np.float32]] = []
        count = num_seen = 0
        is_far = False
        for turn, partition in enumerate(order[:max_partitions]):
            if turn == probe.nprobes and probe.share is not None and allowed is not None:
                is_far = bool(are_few(np.array(count), np.array(probe.share * num_seen)))
            if turn >= probe.nprobes and count >= k and not is_far:
                break
            rows = self.files.partitions.rows(partition)
            far = _bits(self._partition(partition), query)
            good = np.ones(len(far), np.bool_) if allowed is None else allowed[rows].copy()
            if probe.lower is not None:
                good &= far >= np.float32(probe.lower)
            if probe.upper is not None:
                good &= far < np.float32(probe.upper)
            num_seen += len(far)
            places = np.flatnonzero(good)
            pieces.append(places + rows.start)
            results.append(far[places])
            count += len(places)
        if count:
            all_, places = np.concatenate(results), np.concatenate(pieces)
            best = np.lexsort((places, all_))[:k]
            distances[: len(best)] = all_[best]
            positions[: len(best)] = places[best]

    def _bits_of(self, queries: Queries) -> NDArray[np.uint8]:
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise InvalidInputError("the query vector has the wrong length", expected=self.dim, found=queries.shape[-1])
        with np.errstate(invalid="ignore"):
            bits = queries.astype(np.uint8)
        if not np.array_equal(bits, queries):
            raise InvalidInputError("query", expected="whole numbers, 0 … 255")
        return bits

    def _partitions_of(self, query: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return all partitions, nearest first."""
        return np.argsort(_bits(self.files.centroids, query), kind="stable")

    def _partition(self, partition: int) -> NDArray[np.uint8]:
        return self._codes.get(partition, lambda: self.files.codes([partition])[0])


def _bits(vectors: NDArray[np.uint8], query: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the number of bits in which each vector differs from the query."""
    distances: NDArray[np.float32] = np.bitwise_count(vectors ^ query).sum(axis=1, dtype=np.float32)
    return distances
