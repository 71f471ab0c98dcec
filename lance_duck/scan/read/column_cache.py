"""A cache of decoded columns of numbers and texts, for repeated takes of a few rows: see `benchmarks/caches.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import LanceDuckError
from lance_duck.forks import Lock
from lance_duck.scan.costs import BYTES_DECODED_IN_A_TAKE, ROWS_DECODED_IN_A_TAKE, TAKES_BEFORE_CACHE
from lance_duck.scan.projection import Read
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.store.request import is_watched

MOST_BYTES: Final = 64 << 20
"""Maximum size of a cached column, in bytes: eight million values of eight bytes. This limits memory."""

MOST_OF_ALL: Final = 4 * MOST_BYTES
"""Maximum size of all cached columns of a version, in bytes. This limits memory."""


class DecodedNumbers:
    """A decoded narrow column: the values of all rows of the table.

    Args:
        pieces: The column of each fragment, in order, without nulls.
    """

    def __init__(self, pieces: list[pa.Array]) -> None:
        self._type = pieces[0].type
        width = self._type.bit_width // 8
        raw = [np.frombuffer(each.buffers()[1], np.uint8)[each.offset * width :] for each in pieces if len(each)]
        sizes = [len(each) * width for each in pieces if len(each)]
        whole = np.concatenate([values[:size] for values, size in zip(raw, sizes, strict=True)])
        self._values: NDArray[Any] = whole.view(f"u{width}" if width <= 8 else f"V{width}")
        self.nbytes = int(whole.nbytes)

    def take(self, places: NDArray[np.int64]) -> pa.Array:
        """Return the values at row positions. Positions include deleted rows."""
        values = pa.py_buffer(self._values.take(places))
        return pa.Array.from_buffers(self._type, len(places), [None, values])


class DecodedTexts:
    """A decoded column of strings: the values of all rows of the table.

    Args:
        pieces: Arrays of strings, in order.
    """

    def __init__(self, pieces: list[pa.Array]) -> None:
        self._values = pa.concat_arrays(pieces)
        self.nbytes = int(self._values.nbytes)

    def take(self, places: NDArray[np.int64]) -> pa.Array:
        """Return the values at row positions. Positions include deleted rows."""
        return self._values.take(pa.array(places))


DecodedColumn = DecodedNumbers | DecodedTexts


class DecodedColumns:
    """Cache of the decoded columns of a version. Safe to use from several threads.

    Args:
        snapshot: The version.
        read: Reads a column of all fragments, including deleted rows, piece by piece.
        stored: Returns the size of a column in its files, in bytes.
        limit: Maximum size of all cached columns, in bytes. 0 disables the cache.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        read: Callable[[Read], Iterable[pa.Array]],
        stored: Callable[[Read], int],
        limit: int = MOST_OF_ALL,
    ) -> None:
        self._snapshot = snapshot
        self._read = read
        self._stored = stored
        self._limit = limit
        self._takes: dict[object, int] = {}
        self._columns: dict[object, DecodedColumn | None] = {}
        self._lock = Lock()
        self._is_local = local_path(snapshot.uri) is not None

    def of_take(self, reads: Sequence[Read], count: int) -> dict[str, DecodedColumn]:
        """Return the cached columns for a take of `count` rows, by name. Each call counts as one take."""
        if not (count and self._limit) or is_watched():
            return {}
        columns = ((read.name, self._find(read)) for read in reads)
        return {name: column for name, column in columns if column is not None}

    def cached(self, reads: Sequence[Read]) -> dict[str, DecodedColumn]:
        """Return the columns that are cached already, by name."""
        columns = ((read.name, self._columns.get(read.key)) for read in reads)
        return {name: column for name, column in columns if column is not None}

    @property
    def nbytes(self) -> int:
        """Total size of all cached columns, in bytes."""
        return sum(column.nbytes for column in list(self._columns.values()) if column is not None)

    def _find(self, read: Read) -> DecodedColumn | None:
        key = read.key
        if key in self._columns:
            return self._columns[key]
        takes = self._takes[key] = self._takes.get(key, 0) + 1
        if takes < TAKES_BEFORE_CACHE or takes < self._num_rows // ROWS_DECODED_IN_A_TAKE:
            return None
        if _is_text(read.arrow_type) and takes < self._stored(read) // BYTES_DECODED_IN_A_TAKE:
            return None
        with self._lock:
            if key not in self._columns:
                self._columns[key] = self._decoded(read)
        return self._columns[key]

    def _decoded(self, read: Read) -> DecodedColumn | None:
        text = _is_text(read.arrow_type)
        if not self._is_local or not self._num_rows or not (text or _is_narrow(read.arrow_type)):
            return None
        try:
            pieces = self._pieces(read, min(MOST_BYTES, self._limit - self.nbytes))
        except LanceDuckError:  # without the cache, intact rows can still be read
            return None
        if pieces is None or text:
            return None if pieces is None else DecodedTexts(pieces)
        return None if any(piece.null_count for piece in pieces) else DecodedNumbers(pieces)

    def _pieces(self, read: Read, most: int) -> list[pa.Array] | None:
        """Return the values of a column. None if their total size exceeds, or probably exceeds, `most` bytes."""
        pieces: list[pa.Array] = []
        size = count = 0
        for piece in self._read(read):
            size, count = size + piece.nbytes, count + len(piece)
            if size > most or (not pieces and size * self._num_rows > most * count):
                return None
            pieces.append(piece)
        return pieces

    @cached_property
    def _num_rows(self) -> int:
        return sum(self._snapshot.physical_rows(fragment) for fragment in self._snapshot.fragments)


def _is_text(type_: pa.DataType) -> bool:
    """Return whether the values of a type are strings."""
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _is_narrow(type_: pa.DataType) -> bool:
    """Return whether each value takes one, two, four or eight bytes."""
    if isinstance(type_, pa.BaseExtensionType) or not pa.types.is_primitive(type_) or pa.types.is_boolean(type_):
        return False
    return int(type_.bit_width) in (8, 16, 32, 64)
