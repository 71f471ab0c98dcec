from __future__ import annotations

import numpy as np
import pytest

from lance_duck.index.vector.layout import Partitions
from lance_duck.index.vector.search.chance import AllowedCounts, are_few, are_uneven

COUNTS = AllowedCounts(Partitions(np.array([0, 0, 400]), np.array([400, 0, 600])))


def allowed(first: int, last: int) -> np.ndarray:
    """Return a mask with the given counts of allowed vectors in the first and the last partition."""
    mask = np.zeros(1000, np.bool_)
    mask[:first] = True
    mask[400 : 400 + last] = True
    return mask


def test_allowed_vectors_are_counted_by_partition() -> None:
    assert COUNTS.of(allowed(30, 7)).tolist() == [30, 0, 7]


def test_a_mutable_mask_is_counted_again() -> None:
    mask = allowed(30, 7)
    COUNTS.of(mask)
    mask[0] = False
    assert COUNTS.of(mask).tolist() == [29, 0, 7]
    mask.flags.writeable = False
    assert COUNTS.of(mask) is COUNTS.of(mask)


def test_a_query_with_few_allowed_vectors_nearby_is_detected() -> None:
    mask, nearest = allowed(90, 410), np.array([[0, -1], [2, -1], [0, 2], [1, -1]])
    assert COUNTS.are_few(mask, 0.5, nearest).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("count", "expected", "few"), [(0, 0, True), (0, 8.9, False), (0, 9.1, True), (49, 100, True), (51, 100, False)]
)
def test_random_variation_is_not_reported_as_few(count: int, expected: float, few: bool) -> None:
    assert bool(are_few(np.array([count]), np.array([expected]))[0]) is few


@pytest.mark.parametrize(
    ("counts", "tied"),
    [
        ([100] * 10, False),
        ([85, 115, 93, 107, 98, 102, 111, 89, 100, 100], False),  # as chance has it
        ([30, 170] * 5, True),
        ([0] + [100] * 9, True),
        ([200] * 10, False),
        ([0] * 10, False),
    ],
)
def test_uneven_partition_counts_mark_a_filter_as_tied(counts: list[int], tied: bool) -> None:
    assert are_uneven(np.array(counts), np.full(len(counts), 200)) is tied


def test_small_relative_differences_are_ignored() -> None:
    few, many = np.array([95, 105] * 50), np.array([95_000, 105_000] * 50)
    assert not are_uneven(few, np.full(100, 200))
    assert not are_uneven(many, np.full(100, 200_000))  # more than chance explains, but a twentieth


def test_a_single_partition_is_never_uneven() -> None:
    assert not are_uneven(np.array([3]), np.array([200]))


def test_a_mask_with_uneven_counts_is_tied() -> None:
    assert COUNTS.are_tied(allowed(200, 7))
    assert not COUNTS.are_tied(allowed(200, 300))


def test_an_even_large_partition_does_not_hide_uneven_small_ones() -> None:
    sizes = np.array([6000, 400, 400, 400, 400, 400])
    assert are_uneven(np.array([3000, 380, 20, 130, 270, 200]), sizes)
    assert not are_uneven(np.array([3000, 190, 210, 195, 205, 200]), sizes)
