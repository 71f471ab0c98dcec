from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_duck.rows.row_set import RowSet

NAMES = st.lists(
    st.builds(
        lambda key, offset: key << 32 | offset,
        st.sampled_from([0, 1, 2, 7, 2**32 - 1]),
        st.integers(0, 40) | st.integers(2**32 - 3, 2**32 - 1),
    ),
    max_size=40,
)


def of(names: list[int]) -> RowSet:
    return RowSet.of(np.array(names, np.uint64))


@given(NAMES)
def test_a_set_contains_the_given_rows(names: list[int]) -> None:
    made, plain = of(names), set(names)
    assert list(made) == sorted(plain)
    assert made.rows().dtype == np.uint64
    assert len(made) == len(plain)
    assert bool(made) == bool(plain)
    assert made.fragment_ids == sorted({name >> 32 for name in plain})
    for key in (*made.fragment_ids, 5):
        assert made.offsets(key).tolist() == sorted(name & 0xFFFFFFFF for name in plain if name >> 32 == key)


@given(NAMES, NAMES)
def test_set_operations_equal_those_of_python_sets(left: list[int], right: list[int]) -> None:
    ours, theirs = of(left), of(right)
    assert set(ours & theirs) == set(left) & set(right)
    assert set(ours | theirs) == set(left) | set(right)
    assert set(ours - theirs) == set(left) - set(right)
    assert set(RowSet.union([ours, theirs, ours])) == set(left) | set(right)
    assert (ours == theirs) == (set(left) == set(right))


@given(NAMES, st.sets(st.sampled_from([0, 1, 3, 7])))
def test_a_set_can_be_limited_to_fragments(names: list[int], wanted: set[int]) -> None:
    assert set(of(names).only(wanted)) == {name for name in names if name >> 32 in wanted}


def test_combining_sets_does_not_change_the_operands() -> None:
    left, right = of([1, 2, 3]), of([3, 4, 1 << 32])
    for made in (left | right, left & right, left - right):
        assert made != left
    assert left == of([1, 2, 3])
    assert right == of([3, 4, 1 << 32])


def test_ranges_of_several_fragments_form_one_set() -> None:
    made = RowSet.of_ranges([(2, 0, 3), (0, 5, 6), (2, 2, 5), (1, 4, 4)])
    assert list(made) == [5, *((2 << 32) + i for i in range(5))]
    assert made.fragment_ids == [0, 2]


def test_fragments_without_rows_are_dropped() -> None:
    assert RowSet({3: BitMap(), 4: BitMap([1])}).fragment_ids == [4]
    assert of([1, 2]).filtered(lambda key, part: part - part) == RowSet({})
