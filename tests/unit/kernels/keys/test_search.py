from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.keys.search import descent, find_bytes, head_words

Texts = st.lists(st.binary(max_size=12) | st.sampled_from([b"", b"\0", b"ab", b"abcdefghij"]), max_size=20)


def stored(values: list[bytes], dtype: type = np.int32) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, values)]).astype(dtype)
    return readonly(offsets), readonly(np.frombuffer(b"".join(values), np.uint8))


@given(Texts, Texts, st.booleans())
def test_insertion_points_equal_those_of_bisect(values, wanted, after_equal) -> None:
    values.sort()
    places = np.empty(len(wanted), np.int64)
    assert find_bytes(*stored(values), *stored(wanted, np.int64), after_equal, places) == status.OK
    bisect = bisect_right if after_equal else bisect_left
    assert places.tolist() == [bisect(values, each) for each in wanted]


@given(Texts)
def test_the_first_descent_is_found(values) -> None:
    found = next((i for i in range(1, len(values)) if values[i] < values[i - 1]), -1)
    assert descent(*stored(values)) == found


@given(Texts, st.integers(0, 10))
def test_words_are_eight_bytes_with_zeros_behind_the_end(values, skip) -> None:
    places = np.arange(len(values))[::-1].copy()
    words = np.empty(len(values), np.uint64)
    assert head_words(*stored(values), skip, places, words) == status.OK
    assert words.tolist() == [int.from_bytes(v[skip : skip + 8].ljust(8, b"\0"), "big") for v in values[::-1]]


@pytest.mark.parametrize("offsets", [[0, 9], [0, -1], [2, 1], [-1, 1]])
def test_offsets_outside_the_data_are_reported(offsets) -> None:
    broken = readonly(np.array(offsets, np.int32)), readonly(np.zeros(3, np.uint8))
    sound = stored([b"abc"])
    place, word = np.zeros(1, np.int64), np.zeros(1, np.uint64)
    assert find_bytes(*broken, *sound, False, place) & 0xFF == status.BAD_OFFSETS
    assert find_bytes(*sound, *broken, False, place) & 0xFF == status.BAD_OFFSETS
    assert descent(*broken) == 0
    assert head_words(*broken, 0, place, word) & 0xFF == status.BAD_OFFSETS
    assert head_words(*sound, 0, place + 1, word) & 0xFF == status.BAD_OFFSETS
