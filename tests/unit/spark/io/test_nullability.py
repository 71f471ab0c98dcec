from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.spark.io.types import promises_more, refuse_nulls

ITEM = pa.field("element", pa.int64(), nullable=False)
LISTS = pa.list_(ITEM)
STRUCTS = pa.struct([pa.field("x", pa.int64(), nullable=False), pa.field("y", pa.string())])
MAPS = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))
DEEP = pa.list_(pa.struct([pa.field("v", LISTS)]))


def loose(kind: pa.DataType) -> pa.DataType:
    """The same type with all fields nullable, but for keys."""
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, loose(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", loose(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, loose(field.type)) for field in kind])
    return kind


def of(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """Return an array whose values may violate its type, which Arrow would reject."""
    return _typed(pa.array(values, loose(kind)), kind)


def _typed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_struct(kind):
        parts = [_typed(array.field(place), kind.field(place).type) for place in range(kind.num_fields)]
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:1], children=parts)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], fields=[kind.key_field, kind.item_field])
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], children=[entries])
    if pa.types.is_list(kind):
        values = _typed(array.values, kind.value_type)
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], children=[values])
    return array


@pytest.mark.parametrize("kind", [LISTS, STRUCTS, MAPS, DEEP])
def test_only_stricter_nullability_is_checked(kind: pa.DataType) -> None:
    assert promises_more(loose(kind), kind)
    assert not promises_more(kind, kind)
    assert not promises_more(loose(kind), loose(kind))


def test_vectors_and_reordered_fields_are_compared_by_meaning() -> None:
    assert promises_more(pa.list_(pa.int64(), 2), LISTS)
    assert not promises_more(pa.list_(ITEM, 2), LISTS)
    assert not promises_more(pa.struct([STRUCTS.field("y"), STRUCTS.field("x")]), STRUCTS)


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (LISTS, [[1, 2], None, []], [[1, 2], [3, None]]),
        (STRUCTS, [{"x": 1, "y": None}, None], [{"x": 1, "y": "a"}, {"x": None, "y": "a"}]),
        (MAPS, [[("a", 1)], None, []], [[("a", 1)], [("b", None)]]),
        (DEEP, [[{"v": [1]}, None, {"v": None}], None], [[{"v": [1]}], [{"v": [None]}]]),
    ],
)
def test_nulls_are_rejected_if_the_type_excludes_them(kind: pa.DataType, good: list[Any], bad: list[Any]) -> None:
    refuse_nulls(of(kind, good), "c")
    with pytest.raises(InvalidInputError, match=r"column c\."):
        refuse_nulls(of(kind, bad), "c")
    refuse_nulls(of(kind, bad).slice(0, 1), "c")


def test_items_below_a_null_list_do_not_count_as_nulls() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 4], pa.int32()), pa.array([1, 2, None, 4]), type=LISTS)
    hidden = pa.Array.from_buffers(LISTS, 2, [pa.py_buffer(b"\x01"), lists.buffers()[1]], children=[lists.values])
    refuse_nulls(hidden, "c")
    with pytest.raises(InvalidInputError, match=r"column c\.element"):
        refuse_nulls(lists, "c")
