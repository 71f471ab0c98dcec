from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.schema import LanceSchema, json_to_schema, schema_to_json

ARROW = pa.schema(
    [
        pa.field("key", pa.int32(), nullable=False, metadata={"lance-schema:unenforced-primary-key:position": "1"}),
        pa.field("Place", pa.struct([pa.field("town", pa.list_(pa.string()))]), metadata={"unit": "none"}),
        pa.field("day", pa.date32(), metadata={"lance-schema:unenforced-clustering-key:position": "1"}),
    ],
    metadata={"made": "by hand"},
)


def test_fields_have_names_ids_and_children() -> None:
    schema = LanceSchema.from_pyarrow(ARROW)
    assert [(f.name(), f.id()) for f in schema.fields()] == [("key", 0), ("Place", 1), ("day", 4)]
    (town,) = schema.fields()[1].children()
    assert (town.name(), town.id(), [c.id() for c in town.children()]) == ("town", 2, [3])
    assert schema.fields()[1].metadata == {"unit": "none"}
    assert schema.fields()[0].to_arrow() == ARROW.field("key")
    assert (schema.names, schema.metadata, schema.to_pyarrow()) == (ARROW.names, {"made": "by hand"}, ARROW)
    assert "LanceField(name='town', id=2, type='list', nullable=True" in repr(schema)


def test_fields_are_found_by_path() -> None:
    schema = LanceSchema.from_pyarrow(ARROW)
    found = schema.field("Place.town")
    assert found is not None
    assert found.id() == 2
    assert schema.field("place.town") is None
    anyhow = schema.field_case_insensitive("PLACE.Town")
    assert anyhow == found
    assert schema.field_case_insensitive("KEY") == schema.field("key")
    assert schema.field_case_insensitive("key.x") is None


def test_fields_declare_primary_keys() -> None:
    schema = LanceSchema.from_pyarrow(ARROW)
    (key,), (clustering,) = schema.unenforced_primary_key(), schema.unenforced_clustering_key()
    assert (key.name(), key.is_unenforced_primary_key(), key.unenforced_primary_key_position()) == ("key", True, 1)
    assert (clustering.name(), clustering.is_unenforced_clustering_key()) == ("day", True)
    assert (clustering.is_unenforced_primary_key(), clustering.unenforced_primary_key_position()) == (False, None)


def test_a_schema_compares_and_pickles(tmp_path: Path) -> None:
    schema = LanceSchema.from_pyarrow(ARROW)
    assert pickle.loads(pickle.dumps(schema)) == schema
    table = ld.write_dataset(pa.table({"a": [1], "b": [2]}), tmp_path / "t", storage_options={"fsync": "false"})
    assert table.lance_schema == LanceSchema.from_pyarrow(table.schema)
    with pytest.raises(InvalidInputError, match=r"pyarrow\.Schema"):
        LanceSchema.from_pyarrow(["a"])


def test_a_projection_by_ids_renames_columns(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"a": [1], "b": ["x"]}), tmp_path / "t", storage_options={"fsync": "false"})
    renamed = LanceSchema.from_pyarrow(pa.schema([("n", pa.int64())]))
    after = ld.LanceDataset.commit(table, ld.LanceOperation.Project(renamed), read_version=1)
    assert after.to_table().to_pydict() == {"n": [1]}
    transaction = after.read_transaction(2)
    assert transaction is not None
    assert isinstance(transaction.operation, ld.LanceOperation.Project)
    assert transaction.operation.schema == renamed


JSON = {
    "fields": [
        {
            "name": "vec",
            "type": {
                "type": "fixed_size_list",
                "fields": [{"name": "item", "type": {"type": "float"}, "nullable": True}],
                "length": 32,
            },
            "nullable": False,
        },
        {"name": "at", "type": {"type": "timestamp:ms:UTC"}, "nullable": True, "metadata": {"unit": "none"}},
    ],
    "metadata": {"made": "by hand"},
}


def test_a_schema_converts_to_json_with_logical_types() -> None:
    fields = [
        pa.field("vec", pa.list_(pa.float32(), 32), False),
        pa.field("at", pa.timestamp("ms", "UTC"), True, {"unit": "none"}),
    ]
    schema = pa.schema(fields, {"made": "by hand"})
    assert schema_to_json(schema) == JSON
    assert json_to_schema(JSON).equals(schema, check_metadata=True)


@pytest.mark.parametrize(
    "type_", [pa.map_(pa.string(), pa.int8()), pa.string_view(), pa.list_(pa.list_view(pa.int8()))]
)
def test_types_without_a_json_form_are_rejected_by_name(type_: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"x.*"):
        schema_to_json(pa.schema([("x", type_)]))


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"fields": [{"name": "x"}]},
        {"fields": [{"name": "x", "type": {"type": "int64"}}]},
        {"fields": [{"name": "x", "type": {"type": "list"}, "nullable": True}]},
        {"fields": [{"name": "x", "type": {"type": "list", "fields": []}, "nullable": True}]},
        {"fields": [{"name": "x", "type": {"type": "fixed_size_binary"}, "nullable": True}]},
        {"fields": [{"name": "x", "type": {"type": "nothing"}, "nullable": True}]},
        {"fields": [], "metadata": {"x": 1}},
        {"fields": [3]},
        {"fields": [{"name": "\ud800", "type": {"type": "int8"}, "nullable": True}]},
    ],
    ids=str,
)
def test_json_that_is_not_a_schema_is_rejected(damaged: dict[str, Any]) -> None:
    with pytest.raises(LanceDuckError):
        json_to_schema(damaged)
