from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.commit.key_filter import key_filter, may_share_keys

numbers = st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30)


@given(numbers, numbers)
def test_filters_that_share_a_key_say_so(ours: set[int], theirs: set[int]) -> None:
    a, b = key_filter([0], [pa.array(ours)]), key_filter([0], [pa.array(theirs)])
    assert a is not None
    assert b is not None
    assert may_share_keys(a, b) or ours.isdisjoint(theirs)


def test_few_keys_are_told_apart() -> None:
    a, b = key_filter([0], [pa.array(range(1000))]), key_filter([0], [pa.array(range(5000, 5100))])
    assert a is not None
    assert b is not None
    assert not may_share_keys(a, b)
    assert (len(a.bloom.bitmap), a.bloom.num_bits, a.bloom.number_of_items) == (32768, 262144, 8192)


def test_a_null_is_no_key_and_integers_of_all_widths_are_alike() -> None:
    narrow = key_filter([0], [pa.array([1, None], pa.int32())])
    assert narrow == key_filter([0], [pa.chunked_array([pa.array([1], pa.int64())])])
    assert narrow != key_filter([0], [pa.array([1, 2])])


def test_parts_of_a_key_do_not_run_together() -> None:
    first = key_filter([0, 1], [pa.array(["a"]), pa.array(["bc"])])
    assert first != key_filter([0, 1], [pa.array(["ab"]), pa.array(["c"])])


def test_too_many_keys_may_be_any() -> None:
    full = key_filter([0], [pa.array(np.arange(40_000))])
    one = key_filter([0], [pa.array([-1])])
    assert full is not None
    assert one is not None
    assert may_share_keys(full, one)


def test_no_filter_for_other_types() -> None:
    assert key_filter([0], [pa.array([1.5])]) is None


def test_filters_that_cannot_be_compared_may_share_keys() -> None:
    a, other, exact = (key_filter([0], [pa.array([n])]) for n in (1, 2, 3))
    assert a is not None
    assert other is not None
    assert exact is not None
    other.bloom.number_of_items = 5
    exact.exact.hashes.append(7)
    assert may_share_keys(a, other)
    assert may_share_keys(a, exact)
    assert may_share_keys(exact, exact)
    apart = type(exact)(field_ids=[0], exact={"hashes": [8]})
    assert not may_share_keys(exact, apart)
    a.bloom.bitmap = b"cut"
    assert may_share_keys(a, a)
