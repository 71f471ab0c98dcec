"""Selections of a page: runs of adjacent values, in order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError

Ints = NDArray[np.int64]
Rows = slice | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowRuns:
    """Runs of values from starts[i] to stops[i] (exclusive). Runs are not empty, ascend, and have gaps between them.

    Attributes:
        starts: int64 (n,).
        stops: int64 (n,).
    """

    starts: Ints
    stops: Ints

    @property
    def counts(self) -> Ints:
        """Number of values in each run, int64."""
        return self.stops - self.starts

    @property
    def count(self) -> int:
        """Number of values in all runs."""
        return int(self.stops[0] - self.starts[0]) if len(self.starts) == 1 else int(self.counts.sum())

    @property
    def stop(self) -> int:
        """One past the last value, or 0 if empty."""
        return int(self.stops[-1]) if len(self.stops) else 0

    def value_at(self, position: int) -> int:
        """Return the value at a position in the concatenated runs."""
        ends = np.cumsum(self.counts)
        run = int(np.searchsorted(ends, position, side="right"))
        return int(self.stops[run] - (ends[run] - position))

    def scaled(self, factor: int) -> RowRuns:
        """Return the runs with each value counted `factor` times. The caller has checked for overflow."""
        return RowRuns(self.starts * factor, self.stops * factor)

    def split(self, bounds: Ints) -> list[tuple[int, RowRuns]]:
        """Return (page number, runs) for each page that contains values of the runs. Runs are relative to their page.

        Args:
            bounds: int64 (k + 1,), ascending: page i has the values bounds[i] to bounds[i + 1] (exclusive).
        """
        firsts = np.searchsorted(self.stops, bounds[:-1], side="right")
        lasts = np.searchsorted(self.starts, bounds[1:], side="left")
        pages = np.flatnonzero((firsts < lasts) & (bounds[:-1] < bounds[1:])).tolist()
        if len(self.starts) == 1:
            starts, stops = (np.clip(edge, bounds[:-1], bounds[1:]) - bounds[:-1] for edge in (self.starts, self.stops))
            return [(page, RowRuns(starts[page : page + 1], stops[page : page + 1])) for page in pages]
        parts: list[tuple[int, RowRuns]] = []
        for page in pages:
            page_runs, start, stop = slice(firsts[page], lasts[page]), bounds[page], bounds[page + 1]
            starts = np.maximum(self.starts[page_runs], start) - start
            parts.append((page, RowRuns(starts, np.minimum(self.stops[page_runs], stop) - start)))
        return parts


NOTHING = RowRuns(np.empty(0, np.int64), np.empty(0, np.int64))


def span(start: int, stop: int) -> RowRuns:
    """Return the run from `start` to `stop` (exclusive)."""
    if start >= stop:
        return NOTHING
    return RowRuns(np.array([start], np.int64), np.array([stop], np.int64))


def merged_runs(starts: Ints, stops: Ints) -> RowRuns:
    """Merge ascending extents, which may be empty or touch each other, into runs."""
    filled = stops > starts
    if not filled.all():
        starts, stops = starts[filled], stops[filled]
    if len(starts) < 2:
        return RowRuns(starts, stops)
    apart = starts[1:] > stops[:-1]
    return RowRuns(starts[np.concatenate(([True], apart))], stops[np.concatenate((apart, [True]))])


def runs_of_rows(rows: Rows, num_rows: int) -> RowRuns:
    """Return the runs of rows in a column of `num_rows` rows.

    Raises:
        InvalidInputError: A row is outside the column, the step is not 1, or rows do not ascend.
    """
    if isinstance(rows, slice):
        start, stop = rows.start or 0, num_rows if rows.stop is None else rows.stop
        if rows.step not in (None, 1) or not 0 <= start <= stop <= num_rows:
            raise InvalidInputError("the row range is outside the column", expected=f"within 0:{num_rows}", found=rows)
        return span(start, stop)
    rows = rows.astype(np.int64, copy=False)
    if len(rows) == 0:
        return NOTHING
    if rows[0] < 0 or rows[-1] >= num_rows or not (rows[1:] > rows[:-1]).all():
        raise InvalidInputError(
            "the row offsets are invalid", where="take", expected=f"ascending offsets within 0:{num_rows}"
        )
    return merged_runs(rows, rows + 1)
