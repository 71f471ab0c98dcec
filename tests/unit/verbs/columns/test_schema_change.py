from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.verbs.columns.alteration import alter_schema, can_cast, parse_alterations
from lance_duck.verbs.columns.schema_change import add_fields, drop_fields, only
from lance_duck.wire.schema import Schema
from lance_duck.wire.schema_write import schema_from_arrow

ARROW = pa.schema(
    [
        pa.field("a", pa.int64(), nullable=False),
        pa.field("s", pa.struct([("p", pa.int64()), ("q", pa.struct([("r", pa.string())]))])),
        pa.field("l", pa.list_(pa.struct([("x", pa.int8()), ("y", pa.int8())]))),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
    ],
    metadata={"k": "v"},
)
SCHEMA = schema_from_arrow(ARROW)


def ids(schema: Schema) -> dict[str, int]:
    found = {}

    def walk(fields: Any, path: tuple[str, ...]) -> None:
        for field in fields:
            found[".".join((*path, field.name))] = field.id
            walk(field.children, (*path, field.name))

    walk(schema.fields, ())
    return found


def test_new_columns_come_last_and_new_fields_after_their_siblings() -> None:
    arrow = pa.schema([pa.field("n", pa.int8()), pa.field("s", pa.struct([("t", pa.list_(pa.int8()))]))])
    added = add_fields(SCHEMA, arrow, "2.2", 20)
    before, after = ids(SCHEMA), ids(added.whole)
    assert {name: after[name] for name in before} == before
    assert {name: i for name, i in after.items() if name not in before} == {
        "n": 20,
        "s.t": 21,
        "s.t.item": 22,
    }
    assert added.whole.names == ["a", "s", "l", "m", "n"]
    assert [c.name for c in added.whole.by_path("s").children] == ["p", "q", "t"]
    assert ids(added.new) == {"n": 20, "s": before["s"], "s.t": 21, "s.t.item": 22}
    assert added.whole.metadata == {"k": "v"}
    assert not added.tightens


def test_new_not_null_columns_are_reported() -> None:
    assert add_fields(SCHEMA, pa.schema([pa.field("n", pa.int8(), nullable=False)]), "2.2", 20).tightens


@pytest.mark.parametrize(
    "field",
    [
        pa.field("a", pa.int64()),
        pa.field("s", pa.int64()),
        pa.field("s", pa.struct([("p", pa.int64())])),
        pa.field("l", pa.list_(pa.struct([("z", pa.int8())]))),
        pa.field("m", pa.map_(pa.string(), pa.int32())),
    ],
)
def test_existing_columns_are_rejected(field: pa.Field) -> None:
    with pytest.raises(InvalidInputError, match="already exists"):
        add_fields(SCHEMA, pa.schema([field]), "2.2", 20)


def test_structs_in_lists_get_members_that_are_null() -> None:
    arrow = pa.schema([pa.field("l", pa.list_(pa.struct([("z", pa.int8())])))])
    added = add_fields(SCHEMA, arrow, "2.2", 20, lists=True)
    assert ids(added.whole)["l.item.z"] == 20


def test_dropping_removes_nested_fields_and_empty_structs() -> None:
    assert list(ids(drop_fields(SCHEMA, ["s.q", "m"]))) == ["a", "s", "s.p", "l", "l.item", "l.item.x", "l.item.y"]
    assert drop_fields(SCHEMA, ["s.q.r", "s.p"]).names == ["a", "l", "m"]
    assert "l.item.x" not in ids(drop_fields(SCHEMA, ["l.item.x"]))
    assert drop_fields(SCHEMA, ["l.item"]).names == ["a", "s", "m"]
    assert drop_fields(SCHEMA, []) == SCHEMA


def test_dropping_all_or_unknown_columns_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="at least one column"):
        drop_fields(SCHEMA, SCHEMA.names)
    with pytest.raises(InvalidInputError, match=r"no column 's\.z'"):
        drop_fields(SCHEMA, ["s.z"])


def alter(*raw: dict[str, Any]) -> Any:
    return alter_schema(SCHEMA, parse_alterations(raw), "2.2", 20)


def test_renaming_and_nullability_changes_keep_field_ids() -> None:
    found = alter({"path": "a", "name": "b", "nullable": True}, {"path": "s.q.r", "name": "rr"})
    assert sorted(ids(found.schema).values()) == sorted(ids(SCHEMA).values())
    assert found.schema.arrow.field("b").nullable
    assert "s.q.rr" in ids(found.schema)
    assert (dict(found.casts), found.tightened) == ({}, ())


def test_list_items_are_renamed() -> None:
    found = alter({"path": "l.item", "name": "element"})
    assert (ids(found.schema)["l.element"], found.casts) == (ids(SCHEMA)["l.item"], {})


def test_columns_swap_their_names() -> None:
    found = alter({"path": "a", "name": "s"}, {"path": "s", "name": "a"})
    assert ids(found.schema)["a"] == ids(SCHEMA)["s"]


def test_not_null_is_checked_only_if_nulls_are_possible() -> None:
    assert alter({"path": "a", "nullable": False}).tightened == ()
    assert alter({"path": "s.p", "nullable": False}).tightened == (ids(SCHEMA)["s.p"],)


def test_a_cast_assigns_new_ids_and_keeps_the_position() -> None:
    found = alter({"path": "s.p", "data_type": pa.int16(), "name": "pp"}, {"path": "l.item.x", "data_type": pa.int32()})
    before, after = ids(SCHEMA), ids(found.schema)
    assert {after["s.pp"], after["l.item.x"]} == {20, 21}
    assert found.casts == {before["s.p"]: after["s.pp"], before["l.item.x"]: after["l.item.x"]}
    written = only(found.schema, set(found.casts.values()))
    assert list(ids(written)) == ["s", "s.pp", "l", "l.item", "l.item.x"]


def test_a_cast_keeps_nullability_and_metadata() -> None:
    field = pa.field("a", pa.int64(), nullable=False, metadata={"x": "y"})
    schema = schema_from_arrow(pa.schema([field]))
    found = alter_schema(schema, parse_alterations([{"path": "a", "data_type": pa.int8()}]), "2.2", 1)
    assert found.schema.arrow.field("a").equals(field.with_type(pa.int8()), check_metadata=True)


@pytest.mark.parametrize(
    ("alterations", "message"),
    [
        ([{"path": "z", "name": "b"}], "no column 'z'"),
        ([{"path": "a", "name": "s"}], "column 's' already exists"),
        ([{"path": "a", "name": "x.y"}], "invalid column name"),
        ([{"path": "a", "name": ""}], "invalid column name"),
        ([{"path": "a", "data_type": pa.string()}], "cannot be cast"),
        ([{"path": "s", "data_type": pa.struct([("p", pa.int8())])}], "cannot be cast"),
        ([{"path": "a", "data_type": pa.int8(), "nullable": False}], "make it non-nullable"),
        ([{"path": "a", "nullable": True}, {"path": "a", "name": "b"}], "the column is altered twice"),
        ([{"path": "l", "data_type": ARROW.field("l").type}, {"path": "l.item.x", "name": "z"}], "alter its fields"),
        ([{"path": "a"}], "does not change anything"),
        ([{"name": "a"}], "needs a path"),
        ([{"path": "a", "typ": 1}], "unknown key 'typ'"),
        ([{"path": "a", "nullable": 1}], "a bool"),
        ([{"path": "a", "data_type": "int8"}], "an Arrow type"),
        (["a"], "not an alteration"),
    ],
)
def test_invalid_alterations_are_rejected(alterations: list[Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        alter(*alterations)


def test_a_primary_key_cannot_become_nullable() -> None:
    key = pa.field("a", pa.int64(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"})
    schema = schema_from_arrow(pa.schema([key]))
    with pytest.raises(InvalidInputError, match="primary key"):
        alter_schema(schema, parse_alterations([{"path": "a", "nullable": True}]), "2.2", 1)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (pa.int64(), pa.uint8(), True),
        (pa.int64(), pa.float64(), False),
        (pa.float64(), pa.float16(), True),
        (pa.string(), pa.large_string(), True),
        (pa.string(), pa.binary(), False),
        (pa.binary(), pa.large_binary(), True),
        (pa.date32(), pa.timestamp("us"), True),
        (pa.timestamp("us"), pa.timestamp("ns", "UTC"), True),
        (pa.decimal128(10, 2), pa.decimal256(40, 3), True),
        (pa.list_(pa.int8()), pa.large_list(pa.int64()), True),
        (pa.list_(pa.int8()), pa.list_(pa.string()), False),
        (pa.list_(pa.float32(), 2), pa.list_(pa.float16(), 2), True),
        (pa.list_(pa.float32(), 2), pa.list_(pa.float32(), 3), False),
        (pa.string(), pa.dictionary(pa.int8(), pa.string()), True),
        (pa.dictionary(pa.int8(), pa.string()), pa.large_string(), True),
        (pa.bool_(), pa.bool_(), True),
        (pa.bool_(), pa.int8(), False),
    ],
)
def test_only_related_types_can_be_cast(old: pa.DataType, new: pa.DataType, expected: bool) -> None:
    assert can_cast(old, new) is expected
