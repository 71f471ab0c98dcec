from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.text.elements import elements_of, list_depth

LISTS = [["a", None], None, [], ["b"], ["c", "", "d"]]


@pytest.mark.parametrize("type_", [pa.list_(pa.string()), pa.large_list(pa.large_string())])
def test_elements_have_a_row_and_a_position(type_) -> None:
    elements = elements_of(pa.array(LISTS, type_))
    assert elements.texts.to_pylist() == ["a", None, "b", "c", "", "d"]
    assert elements.rows.tolist() == [0, 0, 3, 4, 4, 4]
    assert [level.tolist() for level in elements.places] == [[0, 1, 0, 0, 1, 2]]


def test_elements_of_a_slice_belong_to_its_rows() -> None:
    elements = elements_of(pa.chunked_array([pa.array(LISTS).slice(3), pa.array(LISTS).slice(0, 1)]))
    assert elements.texts.to_pylist() == ["b", "c", "", "d", "a", None]
    assert elements.rows.tolist() == [0, 1, 1, 1, 2, 2]


def test_nested_list_elements_have_one_position_per_level() -> None:
    type_ = pa.list_(pa.list_(pa.string()))
    elements = elements_of(pa.array([[["a"], None, [], ["b", "c"]], None, [["d"]]], type_))
    assert elements.texts.to_pylist() == ["a", "b", "c", "d"]
    assert elements.rows.tolist() == [0, 0, 0, 2]
    assert [level.tolist() for level in elements.places] == [[0, 3, 3, 0], [0, 0, 1, 0]]
    assert list_depth(type_) == 2
    assert list_depth(pa.string()) == 0
