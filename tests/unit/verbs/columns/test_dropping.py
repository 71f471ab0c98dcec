"""Drops of the last stored field of structs, lists and maps; `tests/properties/test_drop_columns.py` has the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.commit import commit
from lance_duck.commit.operations import Append, Merge
from lance_duck.errors import InvalidInputError, RetryableError, UnsupportedError
from lance_duck.verbs.columns.schema_change import replace_fields
from lance_duck.wire.schema import Field

STRUCT = pa.struct([("a", pa.int32())])


def made(place: str, column: pa.Array, **options: Any) -> ld.LanceDataset:
    rows = pa.table({"id": range(len(column)), "c": column})
    return ld.write_dataset(rows, place, data_storage_version="2.2", **options)


def with_null_field(type_: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field("c", type_)])


def files(table: ld.LanceDataset) -> list[int]:
    return [len(fragment.files) for fragment in table.handle.snapshot.fragments]


def test_structs_keep_nulls_if_an_empty_field_remains(place: str) -> None:
    table = made(place, pa.array([{"a": 1}, None, {"a": None}], STRUCT))
    table.add_columns(with_null_field(pa.struct([("k", pa.string())])))
    table.drop_columns(["c.a"])
    assert table.to_table().column("c").to_pylist() == [{"k": None}, None, {"k": None}]
    assert table.schema.field("c").type == pa.struct([("k", pa.string())])


def test_lists_keep_lengths_if_an_empty_field_remains(place: str) -> None:
    table = made(place, pa.array([[{"a": 1}, None], None, []], pa.list_(STRUCT)))
    table.add_columns(with_null_field(pa.list_(pa.struct([("k", pa.int8())]))))
    table.drop_columns(["c.item.a"])
    assert table.to_table().column("c").to_pylist() == [[{"k": None}, None], None, []]


def test_tables_keep_rows_if_an_empty_column_remains(place: str) -> None:
    table = made(place, pa.array([1, 2, 3]), max_rows_per_file=2)
    table.add_columns(pa.schema([pa.field("s", STRUCT), pa.field("k", pa.string())]))
    table.delete("id = 1")
    table.drop_columns(["id", "c"])
    assert table.to_table().to_pylist() == [{"s": None, "k": None}] * 2
    table.drop_columns(["k"])
    table.validate()
    assert table.to_table().to_pylist() == [{"s": None}] * 2


@pytest.mark.parametrize("dropped", ["id", "c.a"])
def test_a_drop_keeps_concurrently_appended_rows_without_the_remaining_fields(place: str, dropped: str) -> None:
    struct = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    table = ld.write_dataset(pa.table({"id": [1], "c": pa.array([{"a": 1, "b": 2}], struct)}), place)
    narrow = pa.table({"id": [2]}) if dropped == "id" else pa.table({"c": pa.array([{"a": 2}], STRUCT)})
    ld.write_dataset(narrow, place, mode="append")
    table.drop_columns([dropped])
    table.validate()
    last = {"c": None} if dropped == "id" else {"id": None, "c": {"b": None}}
    assert table.to_table().to_pylist()[1] == last


def test_an_append_without_required_fields_is_not_committed(place: str) -> None:
    table = ld.write_dataset(pa.table({"id": [1], "c": [2]}), place)
    narrow = ld.write_dataset(pa.table({"id": [2]}), place, mode="append")
    operation = Append(tuple(narrow.handle.snapshot.fragments)[1:])
    table.restore()
    before = ld.dataset(place)
    table.drop_columns(["id"])
    with pytest.raises(RetryableError, match="changed data that this Append needs"):
        commit(before.handle.snapshot, operation)


def test_only_fragments_without_the_field_get_a_file(place: str) -> None:
    table = made(place, pa.array([{"a": 1}, None], STRUCT))
    table.add_columns(with_null_field(pa.struct([("k", pa.int32())])))
    more = pa.table({"id": [2], "c": pa.array([{"a": 2, "k": 3}])}).cast(table.schema)
    table = ld.write_dataset(more, place, mode="append")
    table.drop_columns(["c.a"])
    assert table.to_table().column("c").to_pylist() == [{"k": None}, None, {"k": 3}]
    assert files(table) == [2, 1]


def test_dropping_a_field_writes_nothing_if_another_field_has_values(place: str) -> None:
    two = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    table = made(place, pa.array([{"a": 1, "b": 2}, None], two))
    table.add_columns(with_null_field(pa.struct([("k", pa.int32())])))
    before = sorted((Path(table.uri) / "data").iterdir())
    table.drop_columns(["c.a"])
    assert sorted((Path(table.uri) / "data").iterdir()) == before
    assert table.to_table().column("c").to_pylist() == [{"b": 2, "k": None}, None]


def test_lists_with_deleted_rows_agree_about_their_lengths(place: str) -> None:
    inner = pa.list_(pa.struct([("a", STRUCT), ("b", pa.int32())]))
    table = made(place, pa.array([[{"a": {"a": 1}, "b": 2}] * size for size in (3, 1, 0, 2)], inner))
    table.add_columns(with_null_field(pa.list_(pa.struct([("a", pa.struct([("k", pa.int32())]))]))))
    table.delete("id IN (0, 3)")
    table.drop_columns(["c.item.a.a"])
    assert table.to_table().column("c").to_pylist() == [[{"a": {"k": None}, "b": 2}], []]


def test_dropping_a_field_removes_only_its_index(place: str) -> None:
    table = made(place, pa.array([{"a": 1}, None, {"a": 3}], STRUCT))
    table.create_scalar_index("id", "BTREE", "by_id")
    table.create_scalar_index("c.a", "BTREE", "by_a")
    table.add_columns(with_null_field(pa.struct([("k", pa.int32())])))
    table.drop_columns(["c.a"])
    assert [index.name for index in table.describe_indices()] == ["by_id"]
    assert table.to_table(filter="id = 2").to_pylist() == [{"id": 2, "c": {"k": None}}]
    assert table.count_rows("c IS NULL") == 1


@pytest.mark.parametrize("path", ["c.entries.key", "c.entries.value"])
def test_keys_and_values_of_maps_cannot_be_dropped(place: str, path: str) -> None:
    table = made(place, pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int32())))
    with pytest.raises(InvalidInputError, match="keys and values of a map"):
        table.drop_columns([path])
    assert ld.dataset(place).to_table().column("c").to_pylist() == [[("x", 1)]]


def test_a_map_is_dropped_with_its_last_value_field(place: str) -> None:
    table = made(place, pa.array([[("x", {"a": 1})]], pa.map_(pa.string(), STRUCT)))
    table.drop_columns(["c.entries.value.a"])
    assert ld.dataset(place).schema.names == ["id"]


def test_maps_keep_keys_and_lengths_if_an_empty_field_remains(place: str) -> None:
    table = made(place, pa.array([[("x", {"a": 1}), ("y", None)], None, []], pa.map_(pa.string(), STRUCT)))
    before = table.handle.snapshot
    value = before.schema.by_path("c.entries.value")
    grown = replace(value, children=(*value.children, Field(9, "k", value.id, "int32", True)))
    schema = replace_fields(before.schema, lambda field: grown if field.id == value.id else None)
    commit(before, Merge(tuple(before.fragments), schema, True))
    table = ld.dataset(place)
    table.delete("id = 2")
    table.drop_columns(["c.entries.value.a"])
    assert table.to_table().column("c").to_pylist() == [[("x", {"k": None}), ("y", None)], None]


def test_fields_of_packed_structs_cannot_be_dropped(place: str) -> None:
    two = pa.struct([("a", pa.int32()), ("b", pa.int32())])
    schema = pa.schema([pa.field("p", two, metadata={"lance-encoding:packed": "true"}), pa.field("id", pa.int64())])
    table = ld.write_dataset(pa.table({"p": pa.array([{"a": 1, "b": 2}], two), "id": [1]}, schema=schema), place)
    with pytest.raises(UnsupportedError, match="packed struct"):
        table.drop_columns(["p.a"])
    assert table.to_table().column("p").to_pylist() == [{"a": 1, "b": 2}]
