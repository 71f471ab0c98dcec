"""Vectors that come batch by batch and are needed again: in memory up to a limit, then in an unnamed temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import StoreError

Rows = NDArray[np.uint64]


class Spill:
    """A temporary file of arrays, which has no name; a context manager."""

    def __init__(self) -> None:
        self._files = ExitStack()
        self._file: IO[bytes] | None = None
        self._end = 0

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        """Write an array; return it, mapped from the file.

        Raises:
            StoreError: The file cannot be written, as for lack of room.
        """
        if not array.size:
            return array
        try:
            if self._file is None:
                unnamed = tempfile.TemporaryFile  # closed at the end, with this object
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
    """Rows and their vectors, in the order in which they came.

    Args:
        limit: Bytes that stay in memory.
        spill: Temporary file of all others.
    """

    def __init__(self, limit: int, spill: Spill) -> None:
        self._limit = limit
        self._spill = spill
        self._chunks: list[tuple[Rows, NDArray[Any]]] = []
        self._count = self._held = 0

    def add(self, rows: Rows, vectors: NDArray[Any]) -> None:
        """Add vectors (n, dim) of rows, which are not copied."""
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
        """Return `count` random vectors, in their order; all if there are not more. There must be at least one."""
        if count >= self._count:
            return np.concatenate([vectors for _, vectors in self._chunks])
        positions = np.sort(np.random.default_rng(seed).choice(self._count, count, replace=False))
        ends = np.cumsum([len(rows) for rows, _ in self._chunks])
        parts = np.split(positions, np.searchsorted(positions, ends))
        starts = np.concatenate([[0], ends])
        pairs = zip(self._chunks, parts[:-1], starts[:-1], strict=True)
        return np.concatenate([vectors[part - start] for (_, vectors), part, start in pairs])
