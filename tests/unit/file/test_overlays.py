"""Array values replaced at some positions, at any struct depth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.file.overlays import replace_cells


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.string_view(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_values_of_any_layout(type_: pa.DataType) -> None:
    def texts(*values: str | None) -> pa.Array:
        plain = pa.array(values, pa.string())
        return plain.dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else plain.cast(type_)

    old = texts("x", "a", "b", None, "a text of more than twelve bytes").slice(1)
    found = replace_cells(old, (), [np.array([2, 0]), np.array([1])], [texts("two", None), texts("one")])
    assert found.type == type_
    assert found.to_pylist() == [None, "one", "two", "a text of more than twelve bytes"]


def test_an_overlay_does_not_change_struct_nulls() -> None:
    inner = pa.struct([("x", pa.int32()), ("y", pa.int32())])
    rows = [None, {"n": 0, "s": {"x": 1, "y": 2}}, {"n": 1, "s": None}, {"n": 2, "s": {"x": 3, "y": 4}}]
    old = pa.array([None, *rows], pa.struct([("n", pa.int8()), ("s", inner)])).slice(1)
    found = replace_cells(old, (1, 0), [np.arange(4)], [pa.array([10, 11, 12, None], pa.int32())])
    found.validate(full=True)
    assert found.to_pylist() == [None, {"n": 0, "s": {"x": 11, "y": 2}}, rows[2], {"n": 2, "s": {"x": None, "y": 4}}]
