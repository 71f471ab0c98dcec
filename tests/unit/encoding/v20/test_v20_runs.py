from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.v20.runs import RowRuns, merged_runs, runs_of_rows, span
from lance_duck.errors import InvalidInputError


def rows(runs: RowRuns) -> list[int]:
    return [i for a, b in zip(runs.starts.tolist(), runs.stops.tolist(), strict=True) for i in range(a, b)]


@given(st.sets(st.integers(0, 60)), st.lists(st.integers(0, 61), max_size=5))
def test_runs_hold_rows_and_are_split_by_pages(chosen: set[int], cuts: list[int]) -> None:
    array = np.array(sorted(chosen), np.int64)
    runs = runs_of_rows(array, 61)
    assert rows(runs) == array.tolist()
    assert runs.count == len(array)
    assert (runs.starts[1:] > runs.stops[:-1]).all()
    bounds = np.array([0, *sorted(cuts), 61])
    parts = runs.split(bounds)
    assert [i + bounds[page] for page, part in parts for i in rows(part)] == array.tolist()
    for page, part in parts:
        assert 0 < part.count <= part.stop <= bounds[page + 1] - bounds[page]


@given(st.integers(0, 30), st.integers(1, 31), st.lists(st.integers(0, 61), max_size=5))
def test_one_run_is_split_at_page_boundaries(start: int, count: int, cuts: list[int]) -> None:
    runs = span(start, start + count)
    assert runs.count == count
    bounds = np.array([0, *sorted(cuts), 61])
    expected = [
        (page, kept)
        for page in range(len(bounds) - 1)
        if (kept := [i - bounds[page] for i in rows(runs) if bounds[page] <= i < bounds[page + 1]])
    ]
    assert [(page, rows(part)) for page, part in runs.split(bounds)] == expected


def test_slices_become_one_run() -> None:
    assert rows(runs_of_rows(slice(3, 6), 10)) == [3, 4, 5]
    assert rows(runs_of_rows(slice(None), 3)) == [0, 1, 2]
    assert rows(runs_of_rows(slice(4, 4), 10)) == []


@pytest.mark.parametrize("bad", [slice(0, 11), slice(-1, 2), slice(5, 4), slice(0, 4, 2)])
def test_slices_outside_the_column_are_rejected(bad: slice) -> None:
    with pytest.raises(InvalidInputError):
        runs_of_rows(bad, 10)


@pytest.mark.parametrize("bad", [[-1, 2], [3, 10], [4, 4], [5, 3]])
def test_rows_outside_the_column_or_out_of_order_are_rejected(bad: list[int]) -> None:
    with pytest.raises(InvalidInputError):
        runs_of_rows(np.array(bad), 10)


def test_touching_and_empty_extents_are_merged() -> None:
    runs = merged_runs(np.array([0, 2, 2, 5, 9]), np.array([2, 2, 4, 6, 9]))
    assert (runs.starts.tolist(), runs.stops.tolist()) == ([0, 5], [4, 6])


def test_scaled_runs_cover_all_items() -> None:
    assert rows(span(1, 3).scaled(2)) == [2, 3, 4, 5]
