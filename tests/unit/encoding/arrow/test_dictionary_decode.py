from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.arrow.blocks import dictionary_of_repeats
from lance_duck.encoding.block import VariableWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.texts.dictionary_decode import (
    MOST,
    ROOM,
    are_bytes,
    are_bytes_reference,
    number_bytes,
    number_bytes_reference,
    number_texts,
    number_texts_reference,
)


def texts(values: list[bytes]) -> VariableWidth:
    offsets = np.cumsum([1, *map(len, values)]).astype(np.int32)
    return VariableWidth(offsets, np.frombuffer(b"_" + b"".join(values), np.uint8))


@given(st.lists(st.binary(max_size=3), max_size=50))
def test_number_texts_equals_its_reference(values: list[bytes]) -> None:
    block = texts(values)
    places, expected = np.zeros(len(values), np.uint32), np.zeros(len(values), np.uint32)
    firsts, first = np.zeros(MOST, np.int64), np.zeros(MOST, np.int64)

    table = np.full(ROOM, -1, np.int32)

    found = number_texts(block.offsets, block.data, places, firsts, table)

    assert found == number_texts_reference(block.offsets, block.data, expected, first, table)
    assert places.tolist() == expected.tolist()
    assert firsts.tolist() == first.tolist()


@given(st.binary(min_size=1, max_size=300), st.integers(0, 2))
def test_number_bytes_equals_its_reference_and_number_texts(values: bytes, start: int) -> None:
    data = np.frombuffer(b"__"[:start] + values, np.uint8)
    offsets = np.arange(start, start + len(values) + 1, dtype=np.int32)
    found = []
    for number in (number_bytes, number_bytes_reference):
        places, firsts = np.zeros(len(values), np.uint32), np.zeros(MOST, np.int64)
        count = number(data, start, places, firsts, np.full(ROOM, -1, np.int32))
        found.append((count, places.tolist(), firsts.tolist()))
    places, firsts = np.zeros(len(values), np.uint32), np.zeros(MOST, np.int64)
    count = number_texts(offsets, data, places, firsts, np.full(ROOM, -1, np.int32))

    assert found[0] == found[1] == (count, places.tolist(), firsts.tolist())


@given(st.lists(st.integers(0, 2), max_size=20), st.integers(0, 3))
def test_are_bytes_equals_its_reference(sizes: list[int], start: int) -> None:
    offsets = np.cumsum([start, *sizes]).astype(np.int32)

    assert are_bytes(offsets) == are_bytes_reference(offsets) == all(size == 1 for size in sizes)


@given(st.lists(st.sampled_from([b"a", b"b", b"", b"cd"]), min_size=1, max_size=40), st.booleans())
def test_a_string_dictionary_returns_its_values(values: list[bytes], only_bytes: bool) -> None:
    kept = [value for value in values if len(value) == 1] or [b"a"] if only_bytes else values

    found = dictionary_of_repeats(texts(kept))

    assert found is not None
    assert isinstance(found.items, VariableWidth)
    ends, data = found.items.offsets, found.items.data.tobytes()
    items = [data[start:end] for start, end in pairwise(ends.tolist())]
    assert [items[place] for place in found.indices] == kept


def test_repeated_strings_become_a_dictionary_in_order_of_first_use() -> None:
    found = dictionary_of_repeats(texts([b"b", b"", b"b", b"a"]))

    assert found is not None
    assert found.indices.tolist() == [0, 1, 0, 2]
    assert isinstance(found.items, VariableWidth)
    assert found.items.data.tobytes() == b"ba"


def test_many_distinct_strings_do_not_become_a_dictionary() -> None:
    assert dictionary_of_repeats(texts([b"%d" % i for i in range(MOST)])) is not None
    assert dictionary_of_repeats(texts([b"%d" % i for i in range(MOST + 1)])) is None


def test_offsets_outside_the_data_are_rejected() -> None:
    for offsets in ([0, 5], [2, 1], [-1, 1]):
        with pytest.raises(CorruptError):
            dictionary_of_repeats(VariableWidth(np.array(offsets, np.int32), np.zeros(3, np.uint8)))
