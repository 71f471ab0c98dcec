"""Columns of a segment's files, read with their types checked and without nulls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError
from lance_duck.index.files import SegmentFile
from lance_duck.index.inverted import layout
from lance_duck.index.inverted.costs import READ_MEANWHILE

_KEPT_WHOLE: Final = (layout.POSTING, layout.IMPACTS, layout.POSITION_STARTS)
"""Columns that are as fast to decode as to copy; the columns of positions are not, being compressed term by term."""


def read_columns(
    file: SegmentFile, types: Mapping[str, pa.DataType], rows: NDArray[np.int64] | slice | None = None
) -> list[pa.Array]:
    """Read columns in one round.

    Args:
        file: File of a segment.
        types: The type that each column must have, by name.
        rows: A few places of rows, ascending, or a slice of all rows; None for all rows.

    Raises:
        CorruptError: A column is missing, has another type, or has nulls.
    """
    for name, type_ in types.items():
        file.column(name, type_)
    arrays = file.read_few(list(types), rows) if isinstance(rows, np.ndarray) else file.read(list(types), rows)
    for name, array in zip(types, arrays, strict=True):
        if array.null_count:
            raise CorruptError(f"nulls in column {name!r}", where=file.path, found=array.null_count)
    return arrays


def numbers_without_nulls(array: pa.Array) -> NDArray[Any]:
    """Return numbers without nulls as a read-only array."""
    values: NDArray[Any] = array.to_numpy(zero_copy_only=True)
    return values


def single(array: pa.Array, where: str) -> pa.Array:
    """Return a column, checked to have one row. Raises CorruptError."""
    if len(array) != 1:
        raise CorruptError("rows", where=where, expected=1, found=len(array))
    return array


class TermColumns:
    """The columns of the file of postings. Safe to use from several threads.

    A column is read for the terms at hand, until that has taken as long as reading all of it does; then the whole
    column is read once more and cached. So reading takes at most twice the necessary time, whatever the queries.
    A column on an object store is always read for the terms at hand.

    Args:
        file: File of postings.
        cache: Cache of whole columns.
        most: Bytes up to which a column may be cached.
    """

    def __init__(self, file: SegmentFile, cache: SizedCache[Any], most: int) -> None:
        self._file = file
        self._cache = cache
        self._most = most
        self._reads: Counter[str] = Counter()
        self._stored: dict[str, int] = {}

    def read(self, types: Mapping[str, pa.DataType], rows: NDArray[np.int64]) -> list[pa.Array]:
        """Return rows of columns.

        Args:
            types: The type that each column must have, by name.
            rows: Places of rows, in any order.

        Raises:
            CorruptError: A column is missing, has another type, or has nulls.
        """
        whole = {name: array for name, type_ in types.items() if (array := self._whole(name, type_)) is not None}
        rest = {name: type_ for name, type_ in types.items() if name not in whole}
        parts = dict(zip(rest, self._read_rows(rest, rows), strict=True)) if rest else {}
        places = pa.array(rows)
        return [parts[name] if name in parts else whole[name].take(places) for name in types]

    def are_whole(self, types: Mapping[str, pa.DataType]) -> bool:
        """Return whether columns are cached as a whole."""
        return all((self._file.path, name) in self._cache for name in types)

    def keep(self, types: Mapping[str, pa.DataType]) -> bool:
        """Read columns and cache them; return False, without reading any, if one is too large.

        Raises:
            CorruptError: A column is missing, has another type, or has nulls.
        """
        if any(self._size(name) > self._most for name in types):
            return False
        for name, type_ in types.items():
            self._read_whole(name, type_)
        return True

    def _whole(self, name: str, type_: pa.DataType) -> pa.Array | None:
        """Return a whole column if it is cached or has been read often enough, else None."""
        if name not in _KEPT_WHOLE:
            return None
        array = self._cache.find((self._file.path, name))
        if array is not None:
            return array
        size = self._size(name)
        self._reads[name] += 1
        if self._file.is_remote or size > min(self._most, READ_MEANWHILE * self._reads[name]):
            return None
        return self._read_whole(name, type_)

    def _read_rows(self, types: Mapping[str, pa.DataType], rows: NDArray[np.int64]) -> list[pa.Array]:
        if len(rows) < 2 or (rows[1:] > rows[:-1]).all():
            return read_columns(self._file, types, rows)
        ascending, places = np.unique(rows, return_inverse=True)
        return [array.take(pa.array(places)) for array in read_columns(self._file, types, ascending)]

    def _read_whole(self, name: str, type_: pa.DataType) -> pa.Array:
        (array,) = read_columns(self._file, {name: type_})
        self._cache.put((self._file.path, name), array)
        return array

    def _size(self, name: str) -> int:
        if name not in self._stored:
            self._stored[name] = self._file.stored_bytes(name) if name in self._file.schema.names else 0
        return self._stored[name]
