from __future__ import annotations

import numpy as np
import pytest

from lance_duck.scan.nearest.queries import is_single_query

DIM = 5
FLOAT32 = np.dtype(np.float32)


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", range(DIM))
def test_a_query_with_a_number_that_is_not_finite_is_not_single(number, place):
    query = np.zeros(DIM, np.float32)
    assert is_single_query(query, DIM, FLOAT32) is True

    query[place] = number

    assert is_single_query(query, DIM, FLOAT32) is False


def test_the_largest_and_smallest_finite_numbers_are_searched():
    limits = np.finfo(np.float32)
    query = np.array([limits.max, limits.min, limits.tiny, limits.smallest_subnormal, -0.0], np.float32)

    assert is_single_query(query, DIM, FLOAT32) is True


@pytest.mark.parametrize(
    "query",
    [
        [0.0] * DIM,
        np.zeros(DIM),
        np.zeros(DIM, ">f4"),
        np.zeros(DIM + 1, np.float32),
        np.zeros((1, DIM), np.float32),
        np.zeros(2 * DIM, np.float32)[::2],
        np.zeros(DIM, np.float32).view(np.recarray),
    ],
    ids=["list", "float64", "big endian", "longer", "matrix", "strided", "subclass"],
)
def test_other_forms_of_a_query_are_not_single(query):
    assert is_single_query(query, DIM, FLOAT32) is False


def test_vectors_of_bits_are_single():
    assert is_single_query(np.array([0, 255], np.uint8), 2, np.dtype(np.uint8)) is True
