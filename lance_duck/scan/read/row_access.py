"""How rows of one fragment are read.

A take of 100 rows of one column goes this way:

1. Its column may be decoded in memory, after takes of it: `column_cache`.
2. Else its rows are cut into fragments, which are read at once: `take`.
3. For each fragment `choose_row_access` says how: few rows one by one, else by requests for the pages that have them.

Rows that an index chose, or that a filter left, are cut into `tasks`; of these, `choose_row_access` may also say that
all rows between them are read.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from lance_duck.file.column import Rows
from lance_duck.scan.costs import DENSE_SHARE, POINT_ROWS, POINT_SHARE
from lance_duck.store.request import is_watched


class RowAccess(Enum):
    """How rows of one fragment are read."""

    POINTS = "each row is decoded by itself"
    REQUESTS = "requests for the pages, or values, that have the rows"
    BETWEEN = "all rows from the first to the last, and those between are left out"


def choose_row_access(rows: Rows, num_rows: int, *, may_read_between: bool = False) -> RowAccess:
    """Decide how rows of one fragment are read.

    Args:
        rows: The rows: a range, or ascending offsets.
        num_rows: Rows of the fragment.
        may_read_between: Rows between those that are wanted may be read and left out.
    """
    if isinstance(rows, slice):
        count, first, last = rows.stop - rows.start, rows.start, rows.stop - 1
    elif len(rows):
        count, first, last = len(rows), int(rows[0]), int(rows[-1])
    else:
        return RowAccess.REQUESTS
    if may_read_between and count * DENSE_SHARE >= last - first + 1:
        return RowAccess.BETWEEN
    most = POINT_ROWS if isinstance(rows, slice) else max(POINT_ROWS, num_rows // POINT_SHARE)
    is_inside = first >= 0 and last < num_rows
    # Points are decoded from mapped bytes, past the requests that are counted while they are watched.
    return RowAccess.POINTS if 0 < count <= most and is_inside and not is_watched() else RowAccess.REQUESTS


def as_points(rows: Rows) -> NDArray[np.int64]:
    """Return the rows as offsets."""
    return np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows
