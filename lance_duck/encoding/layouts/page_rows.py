"""Row selections of a page: checks, and runs of adjacent rows or chunks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.layouts.page import Rows
from lance_duck.errors import InternalError

Int64s = NDArray[np.int64]


def check_rows(rows: Rows, num_rows: int) -> int:
    """Check that the selected rows lie in the page, and return their number.

    Raises:
        InternalError: Rows are not ascending, or lie outside [0, num_rows).
    """
    if isinstance(rows, slice):
        start, stop = slice_bounds(rows)
        if not 0 <= start <= stop <= num_rows:
            raise InternalError(
                "the row range is outside the page", expected=f"within {num_rows} rows", found=f"{start}:{stop}"
            )
        return stop - start
    if len(rows) and (rows[0] < 0 or rows[-1] >= num_rows or np.any(rows[1:] <= rows[:-1])):
        raise InternalError("the row offsets are invalid", expected=f"strictly ascending offsets below {num_rows}")
    return len(rows)


def slice_bounds(rows: slice) -> tuple[int, int]:
    """Return the start and stop of a slice. It must have both, and a step of 1.

    Raises:
        InternalError: A bound is missing, or the step is not 1.
    """
    if rows.start is None or rows.stop is None or rows.step not in (None, 1):
        raise InternalError("the row range lacks a bound, or has a step", expected="start:stop", found=rows)
    return int(rows.start), int(rows.stop)


def as_array(rows: Rows) -> Int64s:
    """Return rows as an array of offsets."""
    return np.arange(*slice_bounds(rows), dtype=np.int64) if isinstance(rows, slice) else rows


def adjacent_runs(ids: Int64s) -> tuple[Int64s, Int64s]:
    """Return the first and the last (inclusive) of each run of adjacent numbers in a strictly ascending array."""
    breaks = np.flatnonzero(ids[1:] != ids[:-1] + 1)
    first = np.concatenate([np.zeros(1, dtype=np.int64), breaks + 1])
    return ids[first], ids[np.append(breaks, len(ids) - 1)]


def expand_ranges(starts: Int64s, stops: Int64s) -> Int64s:
    """Return all numbers of the ranges [starts[i], stops[i]), concatenated."""
    sizes = stops - starts
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Int64s = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - sizes), sizes)
    return numbers
