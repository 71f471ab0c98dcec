from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.arrow.listed import offsets_of, values_below

STRUCTS = pa.list_(pa.struct([("t", pa.string()), ("u", pa.list_(pa.string()))]))
ROWS = [[{"t": "a", "u": ["x", None]}, None, {"t": None, "u": None}], None, [], [{"t": "b", "u": []}]]


def test_a_field_of_listed_structs_becomes_a_list_of_values() -> None:
    values = values_below(pa.array(ROWS, STRUCTS), ["t"])
    assert values.type == pa.large_list(pa.string())
    assert values.to_pylist() == [["a", None, None], None, [], ["b"]]


def test_nested_lists_keep_their_levels() -> None:
    values = values_below(pa.array(ROWS, STRUCTS), ["u"])
    assert values.to_pylist() == [[["x", None], None, None], None, [], [[]]]


def test_slices_and_nulls_around_lists_are_respected() -> None:
    array = pa.StructArray.from_arrays(
        [pa.array(ROWS, STRUCTS)], ["a"], mask=pa.array([False, False, False, True])
    ).slice(1)
    assert values_below(array, ["a", "t"]).to_pylist() == [None, [], None]
    assert values_below(pa.array(["x"]), []).to_pylist() == ["x"]


@pytest.mark.parametrize(
    "type_", [pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.map_(pa.string(), pa.int8())], ids=str
)
def test_an_empty_list_array_has_a_single_offset(type_: pa.DataType) -> None:
    nothing = pa.py_buffer(b"\xff" * 64).slice(0, 0)
    child = pa.array([], type_.field(0).type)
    assert offsets_of(pa.Array.from_buffers(type_, 0, [None, nothing], children=[child])).tolist() == [0]
    assert offsets_of(pa.array([[], None], type_)[1:]).tolist() == [0, 0]
    two = pa.array([[], [("a", 1)], [("b", 2), ("c", 3)]] if pa.types.is_map(type_) else [[], [1], [2, 3]], type_)
    assert offsets_of(two[1:]).tolist() == [0, 1, 3]
