"""Converts queries to key ranges, and finds the positions of these ranges among the entries.

In queries, all NaNs are equal regardless of their bits, NaN is greater than all other floats, and -0.0 equals 0.0. The
order of keys distinguishes these values, and has NaNs at both ends. A query on floats therefore becomes up to three
ranges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_duck.errors import InternalError
from lance_duck.index.btree.keys import BTreeKeys, ByteKeys, FixedKeys, Int64s, float_dtype, float_keys, key_maker
from lance_duck.index.btree.open import Lookup, Run
from lance_duck.index.query import Among, Between, HasPrefix, Query


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Ranges of keys, each from low[i] to high[i]. A range is empty if its lower end is above its upper end.

    Attributes:
        low: Lower ends, ascending. If None, a single range begins at the first key.
        high: Upper ends, ascending. If None, a single range ends at the last key.
        low_open: Whether the ranges exclude their lower ends.
        high_open: Whether the ranges exclude their upper ends.
    """

    low: BTreeKeys | None = None
    high: BTreeKeys | None = None
    low_open: bool = False
    high_open: bool = False


def key_ranges_of(query: Query, type_: pa.DataType) -> list[KeyRanges]:
    """Return the key ranges of the values that satisfy a query, in any order.

    Args:
        query: The query, neither `Null` nor `Except`.
        type_: Type of the values.
    """
    make = key_maker(type_)
    if make is None:
        raise InternalError("the type does not have an order", found=type_)
    if isinstance(query, Among):
        keys = make(query.values).ascending()
        if not len(keys):
            return []
        return (
            _among_floats(keys, type_)
            if isinstance(keys, FixedKeys) and pa.types.is_floating(type_)
            else [KeyRanges(keys, keys)]
        )
    if isinstance(query, HasPrefix):
        return [_prefix(query.prefix)]
    if isinstance(query, Between):
        if pa.types.is_floating(type_):
            return _between_floats(query, type_)
        low, high = (None if s is None else make(pa.array([s], type_)) for s in (query.low, query.high))
        return [KeyRanges(low, high, query.low_open, query.high_open)]
    raise InternalError("a B-tree cannot evaluate the query", found=query)


def _prefix(prefix: pa.Scalar) -> KeyRanges:
    """Return the range from a prefix up to the first greater key that does not begin with it."""
    text = prefix.as_py()
    data = text.encode() if isinstance(text, str) else bytes(text)
    head = data.rstrip(b"\xff")
    return KeyRanges(_one(data), _one(head[:-1] + bytes([head[-1] + 1])) if head else None, high_open=True)


def _one(data: bytes) -> ByteKeys:
    return ByteKeys(np.array([0, len(data)], np.int64), np.frombuffer(data, np.uint8))


def _among_floats(keys: FixedKeys, type_: pa.DataType) -> list[KeyRanges]:
    array = keys.array
    number = (array >= _key(-np.inf, type_).array) & (array <= _key(np.inf, type_).array)
    result = [] if number.all() else _nans(type_)
    array = array[number]
    if len(array):  # -1 is -0.0, and 0 is 0.0
        low, high = np.where(array == 0, -1, array), np.where(array == -1, 0, array)
        result.append(KeyRanges(FixedKeys(low.astype(array.dtype)), FixedKeys(high.astype(array.dtype))))
    return result


def _between_floats(query: Between, type_: pa.DataType) -> list[KeyRanges]:
    low = None if query.low is None else float(query.low.as_py())
    high = None if query.high is None else float(query.high.as_py())
    from_nan, to_nan = low is not None and np.isnan(low), high is None or np.isnan(high)
    if (from_nan and query.low_open) or (from_nan and not to_nan):
        return []
    with_nan = to_nan and not (high is not None and query.high_open)
    if from_nan:
        return _nans(type_) if with_nan else []
    if low is None:
        start, start_open = _key(-np.inf, type_), False
    else:
        start, start_open = _key(low or (0.0 if query.low_open else -0.0), type_), query.low_open
    if with_nan:
        return [KeyRanges(start, None, start_open), _nans(type_)[0]]
    if high is None or np.isnan(high):
        return [KeyRanges(start, _key(np.inf, type_), start_open)]
    return [KeyRanges(start, _key(high or (-0.0 if query.high_open else 0.0), type_), start_open, query.high_open)]


def _nans(type_: pa.DataType) -> list[KeyRanges]:
    """Return the ranges of NaN: below -inf and above inf."""
    return [KeyRanges(None, _key(-np.inf, type_), high_open=True), KeyRanges(_key(np.inf, type_), None, low_open=True)]


def _key(value: float, type_: pa.DataType) -> FixedKeys:
    return FixedKeys(float_keys(np.array([value], float_dtype(type_))))


class KeyBounds:
    """The positions of ascending keys among the entries.

    Args:
        lookup: The page lookup.
        keys: The keys.
        after_equal: Whether the position of a key is after equal entries instead of before them.

    Attributes:
        places: int64 (keys,), position of each key. For keys in `groups`, it is the position of the page's first value
            until `settle` is called.
        groups: Maps each page that must be read to the range of the keys within it.
    """

    def __init__(self, lookup: Lookup, keys: BTreeKeys, after_equal: bool) -> None:
        page, self.places, within = lookup.places(keys, after_equal)
        self.groups: dict[int, tuple[int, int]] = {}
        if len(page) == 1:  # the usual case
            if within[0]:
                self.groups[int(page[0])] = 0, 1
        else:
            inside = np.flatnonzero(within)
            for number, (i, j) in groups_of(page[inside]).items():
                self.groups[number] = int(inside[i]), int(inside[j - 1]) + 1
        self._keys = keys
        self._after_equal = after_equal

    def settle(self, page: int, run: Run) -> None:
        """Find the exact positions of the keys within a page, given its entries."""
        group = self.groups.get(page)
        if group is not None:
            begin, end = group
            places = run.keys.places(self._keys.part(begin, end), self._after_equal)
            self.places[begin:end] = places + run.values_from

    def vague(self, lookup: Lookup, *, after: bool) -> Int64s:
        """Return positions without reading pages. For keys in `groups`, this is a page's first value or its end."""
        if not self.groups:
            return self.places
        places = self.places.copy()
        for page, (begin, end) in self.groups.items():
            places[begin:end] = lookup.bounds[page + 1] if after else lookup.span(page)[1]
        return places


class End:
    """The end of an unbounded range, with the interface of `KeyBounds`."""

    def __init__(self, place: int) -> None:
        self.places = np.array([place], np.int64)
        self.groups: dict[int, tuple[int, int]] = {}

    def settle(self, page: int, run: Run) -> None:
        """Do nothing."""

    def vague(self, lookup: Lookup, *, after: bool) -> Int64s:
        """Return the position."""
        return self.places


def ends_of(spans: KeyRanges, lookup: Lookup) -> tuple[KeyBounds | End, KeyBounds | End]:
    """Return the positions of the lower and the upper ends of key ranges."""
    low = End(lookup.nulls) if spans.low is None else KeyBounds(lookup, spans.low, spans.low_open)
    high = End(lookup.num_rows) if spans.high is None else KeyBounds(lookup, spans.high, not spans.high_open)
    return low, high


def groups_of(numbers: Int64s) -> dict[int, tuple[int, int]]:
    """Map each distinct number of an ascending array to the range of its positions."""
    if len(numbers) == 1:
        return {int(numbers[0]): (0, 1)}
    edges = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    begins, ends = [0, *edges.tolist()], [*edges.tolist(), len(numbers)]
    return dict(zip(numbers[begins].tolist(), zip(begins, ends, strict=True), strict=True)) if len(numbers) else {}
