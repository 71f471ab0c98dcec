"""Number sets: each function compared with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, distinct, intersection_of, union_of

DTYPES = st.sampled_from([np.uint8, np.int32, np.uint32, np.int64, np.uint64])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two arrays of one dtype, with small common numbers and the extremes of the dtype."""
    dtype = draw(DTYPES)
    about = np.iinfo(dtype)
    numbers = st.integers(0, 12) | st.sampled_from([int(about.min), int(about.max)])
    made = [draw(arrays(dtype, st.integers(0, 40), elements=numbers)) for _ in range(2)]
    return made[0], made[1]


@given(pairs())
def test_number_sets_equal_those_of_numpy(pair: tuple[NDArray[Any], NDArray[Any]]) -> None:
    left, right = pair
    before = left.copy()
    results = [distinct(left), union_of(left, right), difference_of(left, right), intersection_of(left, right)]
    expected = [np.unique(left), np.union1d(left, right), np.setdiff1d(left, right), np.intersect1d(left, right)]
    for result, reference in zip(results, expected, strict=True):
        assert result.dtype == reference.dtype
        assert result.tolist() == reference.tolist()
    assert (left == before).all()


@pytest.mark.parametrize("shape", [(0, 3), (4, 5)])
def test_distinct_flattens_a_matrix(shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).integers(0, 6, shape)
    assert distinct(matrix).tolist() == np.unique(matrix).tolist()


def test_distinct_floats_equal_those_of_numpy() -> None:
    floats = np.array([0.5, -1.0, 0.5, np.inf, -np.inf, 1e-300])
    assert distinct(floats).tolist() == np.unique(floats).tolist()
