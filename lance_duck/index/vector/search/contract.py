"""The interface of open vector segments, and the parameters and results of their searches.

Vectors of a segment are numbered by position, 0 … num_rows - 1, in storage order; `rows` returns their row ids or
addresses. Distances match Lance's `_distance`: squared Euclidean for l2, 1 - cosine similarity, 1 - inner product for
dot, number of different bits for hamming.
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
        max_nprobes: Maximum number of partitions to search while fewer than k rows are found. None for all.
        ef: Number of candidates that a graph walk keeps. None selects a number that suits k.
        lower: Inclusive lower bound of distances. None if unbounded.
        upper: Exclusive upper bound of distances. None if unbounded.
        share: Share of the vectors that may be found, 0 to 1, if the settings assume randomly allowed vectors. If the
            filter is tied to the vectors, the search continues. None to keep to the settings.
        recall: Share of the neighbours to find if the filter is tied to the vectors, 0 to 1. With 1, all partitions
            with allowed vectors are searched.
        is_alone: Whether each query is searched as if it were the only one. In larger batches, a graph partition may be
            compared as a whole, which finds more. Settings are measured with single queries.
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
        table_bytes: Size in bytes of the codebook. A search turns it into a distance table per partition, and looks up
            code bytes there. 0 if codes are compared directly.
    """

    num_rows: int
    num_partitions: int
    has_graphs: bool
    code_bytes: int
    table_bytes: int = 0


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
        """The properties that the work of a search depends on."""

    def rows(self) -> NDArray[np.uint64]:
        """Return the row id or address of each position: uint64 (num_rows,). Read once and cached; do not modify."""

    def search(self, queries: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe) -> Hits:
        """Return the nearest neighbours of queries.

        Args:
            queries: float32 (queries, dim), finite, C-contiguous.
            k: Number of neighbours per query, at least 1. May exceed the number of vectors.
            allowed: bool (num_rows,), whether each position may be found. None if all may. The search continues in
                further partitions until it finds k of them or reaches `probe.max_nprobes`.
            probe: Extent of the search.
        """

    def is_tied(self, allowed: NDArray[np.bool_]) -> bool:
        """Return whether partitions differ in their share of allowed vectors by more than chance explains.

        Args:
            allowed: bool (num_rows,): whether each position may be found.
        """

    def partition_ranks(self, queries: Queries, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many partitions are nearer to a query than a vector's partition, and searched before it.

        Args:
            queries: float32 (queries, dim), finite, C-contiguous.
            positions: int64 (queries, m), positions of vectors. -1 gets the number of partitions as its rank.

        Returns:
            int64 (queries, m).
        """

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of a segment, like pylance's index_statistics."""

    def prewarm(self) -> None:
        """Read all that searches read, and cache it."""

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
