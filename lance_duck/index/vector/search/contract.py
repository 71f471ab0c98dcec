"""What a vector segment offers, and how it is asked.

Vectors of a segment are numbered by position, 0 … num_rows - 1, in the order of its storage; `rows` names their rows.
Distances are those of Lance's `_distance`: squared Euclidean for l2, 1 - cosine similarity, 1 - inner product for dot,
number of different bits for hamming.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.storage.files import VectorFiles

Queries = NDArray[np.float32]

METRICS: Final = ("l2", "cosine", "dot", "hamming")


@dataclass(frozen=True)
class Probe:
    """How far to look.

    Attributes:
        nprobes: Partitions to look into first.
        max_nprobes: Partitions to look into at most while fewer than k rows are found; None: all.
        ef: Candidates that a walk over a graph keeps; None: as suits k.
        lower: Distances below are left out; None: none is.
        upper: Distances from here on are left out; None: none is.
    """

    nprobes: int = 20
    max_nprobes: int | None = None
    ef: int | None = None
    lower: float | None = None
    upper: float | None = None


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
    """Describes what the work of a search in a segment depends on.

    Attributes:
        num_rows: Vectors.
        num_partitions: Partitions.
        has_graphs: Partitions are walked over, not read whole.
        code_bytes: Bytes that are read of a vector.
        table_bytes: Bytes of the codebook, of which a table of distances is made for each partition, and bytes of codes
            are looked up there; 0: codes are compared themselves.
    """

    num_rows: int
    num_partitions: int
    has_graphs: bool
    code_bytes: int
    table_bytes: int = 0


class VectorIndex(Protocol):
    """An open vector segment. Safe to use from several threads; what it reads it keeps, within limits.

    What it raises for broken files is a LanceDuckError, at open or at a search.

    Attributes:
        metric: One of `METRICS`.
        dim: Numbers of a vector.
        num_rows: Vectors.
        is_exact: Distances are those of the vectors themselves (flat storage); else re-ranking makes them better.
        files: Files of the segment.
    """

    files: VectorFiles
    metric: str
    dim: int
    num_rows: int
    is_exact: bool

    @property
    def shape(self) -> Shape:
        """What the work of a search depends on."""

    def rows(self) -> NDArray[np.uint64]:
        """Return the names of the rows, by position; read once, kept, not to be changed."""

    def search(self, queries: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe) -> Hits:
        """Return the nearest neighbours.

        Args:
            queries: (queries, dim), finite; C-contiguous.
            k: Neighbours of each, at least 1; may be more than there are vectors.
            allowed: For each position whether it may be found; None: all may. Looking goes on, over more partitions,
                until k of them are found or `probe.max_nprobes` is reached.
            probe: How far to look.
        """

    def partition_ranks(self, queries: Queries, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many partitions are nearer to a query than that of a vector: those that are looked into first.

        Args:
            queries: (queries, dim), finite; C-contiguous.
            positions: (queries, m), of vectors; -1 stands for none, whose rank is the number of partitions.

        Returns:
            int64 (queries, m).
        """

    def statistics(self) -> dict[str, Any]:
        """Return what pylance's index_statistics says of a segment of this kind."""

    def prewarm(self) -> None:
        """Read everything that searches read, and keep it."""

    @property
    def nbytes(self) -> int:
        """Bytes that it holds in memory."""
