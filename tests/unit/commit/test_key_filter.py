from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.commit.key_filter import key_filter, may_share_keys

numbers = st.sets(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30)


@given(numbers, numbers)
def test_filters_with_a_common_key_may_share_keys(ours: set[int], theirs: set[int]) -> None:
    a, b = key_filter([0], [pa.array(ours)]), key_filter([0], [pa.array(theirs)])
    assert a is not None
    assert b is not None
    assert may_share_keys(a, b) or ours.isdisjoint(theirs)


def test_filters_with_few_keys_are_distinguished() -> None:
    a, b = key_filter([0], [pa.array(range(1000))]), key_filter([0], [pa.array(range(5000, 5100))])
    assert a is not None
    assert b is not None
    assert not may_share_keys(a, b)
    assert (len(a.bloom.bitmap), a.bloom.num_bits, a.bloom.number_of_items) == (32768, 262144, 8192)


def test_nulls_are_not_keys_and_integer_widths_are_equivalent() -> None:
    narrow = key_filter([0], [pa.array([1, None], pa.int32())])
    assert narrow == key_filter([0], [pa.chunked_array([pa.array([1], pa.int64())])])
    assert narrow != key_filter([0], [pa.array([1, 2])])


def test_key_columns_are_hashed_separately() -> None:
    first = key_filter([0, 1], [pa.array(["a"]), pa.array(["bc"])])
    assert first != key_filter([0, 1], [pa.array(["ab"]), pa.array(["c"])])


def test_a_full_filter_may_contain_any_key() -> None:
    full = key_filter([0], [pa.array(np.arange(40_000))])
    one = key_filter([0], [pa.array([-1])])
    assert full is not None
    assert one is not None
    assert may_share_keys(full, one)


def test_other_key_types_have_no_filter() -> None:
    assert key_filter([0], [pa.array([1.5])]) is None


def test_incomparable_filters_may_share_keys() -> None:
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
