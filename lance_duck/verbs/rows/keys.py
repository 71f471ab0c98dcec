"""Row keys: finds the source row with the same key as a table row. Keys with nulls never match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError
from lance_duck.kernels.jit import readonly
from lance_duck.scan.predicate.arrays import descend
from lance_duck.scan.predicate.kernels import hash_texts
from lance_duck.scan.predicate.number_set import NumberSet
from lance_duck.scan.predicate.ordering import one_zero_one_nan
from lance_duck.scan.predicate.tree import In, Path, Predicate
from lance_duck.verbs.costs import SET_KEYS

Codes = NDArray[np.int64]

_NO_INDEX: Final[Mapping[Path, pa.DataType]] = {}


class KeyIndex:
    """Index of a source's distinct keys. Each key has a code, counted from 0.

    Args:
        columns: Key columns of the source, equal in length, with the table's types.
        names: Names of the key columns, for messages.

    Raises:
        InvalidInputError: Values of a column's type cannot be keys.
    """

    def __init__(self, columns: Sequence[pa.ChunkedArray], names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._sets: list[pa.Array] = []
        self._pairs: list[Codes] = []
        self.codes = np.empty(0, np.int64)
        for i, (column, name) in enumerate(zip(columns, names, strict=True)):
            dictionary = comparable_keys(column, name).dictionary_encode()
            self._sets.append(dictionary.dictionary)
            codes = _codes(dictionary.indices)
            if i:
                pairs = _pair(self.codes, codes, len(dictionary.dictionary))
                distinct, inverse = np.unique(pairs[pairs >= 0], return_inverse=True)
                codes = np.full(len(pairs), -1, np.int64)
                codes[pairs >= 0] = inverse
                self._pairs.append(distinct)
            self.codes = codes
        self.count = len(self._pairs[-1]) if self._pairs else len(self._sets[0])

    @cached_property
    def first_rows(self) -> Codes:
        """First source row with each key, by code; int64."""
        rows = np.flatnonzero(self.codes >= 0)[::-1]
        first = np.empty(self.count, np.int64)
        first[self.codes[rows]] = rows
        return first

    @cached_property
    def repeated(self) -> Codes:
        """Source rows that repeat an earlier key, ascending; int64."""
        rows = np.flatnonzero(self.codes >= 0)
        if len(rows) == self.count:
            return np.empty(0, np.int64)
        later: Codes = rows[self.first_rows[self.codes[rows]] != rows]
        return later

    def find(self, columns: Sequence[pa.ChunkedArray | pa.Array]) -> Codes:
        """Return the code of each row's key, or -1 if the source lacks the key.

        Args:
            columns: Key columns of the table, in the same order as the source's.
        """
        numbers = np.empty(0, np.int64)
        for i, (column, name) in enumerate(zip(columns, self.names, strict=True)):
            values = comparable_keys(column, name)
            codes = _codes(pc.index_in(values, value_set=self._sets[i]))
            if i:
                pairs = _pair(numbers, codes, len(self._sets[i]))
                known_pairs = self._pairs[i - 1]
                places = np.minimum(np.searchsorted(known_pairs, pairs), max(0, len(known_pairs) - 1))
                hit = known_pairs[places] == pairs if len(known_pairs) else np.zeros(len(pairs), np.bool_)
                codes = np.where(hit & (pairs >= 0), places, -1)
            numbers = codes
        return numbers

    def sieve(self, paths: Sequence[Path], indexed: Mapping[Path, pa.DataType] = _NO_INDEX) -> KeySieve | None:
        """Return a filter for rows whose key occurs in the source, or None if it would not help.

        The filter may also select a few rows with other keys.

        Args:
            paths: Paths of the key columns in the table.
            indexed: Key columns with a usable index, with their types.
        """
        key_column = self._asked(paths, indexed)
        for values, path, name in zip(self._sets, paths, self.names, strict=True):
            numbers = _numbers(values)
            if numbers is not None and len(numbers):
                return KeySieve(tuple(paths), path, name, NumberSet.of(numbers), values, key_column)
        for values, path, name in zip(self._sets, paths, self.names, strict=True):
            hashes = _hashes(values)
            if hashes is not None and len(hashes):
                return KeySieve(tuple(paths), path, name, NumberSet.of(hashes), values, key_column)
        if len(self._sets[0]) <= SET_KEYS:
            return KeySieve(tuple(paths), paths[0], self.names[0], None, self._sets[0], key_column)
        return None

    def _asked(self, paths: Sequence[Path], indexed: Mapping[Path, pa.DataType]) -> Predicate | None:
        """Return a condition that all keys satisfy, on the indexed column with the most distinct values.

        Returns None if no column has a suitable index.
        """
        candidates = [(len(values), i) for i, values in enumerate(self._sets) if paths[i] in indexed]
        if not candidates:
            return None
        path, values = paths[max(candidates)[1]], self._sets[max(candidates)[1]]
        try:
            return In(path, values.cast(indexed[path]))
        except pa.ArrowException:
            return None


@dataclass(frozen=True)
class KeySieve:
    """Scan filter for rows that may have a key of a source.

    Attributes:
        read: Paths of the key columns.
        path: Path of the compared key column.
        name: Name of its top-level column.
        numbers: The source's values of this column as a set of integers. None for other types.
        values: The source's values of this column.
        implied: Predicate for index searches, which holds for all rows with a key of the source. Optional.
    """

    read: tuple[Path, ...]
    path: Path
    name: str
    numbers: NumberSet | None
    values: pa.Array
    implied: Predicate | None = None

    def paths(self) -> tuple[Path, ...]:
        """See `scan.filters.Filter`."""
        return self.read

    def mask(self, columns: Mapping[str, pa.Array], num_rows: int) -> pa.BooleanArray:
        """See `scan.filters.Filter`."""
        array = descend(columns[self.path[0]], self.path[1:])
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        numbers = None if self.numbers is None else _numbers(array)
        if self.numbers is not None and numbers is None:
            numbers = _hashes(array)
        if self.numbers is None or numbers is None:
            return pc.is_in(comparable_keys(array, self.name), value_set=self.values)
        mask = np.ones(len(numbers), np.uint8)
        self.numbers.narrow(readonly(numbers), mask)
        answer = mask.view(np.bool_)
        return pa.array(answer) if not array.null_count else pc.and_(pa.array(answer), array.is_valid())

    def __str__(self) -> str:
        return f"key {self.name!r} among {len(self.values)}"


def comparable_keys(column: pa.ChunkedArray | pa.Array, name: str) -> pa.Array:
    """Convert a key column to a type in which equal keys have equal bits, following SQL equality.

    Both zeros are the same key. All NaNs are the same key, regardless of sign and payload.

    Raises:
        InvalidInputError: The type cannot be converted: structs, lists, maps.
    """
    array = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
    type_ = array.type
    if isinstance(type_, pa.BaseExtensionType):
        array = pa.chunked_array([chunk.storage for chunk in array.chunks], type_.storage_type)
        type_ = array.type
    if pa.types.is_dictionary(type_):
        array, type_ = array.cast(type_.value_type), type_.value_type
    if pa.types.is_nested(type_) or pa.types.is_null(type_):
        raise InvalidInputError("rows cannot be matched by a column of this type", where=name, found=type_)
    for is_kind, plain in _PLAIN:
        if is_kind(type_):
            array = array.cast(plain)
    if pa.types.is_floating(array.type):
        array = one_zero_one_nan(array)
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


_PLAIN: Final[tuple[tuple[Any, pa.DataType], ...]] = (
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_string, pa.large_string()),
    (pa.types.is_string_view, pa.large_string()),
    (pa.types.is_binary, pa.large_binary()),
    (pa.types.is_binary_view, pa.large_binary()),
)

_TEXTS: Final[tuple[tuple[Any, type], ...]] = (
    (pa.types.is_string, np.int32),
    (pa.types.is_binary, np.int32),
    (pa.types.is_large_string, np.int64),
    (pa.types.is_large_binary, np.int64),
)


def _codes(indices: pa.Array) -> Codes:
    codes: Codes = indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    return codes


def _pair(left: Codes, right: Codes, count: int) -> Codes:
    """Combine each pair of codes into one number, or -1 if either code is -1."""
    return np.where((left < 0) | (right < 0), -1, left * count + right)


def _hashes(array: pa.Array) -> NDArray[np.uint64] | None:
    """Return hashes of strings or binary values. Returns None for other types."""
    width = next((width for is_kind, width in _TEXTS if is_kind(array.type)), None)
    if width is None:
        return None
    hashes = np.zeros(len(array), np.uint64)
    _, offsets, data = array.buffers()
    if offsets is not None and data is not None and len(array):
        places: NDArray[Any] = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
        hash_texts(readonly(places), readonly(np.frombuffer(data, np.uint8)), hashes)
    return hashes


def _numbers(array: pa.Array) -> NDArray[np.uint64] | None:
    """Return the values of integer and temporal types of at most 64 bits. Undefined for nulls.

    Returns None for other types.
    """
    type_ = array.type
    if not pa.types.is_integer(type_) and not pa.types.is_temporal(type_):
        return None
    if pa.types.is_interval(type_):
        return None
    signed = not pa.types.is_unsigned_integer(type_)
    width = type_.bit_width // 8
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), np.uint64)
    values = np.frombuffer(buffer, f"<{'i' if signed else 'u'}{width}")[array.offset : array.offset + len(array)]
    return values.astype(np.int64 if signed else np.uint64, copy=False).view(np.uint64)
