"""Which way rows of a fragment are read."""

from __future__ import annotations

import numpy as np
import pytest

from lance_duck.file.column import Rows
from lance_duck.scan.costs import DENSE_SHARE, POINT_ROWS, POINT_SHARE
from lance_duck.scan.read.row_access import RowAccess, as_points, choose_row_access
from lance_duck.store.request import watched

MANY = 100 * POINT_ROWS * POINT_SHARE


@pytest.mark.parametrize(
    ("rows", "way"),
    [
        (slice(0, POINT_ROWS), RowAccess.POINTS),
        (slice(0, POINT_ROWS + 1), RowAccess.REQUESTS),
        (slice(5, 5), RowAccess.REQUESTS),
        (np.arange(POINT_ROWS) * 1000, RowAccess.POINTS),
        (np.arange(100 * POINT_ROWS) * 10, RowAccess.POINTS),
        (np.arange(100 * POINT_ROWS + 1) * 10, RowAccess.REQUESTS),
        (np.array([3, MANY]), RowAccess.REQUESTS),
        (np.empty(0, np.int64), RowAccess.REQUESTS),
    ],
)
def test_a_few_rows_are_decoded_one_by_one(rows: Rows, way: RowAccess) -> None:
    assert choose_row_access(rows, MANY) is way


def test_close_rows_may_be_read_with_the_rows_between_them() -> None:
    close = np.arange(1000) * DENSE_SHARE
    assert choose_row_access(close, MANY, may_read_between=True) is RowAccess.BETWEEN
    assert choose_row_access(close * 2, MANY, may_read_between=True) is not RowAccess.BETWEEN
    assert choose_row_access(close, MANY) is RowAccess.POINTS


def test_counted_reads_do_not_use_point_access() -> None:
    with watched():
        assert choose_row_access(np.array([1, 5]), MANY) is RowAccess.REQUESTS


def test_points_of_a_range_are_its_offsets() -> None:
    assert as_points(slice(3, 6)).tolist() == [3, 4, 5]
