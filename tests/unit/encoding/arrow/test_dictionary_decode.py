from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.arrow.dictionary_decode import as_dictionary
from lance_duck.encoding.block import VariableWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.texts.dictionary_decode import MOST, ROOM, number_texts, number_texts_reference


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


def test_repeated_texts_become_a_dictionary_in_order_of_first_use() -> None:
    found = as_dictionary(texts([b"b", b"", b"b", b"a"]))

    assert found is not None
    assert found.indices.tolist() == [0, 1, 0, 2]
    assert isinstance(found.items, VariableWidth)
    assert found.items.data.tobytes() == b"ba"


def test_many_distinct_texts_are_no_dictionary() -> None:
    assert as_dictionary(texts([b"%d" % i for i in range(MOST)])) is not None
    assert as_dictionary(texts([b"%d" % i for i in range(MOST + 1)])) is None


def test_offsets_outside_the_data_are_refused() -> None:
    for offsets in ([0, 5], [2, 1], [-1, 1]):
        with pytest.raises(CorruptError):
            as_dictionary(VariableWidth(np.array(offsets, np.int32), np.zeros(3, np.uint8)))
