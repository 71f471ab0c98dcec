"""Dropping columns and fields gives the values from before without them, whichever fields have values on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.commit import commit
from lance_duck.commit.operations import Merge
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.columns.schema_change import next_field_id, path_of
from lance_duck.wire.column_path import join_path
from lance_duck.wire.schema import Field, Schema

_LEAVES = st.sampled_from([pa.int32(), pa.string(), pa.list_(pa.float32(), 2)])
_NAMES = ("a", "b", "c")


def _struct(members: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    types = st.lists(members, min_size=1, max_size=len(_NAMES))
    return types.map(lambda types: pa.struct(list(zip(_NAMES, types, strict=False))))


def _around(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    struct = _struct(inner)
    return st.one_of(
        struct,
        struct.map(pa.list_),
        struct.map(pa.large_list),
        struct.map(lambda type_: pa.map_(pa.string(), type_)),
    )


_COLUMNS = st.recursive(_LEAVES, _around, max_leaves=6)
_WIDE = _struct(_LEAVES).map(lambda type_: pa.list_(type_, 2))
_TABLES = st.lists(st.one_of(_COLUMNS, _around(_COLUMNS), _WIDE), min_size=1, max_size=2)


def _value(draw: st.DrawFn, type_: pa.DataType) -> Any:
    if draw(st.integers(0, 3)) == 0:
        return None
    if pa.types.is_struct(type_):
        return {field.name: _value(draw, field.type) for field in type_}
    if pa.types.is_map(type_):
        keys = draw(st.lists(st.sampled_from("xyz"), unique=True, max_size=2))
        return [(key, _value(draw, type_.item_type)) for key in keys]
    if pa.types.is_fixed_size_list(type_):
        if pa.types.is_struct(type_.value_type):
            return [_value(draw, type_.value_type) for _ in range(type_.list_size)]
        return [0.5] * type_.list_size
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [_value(draw, type_.value_type) for _ in range(draw(st.integers(0, 2)))]
    return "t" if pa.types.is_string(type_) else 7


def _rows(draw: st.DrawFn, schema: pa.Schema, first: int) -> pa.Table:
    count = draw(st.integers(1, 4))
    columns = {field.name: [_value(draw, field.type) for _ in range(count)] for field in schema}
    if "id" in columns:
        columns["id"] = list(range(first, first + count))
    return pa.table({field.name: pa.array(columns[field.name], field.type) for field in schema}, schema=schema)


def _with_null_field(field: Field, parent: int, field_id: int) -> Field:
    children = tuple(_with_null_field(child, parent, field_id) for child in field.children)
    if field.id == parent:
        children += (Field(field_id, f"n{field_id}", parent, "int32", True),)
    return replace(field, children=children)


def _structs(schema: Schema) -> list[int]:
    entries = {field.children[0].id for field in schema.walk() if field.logical_type == "map"}
    return [field.id for field in schema.walk() if field.logical_type == "struct" and field.id not in entries]


def _add_null_field(draw: st.DrawFn, snapshot: Snapshot) -> Snapshot:
    parent, field_id = draw(st.sampled_from([-1, *_structs(snapshot.schema)])), next_field_id(snapshot)
    fields = tuple(_with_null_field(field, parent, field_id) for field in snapshot.schema.fields)
    if parent < 0:
        fields += (Field(field_id, f"n{field_id}", parent, "int32", True),)
    return commit(snapshot, Merge(tuple(snapshot.fragments), replace(snapshot.schema, fields=fields), True))


def _droppable(schema: Schema) -> list[Field]:
    """Return struct fields and columns that can be dropped without their parents."""
    entries = {field.children[0].id for field in schema.walk() if field.logical_type == "map"}
    found = list(schema.fields) if len(schema.fields) > 1 else []
    for field in schema.walk():
        if field.logical_type == "struct" and field.id not in entries and len(field.children) > 1:
            found += field.children
    return found


def _steps(schema: Schema, field: Field) -> Iterator[str]:
    """Yield what leads to a field: a name for a member, "*" for the items of a list, "=" for the values of a map."""
    above: Field | None = None
    for step in path_of(schema, field.id):
        if above is None or above.logical_type == "struct":
            yield "=" if step.name == "value" and above is not None and above.name == "entries" else step.name
        elif above.logical_type != "map":
            yield "*"
        above = step


def _without(value: Any, steps: list[str]) -> Any:
    """Return a value without the member that steps lead to."""
    if value is None:
        return None
    if steps[0] == "*":
        return [_without(item, steps[1:]) for item in value]
    if steps[0] == "=":
        return [(key, _without(item, steps[1:])) for key, item in value]
    rest = {name: item for name, item in value.items() if name != steps[0]}
    if len(steps) == 1:
        return rest
    return {name: _without(item, steps[1:]) if name == steps[0] else item for name, item in value.items()}


@given(st.data())
def test_dropping_fields_keeps_nulls_and_lengths(data: st.DataObject) -> None:
    draw = data.draw
    columns = draw(_TABLES)
    schema = pa.schema([("id", pa.int64()), *((f"x{place}", type_) for place, type_ in enumerate(columns))])
    with TemporaryDirectory() as folder:
        uri = str(Path(folder) / "t.lance")
        table = ld.write_dataset(_rows(draw, schema, 0), uri, data_storage_version="2.2")
        for _ in range(draw(st.integers(1, 5))):
            match draw(st.sampled_from(["add", "add", "append", "delete", "drop", "drop", "drop", "drop"])):
                case "add":
                    _add_null_field(draw, table.handle.snapshot)
                    table = ld.dataset(uri)
                case "append":
                    ld.write_dataset(_rows(draw, table.schema, table.count_rows() + 100), uri, mode="append")
                    table = ld.dataset(uri)
                case "delete" if "id" in table.schema.names:
                    table.delete(f"id % 3 = {draw(st.integers(0, 2))}")
                case "drop":
                    fields = _droppable(table.handle.snapshot.schema)
                    if not fields:
                        continue
                    field = draw(st.sampled_from(fields))
                    steps = list(_steps(table.handle.snapshot.schema, field))
                    before = [_without(row, steps) for row in table.to_table().to_pylist()]
                    path = join_path(each.name for each in path_of(table.handle.snapshot.schema, field.id))
                    table.drop_columns([path])
                    assert table.to_table().to_pylist() == before
                    assert ld.dataset(uri).to_table().to_pylist() == before
        rows = table.to_table()
        table.optimize.compact_files()
        assert table.to_table().equals(rows)
