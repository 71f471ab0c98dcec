"""The interface of open vector segments, and the parameters and results of their searches.

Vectors of a segment are numbered by position, 0 … num_rows - 1, in the order of its storage; `rows` names their rows.
Distances are those of Lance's `_distance`: squared Euclidean for l2, 1 - cosine similarity, 1 - inner product for dot,
number of different bits for hamming.
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
        nprobes: Partitions to search first.
        max_nprobes: Partitions to search at most while fewer than k rows are found; None for all.
        ef: Candidates that a walk over a graph keeps; None for a number that suits k.
        lower: Least distance of a hit; None for no bound.
        upper: Bound that distances of hits are below; None for no bound.
        share: Share of the vectors that may be found, 0 to 1, if the settings hold for vectors that are allowed by
            chance: where the filter is tied to the vectors, the search goes on. None to keep to the settings.
        recall: Share of the neighbours to find where the filter is tied to the vectors, 0 to 1; 1 for a search of all
            partitions with allowed vectors.
        is_alone: Whether each query is searched for as if it were the only one: of many at once, a partition of a graph
            may be compared as a whole, which finds more. Settings are measured so.
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
        distances: float32 (queries, k); inf where there is no neighbour.
        positions: int64 (queries, k); -1 where there is no neighbour.
    """

    distances: NDArray[np.float32]
    positions: NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """The properties of a segment that the work of a search depends on.

    Attributes:
        num_rows: Number of vectors.
        num_partitions: Number of partitions.
        has_graphs: Whether partitions are searched by walks over graphs, not compared as a whole.
        code_bytes: Bytes that are read of a vector.
        table_bytes: Bytes of the codebook, from which a search makes a table of distances for each partition and looks
            up the bytes of codes there; 0 if codes are compared directly.
    """

    num_rows: int
    num_partitions: int
    has_graphs: bool
    code_bytes: int
    table_bytes: int = 0


class VectorIndex(Protocol):
    """An open vector segment. Safe to use from several threads; reads are cached within limits.

    Broken files raise a LanceDuckError, at open or at a search.

    Attributes:
        metric: One of `METRICS`.
        dim: Numbers of a vector.
        num_rows: Number of vectors.
        is_exact: Whether distances are those of the vectors themselves (flat storage); if not, re-ranking improves
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
        """Return the name of each row, uint64, by position; read once, cached, not to be changed."""

    def search(self, queries: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe) -> Hits:
        """Return the nearest neighbours of queries.

        Args:
            queries: float32 (queries, dim), finite, C-contiguous.
            k: Neighbours of each query, at least 1; may exceed the number of vectors.
            allowed: bool (num_rows,): whether each position may be found; None if all may. The search goes on in
                further partitions until k of them are found or `probe.max_nprobes` is reached.
            probe: Extent of the search.
        """

    def is_tied(self, allowed: NDArray[np.bool_]) -> bool:
        """Return whether partitions differ in their share of allowed vectors by more than chance explains.

        Args:
            allowed: bool (num_rows,): whether each position may be found.
        """

    def partition_ranks(self, queries: Queries, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many partitions are nearer to a query than that of a vector, and so are searched before it.

        Args:
            queries: float32 (queries, dim), finite, C-contiguous.
            positions: int64 (queries, m), of vectors; -1 for none, whose rank is the number of partitions.

        Returns:
            int64 (queries, m).
        """

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of a segment, as pylance's index_statistics does."""

    def prewarm(self) -> None:
        """Read all that searches read, and cache it."""

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
