"""Ranges of entries, as two arrays of the same length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EntryRanges:
    """Spans of entries, which are not empty and do not overlap.

    Attributes:
        starts: int64, place of the first entry of each span, ascending.
        stops: int64, one past the last entry of each span.
    """

    starts: Int64s
    stops: Int64s

    @property
    def count(self) -> int:
        """Number of entries in all spans."""
        if len(self.starts) == 1:
            return int(self.stops[0]) - int(self.starts[0])
        return int((self.stops - self.starts).sum())

    def rest(self, start: int, stop: int) -> EntryRanges:
        """Return the spans between two places that are in none of these spans, which all lie between the places."""
        starts, stops = np.append(start, self.stops), np.append(self.starts, stop)
        full = stops > starts
        return EntryRanges(starts[full], stops[full])


def one_span(start: int, stop: int) -> EntryRanges:
    """Return the span of entries from one place to another; no span if it is empty."""
    count = int(stop > start)
    return EntryRanges(np.full(count, start, np.int64), np.full(count, stop, np.int64))


def united(starts: Int64s, stops: Int64s) -> EntryRanges:
    """Return the union of spans, which may overlap, be empty, and come in any order."""
    full = stops > starts
    if len(full) == 1 and full[0]:
        return EntryRanges(starts, stops)
    if not full.all():
        starts, stops = starts[full], stops[full]
    if len(starts) < 2:
        return EntryRanges(starts, stops)
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(stops[order])
    apart = starts[1:] > reach[:-1]
    return EntryRanges(starts[np.append(True, apart)], reach[np.append(apart, True)])


def by_page(places: EntryRanges, bounds: Int64s) -> tuple[Int64s, EntryRanges]:
    """Cut spans where pages begin.

    Args:
        places: The spans.
        bounds: First entry of each page, ascending, and the number of entries.

    Returns:
        The page of each piece, and the pieces.
    """
    first = bounds.searchsorted(places.starts, side="right") - 1
    last = bounds.searchsorted(places.stops, side="left") - 1
    counts = last - first + 1
    if counts[0] == 1 if len(counts) == 1 else (counts == 1).all():
        return first, places
    span = np.repeat(np.arange(len(counts)), counts)
    page = np.arange(len(span)) - np.repeat(np.cumsum(counts) - counts, counts) + first[span]
    starts = np.maximum(places.starts[span], bounds[page])
    return page, EntryRanges(starts, np.minimum(places.stops[span], bounds[page + 1]))
