"""Codes of rows, grouped by partition: pieces are sorted as they come, and merged when a partition is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.storage.spill import Rows, Spill


class SortedRuns:
    """Rows and their codes by partition, in the order of the file: by ascending name inside a partition.

    Args:
        num_partitions: Number of partitions of the segment.
        limit: Bytes that stay in memory, approximately.
        spill: Temporary file of all others.
        by_name: Whether rows are sorted by name inside a partition; if not, they stay in the order in which they came.
    """

    def __init__(self, num_partitions: int, limit: int, spill: Spill, *, by_name: bool = True) -> None:
        self._count = num_partitions
        self._limit = limit
        self._spill = spill
        self._by_name = by_name
        self._waiting: list[tuple[NDArray[np.int64], Rows, NDArray[Any]]] = []
        self._bytes = 0
        self._runs: list[_PartitionRun] = []

    def add(self, partitions: NDArray[np.int64], rows: Rows, codes: NDArray[Any]) -> None:
        """Add rows: their partitions, names, and codes (n, width)."""
        if not len(rows):
            return
        self._waiting.append((partitions, rows, codes))
        self._bytes += codes.nbytes + 16 * len(rows)
        if self._bytes >= self._limit:
            run = self._sorted()
            self._runs.append(_PartitionRun(run.starts, run.rows, None, self._spill.put(run.gathered())))

    def take(self, partition: int) -> tuple[Rows, NDArray[Any]] | None:
        """Return the rows of a partition and their codes; None if it has none. Nothing may be added afterwards."""
        if self._waiting:
            self._runs.append(self._sorted())
        pieces = [run.take(partition) for run in self._runs if run.starts[partition] < run.starts[partition + 1]]
        if len(pieces) < 2:
            return pieces[0] if pieces else None
        rows, codes = np.concatenate([r for r, _ in pieces]), np.concatenate([c for _, c in pieces])
        if not self._by_name:
            return rows, codes
        order = np.argsort(rows, kind="stable")
        return rows[order], codes[order]

    def _sorted(self) -> _PartitionRun:
        partitions, rows, codes = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting, self._bytes = [], 0
        order = np.lexsort((rows, partitions)) if self._by_name else np.argsort(partitions, kind="stable")
        starts = np.searchsorted(partitions[order], np.arange(self._count + 1))
        is_sorted = bool((order[1:] > order[:-1]).all())  # as where there is one partition: no code is copied
        return (
            _PartitionRun(starts, rows, None, codes) if is_sorted else _PartitionRun(starts, rows[order], order, codes)
        )


@dataclass(frozen=True)
class _PartitionRun:
    """A piece of rows, sorted by partition.

    `codes` are in the order of `rows`; if there is an `order`, the code of row i is at `order[i]`.
    """

    starts: NDArray[np.int64]
    rows: Rows
    order: NDArray[np.int64] | None
    codes: NDArray[Any]

    def take(self, partition: int) -> tuple[Rows, NDArray[Any]]:
        rows = slice(self.starts[partition], self.starts[partition + 1])
        return self.rows[rows], self.codes[rows] if self.order is None else self.codes[self.order[rows]]

    def gathered(self) -> NDArray[Any]:
        return self.codes if self.order is None else self.codes[self.order]
