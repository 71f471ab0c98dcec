from __future__ import annotations

import pyarrow as pa

from lance_duck.arrow.listed import values_below

STRUCTS = pa.list_(pa.struct([("t", pa.string()), ("u", pa.list_(pa.string()))]))
ROWS = [[{"t": "a", "u": ["x", None]}, None, {"t": None, "u": None}], None, [], [{"t": "b", "u": []}]]


def test_a_field_of_structs_in_a_list_is_a_list_of_its_values() -> None:
    values = values_below(pa.array(ROWS, STRUCTS), ["t"])
    assert values.type == pa.large_list(pa.string())
    assert values.to_pylist() == [["a", None, None], None, [], ["b"]]


def test_lists_on_the_way_are_lists_of_lists() -> None:
    values = values_below(pa.array(ROWS, STRUCTS), ["u"])
    assert values.to_pylist() == [[["x", None], None, None], None, [], [[]]]


def test_parts_of_arrays_and_structs_around_lists_give_their_own_rows() -> None:
    array = pa.StructArray.from_arrays(
        [pa.array(ROWS, STRUCTS)], ["a"], mask=pa.array([False, False, False, True])
    ).slice(1)
    assert values_below(array, ["a", "t"]).to_pylist() == [None, [], None]
    assert values_below(pa.array(["x"]), []).to_pylist() == ["x"]
