"""Reads columns of a segment's files, and checks that they have the expected types and do not contain nulls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError
from lance_duck.index.files import SegmentFile
from lance_duck.index.inverted import layout
from lance_duck.index.inverted.codecs.arrays import BinaryLists, binary_lists_of, bytes_and_offsets
from lance_duck.index.inverted.costs import POSITIONS_MEANWHILE, READ_MEANWHILE
from lance_duck.kernels.jit import readonly

_T = TypeVar("_T")

_KEPT_WHOLE: Final = (layout.POSTING, layout.IMPACTS, layout.POSITIONS, layout.POSITION_STARTS)


def read_columns(
    file: SegmentFile, types: Mapping[str, pa.DataType], rows: NDArray[np.int64] | slice | None = None
) -> list[pa.Array]:
    """Read columns in one round trip.

    Args:
        file: File of a segment.
        types: Required type of each column, by name.
        rows: Ascending row positions or a slice; all rows by default.

    Raises:
        CorruptError: A column is missing, has the wrong type, or contains nulls.
    """
    for name, type_ in types.items():
        file.column(name, type_)
    arrays = file.read_few(list(types), rows) if isinstance(rows, np.ndarray) else file.read(list(types), rows)
    for name, array in zip(types, arrays, strict=True):
        if array.null_count:
            raise CorruptError(f"column {name!r} contains nulls", where=file.path, found=array.null_count)
    return arrays


def numbers_without_nulls(array: pa.Array) -> NDArray[Any]:
    """Return numbers without nulls as a read-only array."""
    values: NDArray[Any] = array.to_numpy(zero_copy_only=True)
    return values


def single(array: pa.Array, where: str) -> pa.Array:
    """Return a column, checked to have one row. Raises CorruptError."""
    if len(array) != 1:
        raise CorruptError("wrong row count", where=where, expected=1, found=len(array))
    return array


@dataclass(frozen=True, eq=False)
class _WholeColumn:
    """A whole column of lists or binary values, as an Arrow array and as buffers."""

    array: pa.Array
    where: str

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return int(self.array.nbytes) + 8 * len(self.array)

    @cached_property
    def blobs(self) -> BinaryLists:
        """The lists of a column of binary values."""
        return binary_lists_of(self.array, self.where)

    @cached_property
    def values(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The bytes of a binary column, and the offset of each value, followed by the total size."""
        return bytes_and_offsets(self.array)

    @cached_property
    def numbers(self) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The values of a numeric column, and the index of each list's first value, followed by the value count."""
        return numbers_of_lists(self.array, self.where)


def numbers_of_lists(lists: pa.ListArray, where: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the numbers in lists, and the index of each list's first number, followed by the count of numbers.

    Raises:
        CorruptError: A list or a number is null.
    """
    if lists.null_count or lists.values.null_count:
        raise CorruptError("a list of numbers contains a null", where=where)
    return readonly(np.asarray(lists.values)), readonly(np.asarray(lists.offsets).astype(np.int64))


def _taken(
    values: NDArray[Any], bounds: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the concatenated values of rows, and the index of each row's first value, followed by their count."""
    parts = [values[bounds.item(row) : bounds.item(row + 1)] for row in rows.tolist()]
    ends = np.array([0, *accumulate(map(len, parts))], np.int64)
    return readonly(parts[0] if len(parts) == 1 else np.concatenate(parts)), readonly(ends)


class TermColumns:
    """The columns of the file of postings. Safe to use from several threads.

    A column is read term by term until these reads have taken as long as a read of the whole column. Then the whole
    column is read and cached. Reading therefore takes at most twice the necessary time. From object stores, only the
    requested terms are ever read.

    Args:
        file: File of postings.
        cache: Cache of whole columns.
        most: Maximum size of a cached column, in bytes.
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
            types: Required type of each column, by name.
            rows: Row positions, in any order.

        Raises:
            CorruptError: A column is missing, has the wrong type, or contains nulls.
        """
        parts = self._read(types, rows)
        return [part.array.take(pa.array(rows)) if isinstance(part, _WholeColumn) else part for part in parts]

    def read_blobs(self, types: Mapping[str, pa.DataType], rows: NDArray[np.int64]) -> list[BinaryLists]:
        """Return rows of binary list columns. See `read`."""
        path = self._file.path
        found: dict[str, BinaryLists] = {}
        for name, type_ in types.items():
            whole = self._whole(name, type_)
            lists = self._read_lists(name, type_, rows) if whole is None else whole.blobs.take(rows, path)
            if lists is not None:
                found[name] = lists
        rest = {name: type_ for name, type_ in types.items() if name not in found}
        arrays = self._read_rows(rest, rows) if rest else []
        found |= {name: binary_lists_of(array, path) for name, array in zip(rest, arrays, strict=True)}
        return [found[name] for name in types]

    def read_values(
        self, name: str, type_: pa.DataType, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the bytes of a few rows of a binary column, and the offsets of the values, followed by the total size.

        Both arrays are read-only. See `read`.
        """
        whole = self._whole(name, type_)
        if whole is not None:
            return _taken(*whole.values, rows)
        listed = rows.tolist()
        ascending = sorted(set(listed))
        self._file.column(name, type_)
        values = self._file.read_values(name, np.array(ascending, np.int64))
        if values is None:
            return bytes_and_offsets(self._read_rows({name: type_}, rows)[0])
        by_row = dict(zip(ascending, values, strict=True))
        parts = [by_row[row] for row in listed]
        ends = np.array([0, *accumulate(map(len, parts))], np.int64)
        return readonly(parts[0] if len(parts) == 1 else np.concatenate(parts)), readonly(ends)

    def read_numbers(
        self, name: str, type_: pa.DataType, rows: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return rows of a numeric list column in the form of `numbers_of_lists`. See `read`."""
        (part,) = self._read({name: type_}, rows)
        if isinstance(part, _WholeColumn):
            return _taken(*part.numbers, rows)
        return numbers_of_lists(part, self._file.path)

    def whole_positions(self) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any], NDArray[np.int64]] | None:
        """Return the columns of positions and of their starts, each as values and bounds. None if one is not cached."""
        names = (layout.POSITIONS, layout.POSITION_STARTS)
        found = self._cache.find_all([(self._file.path, name) for name in names])
        return None if found is None else (*found[0].values, *found[1].numbers)

    def whole_blobs(self, types: Mapping[str, pa.DataType]) -> list[BinaryLists] | None:
        """Return binary list columns, or None if the first one is not cached as a whole.

        If it is cached, the other columns are also read as a whole, unless they are too large.

        Raises:
            CorruptError: A column is missing, has the wrong type, or contains nulls.
        """
        keys = [(self._file.path, name) for name in types]
        found = self._cache.find_all(keys)
        if found is None and len(keys) > 1 and self._cache.find_all(keys[:1]) is not None and self.keep(types):
            found = self._cache.find_all(keys)
        return None if found is None else [column.blobs for column in found]

    def keep(self, types: Mapping[str, pa.DataType]) -> bool:
        """Read and cache whole columns. If one of them is too large, returns False and does not read any.

        Raises:
            CorruptError: A column is missing, has the wrong type, or contains nulls.
        """
        if any(self._size(name) > self._most for name in types):
            return False
        for name, type_ in types.items():
            if (self._file.path, name) not in self._cache:
                self._read_whole(name, type_)
        return True

    def _read(self, types: Mapping[str, pa.DataType], rows: NDArray[np.int64]) -> list[_WholeColumn | pa.Array]:
        """Return rows of columns, or whole columns."""
        whole = {name: column for name, type_ in types.items() if (column := self._whole(name, type_)) is not None}
        rest = {name: type_ for name, type_ in types.items() if name not in whole}
        parts = dict(zip(rest, self._read_rows(rest, rows), strict=True)) if rest else {}
        return [whole.get(name, parts.get(name)) for name in types]

    def _read_lists(self, name: str, type_: pa.DataType, rows: NDArray[np.int64]) -> BinaryLists | None:
        """Return a few rows of binary lists. Returns None unless the file is memory-mapped with contiguous lists."""
        if not (rows[1:] > rows[:-1]).all():
            return None
        self._file.column(name, type_)
        found = self._file.read_lists(name, rows)
        if found is None:
            return None
        data, bounds, lists = found
        return BinaryLists(readonly(data), readonly(bounds), readonly(lists))

    def _whole(self, name: str, type_: pa.DataType) -> _WholeColumn | None:
        """Return a whole column if it is cached or was read often enough, otherwise None."""
        if name not in _KEPT_WHOLE:
            return None
        column = self._cache.find((self._file.path, name))
        if isinstance(column, _WholeColumn):
            return column
        size = self._size(name)
        self._reads[name] += 1
        meanwhile = POSITIONS_MEANWHILE if name == layout.POSITIONS else READ_MEANWHILE
        if self._file.is_remote or size > min(self._most, meanwhile * self._reads[name]):
            return None
        return self._read_whole(name, type_)

    def _read_rows(self, types: Mapping[str, pa.DataType], rows: NDArray[np.int64]) -> list[pa.Array]:
        if len(rows) < 2 or (rows[1:] > rows[:-1]).all():
            return read_columns(self._file, types, rows)
        ascending, places = np.unique(rows, return_inverse=True)
        return [array.take(pa.array(places)) for array in read_columns(self._file, types, ascending)]

    def _read_whole(self, name: str, type_: pa.DataType) -> _WholeColumn:
        (array,) = read_columns(self._file, {name: type_})
        column = _WholeColumn(array, self._file.path)
        self._cache.put((self._file.path, name), column)
        return column

    def _size(self, name: str) -> int:
        if name not in self._stored:
            self._stored[name] = self._file.stored_bytes(name) if name in self._file.schema.names else 0
        return self._stored[name]


@dataclass(frozen=True, eq=False)
class KeptTerms(Generic[_T]):
    """A cache of per-term values. Safe to use from several threads.

    Attributes:
        cache: The cache.
        key: Prefix of the cache keys.
        read: Reads the joined values of distinct terms. The terms ascend, unless `arranged` is None.
        single: Extracts a copy of one term's value from joined values.
        arranged: Reorders joined values, possibly with repetitions. None if `read` is equally fast in any order.
        join: Joins the values of single terms.
        of_others: Looks up a term's value in another cache. Returns None if that cache does not contain it.
    """

    cache: SizedCache[Any]
    key: tuple[Any, ...]
    read: Callable[[NDArray[np.int64]], _T]
    single: Callable[[_T, int], _T]
    arranged: Callable[[_T, Sequence[int]], _T] | None
    join: Callable[[list[_T]], _T]
    of_others: Callable[[int], _T | None] = lambda _: None

    def of_term(self, term: int) -> _T | None:
        """Return the value of a term. Returns None if it is not cached separately."""
        value: _T | None = self.cache.find((*self.key, term))
        return self.of_others(term) if value is None else value

    def of(self, terms: list[int]) -> _T:
        """Return the joined values of one or more terms, in order. Uncached values are read in one round trip."""
        kept = {term: value for term in terms if (value := self.of_term(term)) is not None}
        rest = [term for term in dict.fromkeys(terms) if term not in kept]
        if self.arranged is not None:
            rest.sort()
        if rest:
            values = self.read(np.array(rest, np.int64))
            is_all = not kept
            for place, term in enumerate(rest):
                kept[term] = self.single(values, place) if len(rest) > 1 else values
                self.cache.put((*self.key, term), kept[term])
            if is_all and rest == terms:
                return values
            if is_all and self.arranged is not None:
                places = {term: place for place, term in enumerate(rest)}
                return self.arranged(values, [places[term] for term in terms])
        return kept[terms[0]] if len(terms) == 1 else self.join([kept[term] for term in terms])
