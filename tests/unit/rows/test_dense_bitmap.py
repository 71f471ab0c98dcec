"""Bitmaps built from bits equal those from sorted row ids."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_duck.kernels.jit import readonly
from lance_duck.kernels.keys import bits
from lance_duck.rows.row_set import RowSet, bitmap_of, dense_parts


def names(rng: np.random.Generator, count: int, fragments: int, size: int, least: int = 0) -> np.ndarray:
    upper = rng.integers(least, least + fragments, count).astype(np.uint64)
    return upper << np.uint64(32) | rng.integers(0, size, count).astype(np.uint64)


@settings(max_examples=25)
@given(seed=st.integers(0, 1 << 32))
def test_kernels_are_their_references(seed):
    rng = np.random.default_rng(seed)
    given_names = readonly(names(rng, 300, 5, 2_000, int(rng.integers(0, 1 << 31))))
    found, expected = np.zeros(3, np.uint64), np.zeros(3, np.uint64)
    bits.bounds_of_names(given_names, found)
    bits.bounds_of_names_reference(given_names, expected)
    assert found.tolist() == expected.tolist()
    shape = int(found[1] - found[0]) + 1, (int(found[2]) >> 6) + 1
    words, plain = np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    bits.set_bits(given_names, int(found[0]), words)
    bits.set_bits_reference(given_names, int(found[0]), plain)
    assert (words == plain).all()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1 << 32),
    fragments=st.sampled_from([1, 3]),
    size=st.sampled_from([1, 65_536, 65_537, 400_000]),
    least=st.sampled_from([0, 7, (1 << 32) - 3]),
)
def test_many_row_ids_become_the_same_set(seed, fragments, size, least):
    rng = np.random.default_rng(seed)
    many = names(rng, int(rng.choice([20_000, 60_000])), fragments, size, least)
    expected: dict[int, BitMap] = {}
    for key in np.unique(many >> np.uint64(32)).tolist():
        expected[key] = BitMap(np.unique(many[many >> np.uint64(32) == key] & np.uint64(0xFFFFFFFF)).tolist())
    assert dict(RowSet.of(many).parts) == expected
    found = dense_parts(many)
    if found is not None:
        assert {key: part for key, part in found.items() if part} == expected


def test_distant_row_ids_are_sorted():
    far = np.arange(20_000, dtype=np.uint64) << np.uint64(40)
    assert dense_parts(far) is None
    assert len(RowSet.of(far[::-1])) == 20_000


def test_a_few_row_ids_are_sorted():
    assert dense_parts(np.arange(100, dtype=np.uint64)) is None


@pytest.mark.parametrize("values", [[], [0], [65_535, 65_536], [200_000], list(range(4_096)), list(range(4_097))])
def test_bits_become_a_bitmap(values):
    words = np.zeros(4 * 1024, np.uint64)
    for value in values:
        words[value >> 6] |= np.uint64(1 << (value & 63))
    found = bitmap_of(words)
    assert found == BitMap(values)
    assert list(found) == values
