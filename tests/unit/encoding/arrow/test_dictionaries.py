from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.arrow.dictionaries import compact_dictionaries, concatenate
from lance_duck.errors import UnsupportedError

TEXTS = pa.array([f"text {i}" for i in range(100)])


def of_texts(places: list[int | None], index: pa.DataType = pa.int32(), *, ordered: bool = False) -> pa.Array:  # noqa: B008
    return pa.DictionaryArray.from_arrays(pa.array(places, index), TEXTS, ordered=ordered)


def test_a_compacted_dictionary_has_only_used_entries_in_order() -> None:
    found = compact_dictionaries(of_texts([70, None, 3, 70, 12]))
    assert found.to_pylist() == ["text 70", None, "text 3", "text 70", "text 12"]
    assert found.dictionary.to_pylist() == ["text 3", "text 12", "text 70"]


def test_a_small_dictionary_is_unchanged() -> None:
    array = of_texts([5] * 100)
    assert compact_dictionaries(array) is array


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int16(), pa.uint64()])
@pytest.mark.parametrize("ordered", [False, True])
def test_the_dictionary_type_is_kept(index: pa.DataType, ordered: bool) -> None:
    array = of_texts([99, 0], index, ordered=ordered)
    assert compact_dictionaries(array).type == array.type
    assert compact_dictionaries(array).dictionary.to_pylist() == ["text 0", "text 99"]


def test_rows_without_values_need_no_entries() -> None:
    assert len(compact_dictionaries(of_texts([None, None])).dictionary) == 0
    assert compact_dictionaries(of_texts([])).to_pylist() == []


def test_null_slots_may_hold_any_index() -> None:
    indices = pa.Array.from_buffers(pa.int8(), 2, [pa.py_buffer(b"\2"), pa.py_buffer(np.array([-7, 9], np.int8))])
    array = pa.DictionaryArray.from_arrays(indices, TEXTS, safe=False)
    assert compact_dictionaries(array).to_pylist() == [None, "text 9"]


def test_null_entries_are_kept() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int8()), pa.array(["a", None, "b"]))
    assert compact_dictionaries(array).to_pylist() == [None, None]


def test_nested_dictionaries_are_compacted() -> None:
    inner = of_texts([4, None, 90, 4])
    structs = pa.StructArray.from_arrays([inner, pa.array([1, 2, 3, 4])], ["d", "i"], mask=pa.array([False, True] * 2))
    lists = pa.ListArray.from_arrays(pa.array([0, 2, None, 4], pa.int32()), inner)
    deep = pa.LargeListArray.from_arrays(pa.array([0, 1, 3, 4]), structs)
    for array, entries in ((structs, 2), (lists, 2), (deep, 2), (structs.slice(2), 2), (lists.slice(0, 1), 1)):
        found = compact_dictionaries(array)
        assert found.type == array.type
        assert found.to_pylist() == array.to_pylist()
        found.validate(full=True)
        assert len(_dictionary(found)) == entries


def _dictionary(array: pa.Array) -> pa.Array:
    while not pa.types.is_dictionary(array.type):
        array = array.field(0) if pa.types.is_struct(array.type) else array.flatten()
    return array.dictionary


@given(st.lists(st.none() | st.integers(0, 99), max_size=120), st.integers(0, 20))
def test_compaction_keeps_values(places: list[int | None], start: int) -> None:
    array: Any = of_texts(places)[start:]
    found = compact_dictionaries(array)
    found.validate(full=True)
    assert found.to_pylist() == array.to_pylist()
    assert len(found.dictionary) <= max(len(array), 0) or found is array


def test_dictionary_arrays_are_concatenated_by_their_used_entries() -> None:
    parts = [
        pa.DictionaryArray.from_arrays(pa.array([7, None, 3], pa.int8()), pa.array([f"{part} {i}" for i in range(100)]))
        for part in range(4)
    ]
    found = concatenate(parts)
    assert found.type == parts[0].type
    assert found.to_pylist() == [text for part in range(4) for text in (f"{part} 7", None, f"{part} 3")]


def test_dictionary_arrays_with_null_entries_are_concatenated() -> None:
    parts = [pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array([None, text])) for text in "ab"]
    assert concatenate(parts).to_pylist() == ["a", None, "b", None]


def test_more_entries_than_the_index_type_allows_raise_an_error() -> None:
    parts = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), pa.array([f"{part} {i}" for i in range(100)]))
        for part in range(2)
    ]
    with pytest.raises(UnsupportedError, match="dictionaries"):
        concatenate(parts)
