"""Chooses the access method for rows of one fragment.

A take of 100 rows of one column takes this path:

1. After several takes, the decoded column may be cached: `column_cache`.
2. Otherwise, the rows are grouped by fragment, and fragments are read in parallel: `take`.
3. For each fragment, `choose_row_access` decides whether to read single rows or the pages that contain them.

Rows chosen by an index or a filter are split into `tasks`. For these, `choose_row_access` may also decide to read all
rows between them.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from lance_duck.file.column import Rows
from lance_duck.kernels.jit import readonly
from lance_duck.scan.costs import DENSE_SHARE, POINT_ROWS, POINT_SHARE
from lance_duck.store.request import is_watched


class RowAccess(Enum):
    """A method of reading rows of one fragment."""

    POINTS = "each row is decoded separately"
    REQUESTS = "only the pages or values of the rows are read"
    BETWEEN = "all rows from the first to the last are read, then filtered"


def choose_row_access(rows: Rows, num_rows: int, *, may_read_between: bool = False) -> RowAccess:
    """Choose the method of reading rows of one fragment.

    Args:
        rows: The rows: a range, or ascending offsets.
        num_rows: Row count of the fragment.
        may_read_between: Whether all rows between the first and the last one may be read, and the extra rows dropped.
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
    # Single rows are decoded from mapped bytes without requests. Read statistics would therefore not include them.
    return RowAccess.POINTS if 0 < count <= most and is_inside and not is_watched() else RowAccess.REQUESTS


def as_points(rows: Rows) -> NDArray[np.int64]:
    """Return rows as int64 offsets, which kernels use without a further conversion for each column."""
    return readonly(np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows)
