"""Bounds of key ranges as places of entries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.btree.entries import Run
from lance_duck.index.btree.key_ranges import KeyRanges
from lance_duck.index.btree.keys import BTreeKeys
from lance_duck.index.btree.lookup import Lookup

Int64s = NDArray[np.int64]


class KeyBounds:
    """The places of ascending keys among the entries.

    Args:
        lookup: The page lookup.
        keys: The keys.
        after_equal: Whether a key belongs after entries that are equal to it; else before them.

    Attributes:
        places: int64, place of each key; until `settle` has seen the pages of `groups`, the first value of its page.
        groups: By each page that must be read, the first of its keys and their end.
    """

    def __init__(self, lookup: Lookup, keys: BTreeKeys, after_equal: bool) -> None:
        page, self.places, within = lookup.places(keys, after_equal)
        self.groups: dict[int, tuple[int, int]] = {}
        if len(page) == 1:  # as most queries have it
            if within[0]:
                self.groups[int(page[0])] = 0, 1
        else:
            inside = np.flatnonzero(within)
            for number, (i, j) in groups_of(page[inside]).items():
                self.groups[number] = int(inside[i]), int(inside[j - 1]) + 1
        self._keys = keys
        self._after_equal = after_equal

    def settle(self, page: int, run: Run) -> None:
        """Find the places of the keys in a page."""
        group = self.groups.get(page)
        if group is not None:
            begin, end = group
            places = run.keys.places(self._keys.part(begin, end), self._after_equal)
            self.places[begin:end] = places + run.values_from

    def vague(self, lookup: Lookup, *, after: bool) -> Int64s:
        """Return places without reading pages: where the page of a key ends, or where its values begin."""
        if not self.groups:
            return self.places
        places = self.places.copy()
        for page, (begin, end) in self.groups.items():
            places[begin:end] = lookup.bounds[page + 1] if after else lookup.span(page)[1]
        return places


class End:
    """The place where all entries with a value begin, or end; used in place of `KeyBounds`."""

    def __init__(self, place: int) -> None:
        self.places = np.array([place], np.int64)
        self.groups: dict[int, tuple[int, int]] = {}

    def settle(self, page: int, run: Run) -> None:
        """Do nothing."""

    def vague(self, lookup: Lookup, *, after: bool) -> Int64s:
        """Return the place."""
        return self.places


def ends_of(spans: KeyRanges, lookup: Lookup) -> tuple[KeyBounds | End, KeyBounds | End]:
    """Return the lower and the upper ends of key ranges."""
    low = End(lookup.nulls) if spans.low is None else KeyBounds(lookup, spans.low, spans.low_open)
    high = End(lookup.num_rows) if spans.high is None else KeyBounds(lookup, spans.high, not spans.high_open)
    return low, high


def groups_of(numbers: Int64s) -> dict[int, tuple[int, int]]:
    """Return, for each distinct ascending number, where it begins and where it ends."""
    if len(numbers) == 1:
        return {int(numbers[0]): (0, 1)}
    edges = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    begins, ends = [0, *edges.tolist()], [*edges.tolist(), len(numbers)]
    return dict(zip(numbers[begins].tolist(), zip(begins, ends, strict=True), strict=True)) if len(numbers) else {}
