"""The interface of open vector segments, and the parameters and results of their searches.

The positions of vectors in a segment are 0 … num_rows - 1, in storage order. `rows` returns their row ids or addresses.
Distances match Lance's `_distance`: the squared Euclidean distance for l2, 1 - cosine similarity for cosine, 1 - inner
product for dot, and the number of different bits for hamming.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.open import VectorFiles

Queries = NDArray[np.float32]

METRICS: Final = ("l2", "cosine", "dot", "hamming")


@dataclass(frozen=True)
class Probe:
    """The extent of a search.

    Attributes:
        nprobes: Number of partitions to search first.
        max_nprobes: Maximum number of partitions to search while fewer than k rows are found. None for all partitions.
        ef: Number of candidates that a graph walk keeps. By default, it is derived from k.
        lower: Inclusive lower bound of distances. None if unbounded.
        upper: Exclusive upper bound of distances. None if unbounded.
        share: Share of the vectors that may be found, 0 to 1. If it is set, a search with a filter that is tied to the
            vectors continues beyond the settings, which assume randomly allowed vectors. None to keep to the settings.
        recall: Share of the neighbours to find if the filter is tied to the vectors, 0 to 1. With 1, all partitions
            with allowed vectors are searched.
        is_alone: Whether each query is searched like a single query. For larger batches, all vectors of a graph
            partition may be compared, which finds more neighbours. Settings are measured with single queries.
    """

    nprobes: int = 20
    max_nprobes: int | None = None
    ef: int | None = None
    lower: float | None = None
    upper: float | None = None
    share: float | None = None
    recall: float = 1.0
    is_alone: bool = False


@dataclass(frozen=True)
class Hits:
    """Neighbours of some queries, nearest first.

    Attributes:
        distances: float32 (queries, k), inf for missing neighbours.
        positions: int64 (queries, k), -1 for missing neighbours.
    """

    distances: NDArray[np.float32]
    positions: NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """The properties of a segment that determine the cost of a search.

    Attributes:
        num_rows: Number of vectors.
        num_partitions: Number of partitions.
        has_graphs: Whether partitions are searched by graph walks instead of being compared as a whole.
        code_bytes: Bytes read per vector.
        table_bytes: Size of the codebook in bytes. A search converts the codebook to one distance table per partition,
            in which code bytes are looked up. 0 if codes are compared directly.
        is_fast: Whether codes are compared by faiss's fast scan.
        is_coarse: Whether distances are therefore less precise than the codes.
    """

    num_rows: int
    num_partitions: int
    has_graphs: bool
    code_bytes: int
    table_bytes: int = 0
    is_fast: bool = False
    is_coarse: bool = False


class SingleSearch(Protocol):
    """A search for one query, with everything prepared that does not depend on the query. Thread-safe."""

    def nearest(self, query: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """Return the nearest neighbours, ordered up to the last bits of their distances.

        Args:
            query: float32 (dim,), finite.

        Returns:
            Distances, float32 (k,), and positions, int64 (k,). None if the search finds fewer than k vectors.
        """


class VectorIndex(Protocol):
    """An open vector segment. Thread-safe. Reads are cached within limits.

    Corrupt files raise a LanceDuckError when they are opened or searched.

    Attributes:
        metric: One of `METRICS`.
        dim: Number of dimensions.
        num_rows: Number of vectors.
        is_exact: Whether distances are computed from the vectors themselves (flat storage). If not, re-ranking improves
            them.
        files: Files of the segment.
    """

    files: VectorFiles
    metric: str
    dim: int
    num_rows: int
    is_exact: bool

    @property
    def shape(self) -> Shape:
        """The properties that determine the cost of a search."""

    def rows(self) -> NDArray[np.uint64]:
        """Return the row id or address of each position: uint64 (num_rows,). Read once and cached; do not modify."""

    def search(self, queries: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe) -> Hits:
        """Return the nearest neighbours of queries.

        Args:
            queries: float32 (queries, dim), finite, C-contiguous.
            k: Number of neighbours per query, at least 1. May exceed the number of vectors.
            allowed: bool (num_rows,), whether each position may be found. None if all positions may be found. The
                search continues in further partitions until it finds k allowed vectors, or reaches
                `probe.max_nprobes`.
            probe: Extent of the search.
        """

    def walk(self, k: int, probe: Probe) -> SingleSearch | None:
        """Return what finds the neighbours that `search` finds for a single query without a filter, but faster.

        The segment caches the result as long as the partition that it searches. Callers refer to it weakly.

        Args:
            k: Number of neighbours, at least 1 and at most the number of vectors.
            probe: Extent of the search.

        Returns:
            The search, or None if the segment only has `search`.
        """

    def is_tied(self, allowed: NDArray[np.bool_]) -> bool:
        """Return whether the share of allowed vectors differs between partitions by more than chance explains.

        Args:
            allowed: bool (num_rows,): whether each position may be found.
        """

    def partition_ranks(self, queries: Queries, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rank of each vector's partition for a query, which is the number of nearer partitions.

        Args:
            queries: float32 (queries, dim), finite, C-contiguous.
            positions: int64 (queries, m), positions of vectors. The rank of -1 is the number of partitions.

        Returns:
            int64 (queries, m).
        """

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the segment with the fields of pylance's index_statistics."""

    def prewarm(self) -> None:
        """Read all data that searches use, and cache it within limits."""

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
