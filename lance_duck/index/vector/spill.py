"""Temporary storage for vectors that are read again, and for codes that are sorted by partition.

Vectors and codes stay in memory up to a limit. Further ones go to an unnamed temporary file. Each batch of codes is
sorted when it is added, and the batches are merged when a partition is read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import StoreError

Rows = NDArray[np.uint64]


class Spill:
    """An unnamed temporary file of arrays, as a context manager."""

    def __init__(self) -> None:
        self._files = ExitStack()
        self._file: IO[bytes] | None = None
        self._end = 0

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        """Write an array, and return a mapped view of it.

        Raises:
            StoreError: The file cannot be written, for example because the disk is full.
        """
        if not array.size:
            return array
        try:
            if self._file is None:
                unnamed = tempfile.TemporaryFile  # the exit stack closes it
                self._file = self._files.enter_context(unnamed(prefix="lance_duck-vectors-"))
            start = self._end
            self._file.seek(start)
            self._file.write(np.ascontiguousarray(array).data.cast("B"))
            self._file.flush()
            self._end += array.nbytes
            return np.memmap(self._file, array.dtype, "r", start, array.shape)
        except OSError as error:
            raise StoreError(
                "vectors of an index cannot be written to a temporary file", where=tempfile.gettempdir(), found=error
            ) from error

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()


class VectorSpill:
    """Rows and their vectors, in insertion order.

    Args:
        limit: Maximum size of the vectors in memory, in bytes.
        spill: Temporary file for all other vectors.
    """

    def __init__(self, limit: int, spill: Spill) -> None:
        self._limit = limit
        self._spill = spill
        self._chunks: list[tuple[Rows, NDArray[Any]]] = []
        self._count = self._held = 0

    def add(self, rows: Rows, vectors: NDArray[Any]) -> None:
        """Add rows and their vectors (n, dim), without copying them."""
        if not len(rows):
            return
        self._count += len(rows)
        if self._held + vectors.nbytes > self._limit:
            vectors = self._spill.put(vectors)
        else:
            self._held += vectors.nbytes
        self._chunks.append((rows, vectors))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[Rows, NDArray[Any]]]:
        return iter(self._chunks)

    def sample(self, count: int, seed: int) -> NDArray[Any]:
        """Return `count` random vectors in their original order, or all vectors if there are not more.

        The storage must not be empty.
        """
        if count >= self._count:
            return np.concatenate([vectors for _, vectors in self._chunks])
        positions = np.sort(np.random.default_rng(seed).choice(self._count, count, replace=False))
        ends = np.cumsum([len(rows) for rows, _ in self._chunks])
        parts = np.split(positions, np.searchsorted(positions, ends))
        starts = np.concatenate([[0], ends])
        pairs = zip(self._chunks, parts[:-1], starts[:-1], strict=True)
        return np.concatenate([vectors[part - start] for (_, vectors), part, start in pairs])


class SortedRuns:
    """Rows and their codes, grouped by partition, in the order of the file.

    Args:
        num_partitions: Number of partitions of the segment.
        limit: Approximate maximum size in memory, in bytes.
        spill: Temporary file for all other codes.
        by_name: Whether to sort the rows of a partition by row id or address. Otherwise, they stay in insertion order.
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
        """Add rows with their partitions, row ids or addresses, and codes (n, width)."""
        if not len(rows):
            return
        self._waiting.append((partitions, rows, codes))
        self._bytes += codes.nbytes + 16 * len(rows)
        if self._bytes >= self._limit:
            run = self._sorted()
            self._runs.append(_PartitionRun(run.starts, run.rows, None, self._spill.put(run.gathered())))

    def take(self, partition: int) -> tuple[Rows, NDArray[Any]] | None:
        """Return the rows and codes of a partition, or None if it is empty. Do not call `add` after this call."""
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
        is_sorted = bool((order[1:] > order[:-1]).all())  # true for a single partition, whose codes are then not copied
        return (
            _PartitionRun(starts, rows, None, codes) if is_sorted else _PartitionRun(starts, rows[order], order, codes)
        )


@dataclass(frozen=True)
class _PartitionRun:
    """A run of rows, sorted by partition.

    `codes` has the order of `rows`, unless `order` is set. In that case, the code of row i is at `order[i]`.
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
