"""Keys of bitmaps: searching them, and sorting them into file order.

Queries use the order of `index.query`. The file order distinguishes all bit patterns: nulls first, then -NaN, -inf, …,
-0.0, 0.0, …, inf, NaN. Several keys may therefore equal one value of a query.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from lance_duck.arrow.decimals import without_negative_scale
from lance_duck.index.bitmap.costs import SEARCHED_KEYS
from lance_duck.index.query import Among, Between, Except, HasPrefix, Null, Query

Int64s: TypeAlias = NDArray[np.int64]


def can_be_key(type_: pa.DataType) -> bool:
    """Return whether values of a storage type can be keys."""
    return has_numpy_order(type_) or _is_text(type_) or pt.is_decimal128(type_) or pt.is_decimal256(type_)


def has_numpy_order(type_: pa.DataType) -> bool:
    """Return whether numpy sorts the values of a type in query order."""
    whole = pt.is_integer(type_) or pt.is_boolean(type_) or (pt.is_temporal(type_) and not pt.is_interval(type_))
    return bool(whole or pt.is_floating(type_))


def can_find(query: Query, type_: pa.DataType) -> bool:
    """Return whether a query can be answered from keys of a storage type."""
    if isinstance(query, Except):
        return can_find(query.query, type_)
    if isinstance(query, HasPrefix):
        return _is_text(type_) and not pt.is_fixed_size_binary(type_)
    return isinstance(query, Between | Among | Null) and can_be_key(type_)


def sortable(keys: pa.Array) -> pa.Array:
    """Return an array whose natural order is the file order of the keys, except for nulls.

    Keys with different bits get different values.
    """
    if pt.is_floating(keys.type):
        signed = keys.view({2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[keys.type.byte_width])
        bits = signed.fill_null(0).to_numpy(zero_copy_only=False)
        flipped = bits ^ ((bits >> (8 * bits.itemsize - 1)) & np.iinfo(bits.dtype).max)
        return pa.array(flipped, mask=keys.is_null().to_numpy(zero_copy_only=False))
    return _plain(keys)


def written_order(keys: pa.Array) -> Int64s:
    """Return the positions of keys in file order, nulls first."""
    values = sortable(keys)
    if has_numpy_order(keys.type) and not keys.null_count:
        return np.argsort(values.to_numpy(zero_copy_only=False), kind="stable")
    order: Int64s = pc.sort_indices(values).to_numpy().astype(np.int64)  # nulls last
    return np.roll(order, keys.null_count)


class BitmapKeys:
    """The keys of a file, sorted for queries independently of their file order.

    Attributes:
        nulls: int64, positions of null keys in the file.
        places: int64, positions of the other keys in the file, in query order.
        nbytes: Size in memory, in bytes.

    Args:
        keys: Keys in the order of the file.
    """

    def __init__(self, keys: pa.Array) -> None:
        is_null = keys.is_null().to_numpy(zero_copy_only=False)
        self.nulls: Int64s = np.flatnonzero(is_null)
        self.places: Int64s = np.flatnonzero(~is_null)
        self._type = keys.type
        self._values = _comparable(keys.drop_null() if len(self.nulls) else keys)
        order = _order(self._values)
        if order is not None:
            self.places = self.places[order]
            self._values = self._values.take(order)
        self.nbytes = int(self.nulls.nbytes + self.places.nbytes + self._values.nbytes)

    def __len__(self) -> int:
        return len(self.nulls) + len(self.places)

    def find(self, query: Query) -> Int64s:
        """Return the file positions of the keys that satisfy a query, ascending."""
        if isinstance(query, Null):
            return self.nulls
        if isinstance(query, Except):
            matches = np.ones(len(self.places), np.bool_)
            matches[self._ranks(query.query)] = False
            return np.sort(self.places[matches])
        return np.sort(self.places[self._ranks(query)])

    def equal(self, values: pa.Array) -> list[Int64s]:
        """Return the file positions of the keys that equal each value. The values must not be null."""
        low, high = self._bounds(_comparable(values))
        return [np.sort(self.places[a:b]) for a, b in zip(low.tolist(), high.tolist(), strict=True)]

    def _ranks(self, query: Query) -> Any:
        """Return the ranks of the keys that satisfy a query, as a slice or an array. Ranks follow the query order."""
        if isinstance(query, Between):
            return self._between(query)
        if isinstance(query, HasPrefix):
            return self._prefix(query.prefix.as_py())
        if isinstance(query, Among):
            return self._among(_comparable(query.values))
        return slice(0, 0)

    def _between(self, query: Between) -> slice:
        start, stop = 0, len(self.places)
        if query.low is not None:
            low, high = self._bounds(_comparable(pa.array([query.low], self._type)))
            start = int((high if query.low_open else low)[0])
        if query.high is not None:
            low, high = self._bounds(_comparable(pa.array([query.high], self._type)))
            stop = int((low if query.high_open else high)[0])
        return slice(start, max(start, stop))

    def _among(self, values: NDArray[Any] | pa.Array) -> NDArray[np.intp]:
        if isinstance(self._values, pa.Array) and len(values) * SEARCHED_KEYS > len(self._values):
            return np.flatnonzero(pc.is_in(self._values, value_set=values).to_numpy(zero_copy_only=False))
        low, high = self._bounds(values)
        is_present = low < high
        low, high = np.unique(low[is_present]), np.unique(high[is_present])  # equal values have equal bounds
        counts = high - low
        return np.repeat(low - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))

    def _prefix(self, prefix: str | bytes) -> slice:
        begin = prefix.encode() if isinstance(prefix, str) else prefix
        items = _Items(self._values)
        start = bisect_left(items, begin)
        stem = begin.rstrip(b"\xff")
        end = stem[:-1] + bytes([stem[-1] + 1]) if stem else None
        return slice(start, len(items) if end is None else bisect_left(items, end))

    def _bounds(self, values: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return, for each value, the rank of the first key not below it, and the rank of the first key above it."""
        if isinstance(self._values, np.ndarray):
            return np.searchsorted(self._values, values, "left"), np.searchsorted(self._values, values, "right")
        items, targets = _Items(self._values), values.to_pylist()
        low = np.array([bisect_left(items, value) for value in targets], np.intp)
        return low, np.array([bisect_right(items, value) for value in targets], np.intp)


class _Items(Sequence[Any]):
    """An array as a sequence of Python values, for bisect."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:
        return self._values[place].as_py()


def _comparable(values: pa.Array) -> NDArray[Any] | pa.Array:
    """Return non-null values in a form that sorts in query order."""
    if pt.is_floating(values.type):
        items = values.to_numpy(zero_copy_only=False)
        return (items.astype(np.float32) if items.itemsize == 2 else items) + 0.0  # -0.0 + 0.0 is 0.0
    plain = _plain(values)
    return plain.to_numpy(zero_copy_only=False) if has_numpy_order(values.type) else plain


def _plain(values: pa.Array) -> pa.Array:
    """Return values as integers, bytes or decimals with the same order. Floats stay floats."""
    kind = values.type
    if pt.is_boolean(kind):
        return values.cast(pa.uint8())
    if pt.is_temporal(kind):
        return values.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pt.is_string(kind) or pt.is_large_string(kind):
        return values.view(pa.binary() if pt.is_string(kind) else pa.large_binary())
    return values.cast(without_negative_scale(kind)) if pt.is_decimal(kind) and kind.scale < 0 else values


def _order(values: NDArray[Any] | pa.Array) -> Any:
    """Return the sort order of values. Returns None if they are already sorted."""
    if isinstance(values, np.ndarray):
        return None if (values[1:] >= values[:-1]).all() else np.argsort(values, kind="stable")
    ordered = len(values) < 2 or pc.all(pc.greater_equal(values[1:], values[:-1])).as_py()
    return None if ordered else pc.sort_indices(values)


def _is_text(type_: pa.DataType) -> bool:
    binary = pt.is_binary(type_) or pt.is_large_binary(type_) or pt.is_fixed_size_binary(type_)
    return bool(binary or pt.is_string(type_) or pt.is_large_string(type_))
