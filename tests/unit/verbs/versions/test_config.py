from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, RetryableError

KEY = "lance-schema:unenforced-primary-key"


@pytest.fixture
def table(place: str, hasty: dict[str, str]) -> ld.LanceDataset:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"x": "y"}),
            pa.field("k", pa.int64(), nullable=False),
            pa.field("s", pa.struct([pa.field("p", pa.int64(), nullable=False)])),
        ],
        metadata={"m": "n"},
    )
    return ld.write_dataset(
        pa.table({"id": [1], "k": [2], "s": [{"p": 3}]}, schema=schema), place, storage_options=hasty
    )


@pytest.mark.parametrize(
    ("change", "read"),
    [("update_config", "config"), ("update_metadata", "metadata"), ("update_schema_metadata", "schema_metadata")],
)
def test_entries_are_set_removed_and_replaced(table: ld.LanceDataset, change: str, read: str) -> None:
    update = getattr(table, change)

    def now() -> dict[str, str]:
        found = getattr(table, read)
        values: dict[str, str] = found() if callable(found) else found
        return values

    before = now()
    assert update({"a": "1", "b": "2"}) == before | {"a": "1", "b": "2"} == now()
    assert update({"a": None, "c": "3", "none": None}) == before | {"b": "2", "c": "3"}
    assert update({"d": "4", "e": None}, replace=True) == {"d": "4"} == now()
    assert table.version == 4
    assert table.to_table().num_rows == 1


def test_settings_are_deleted_by_name(table: ld.LanceDataset) -> None:
    table.update_config({"a": "1", "b": "2"})
    table.delete_config_keys(["a", "none"])
    assert table.config() == {"b": "2"}


def test_field_metadata_is_set_by_path(table: ld.LanceDataset) -> None:
    table.update_field_metadata({"id": {"x": None, "a": "1"}, "s.p": {"b": "2"}})
    assert table.schema.field("id").metadata == {b"a": b"1"}
    assert table.schema.field("s").type.field("p").metadata == {b"b": b"2"}
    table.update_field_metadata({"id": {"c": "3"}}, replace=True)
    assert table.schema.field("id").metadata == {b"c": b"3"}
    with pytest.raises(InvalidInputError, match="no column 'none'"):
        table.update_field_metadata({"none": {"a": "1"}})


def test_deprecated_names_work_with_a_warning(table: ld.LanceDataset) -> None:
    with pytest.warns(DeprecationWarning, match="update_schema_metadata"):
        table.replace_schema_metadata({"a": "1"})
    with pytest.warns(DeprecationWarning, match="update_field_metadata"):
        table.replace_field_metadata("id", {"b": "2"})
    assert (table.schema_metadata, table.schema.field("id").metadata) == ({"a": "1"}, {b"b": b"2"})


def test_a_primary_key_is_declared_once(table: ld.LanceDataset) -> None:
    table.update_field_metadata({"k": {f"{KEY}:position": "1"}, "id": {f"{KEY}:position": "2"}})
    for change in ({"id": {KEY: "true"}}, {"k": {f"{KEY}:position": None}}):
        with pytest.raises(InvalidInputError, match="cannot be changed"):
            table.update_field_metadata(change)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="cannot be changed"):
        table.update_field_metadata({"k": {"a": "b"}}, replace=True)
    table.update_field_metadata({"k": {"a": "b"}})
    with pytest.raises(InvalidInputError, match="primary key"):
        table.alter_columns({"path": "k", "nullable": True})
    table.alter_columns({"path": "k", "name": "kk"})
    assert table.schema.field("kk").metadata == {b"a": b"b", f"{KEY}:position".encode(): b"1"}


@pytest.mark.parametrize("path", ["s", "s.p"])
def test_a_nullable_column_cannot_be_a_primary_key(table: ld.LanceDataset, path: str) -> None:
    with pytest.raises(InvalidInputError, match="cannot be a primary key"):
        table.update_field_metadata({path: {KEY: "true"}})
    assert table.latest_version == 1


@pytest.mark.parametrize("values", [{"a": 1}, {1: "a"}, [("a", "b")]])
def test_values_that_are_not_strings_are_rejected(table: ld.LanceDataset, values: Any) -> None:
    for change in (table.update_config, table.update_metadata, table.update_schema_metadata):
        with pytest.raises(InvalidInputError, match="string"):
            change(values)
    with pytest.raises(InvalidInputError, match="string"):
        table.update_field_metadata({"id": values})
    assert table.latest_version == 1


def test_changes_of_different_keys_are_merged(table: ld.LanceDataset) -> None:
    other = ld.dataset(table.uri)
    other.update_config({"a": "1"})
    table.update_config({"b": "2"})
    assert table.config() == {"a": "1", "b": "2"}
    stale = ld.dataset(table.uri, version=1)
    try:
        stale.update_config({"a": "3"})
    except (RetryableError, OSError):
        stale.checkout_latest()
        assert stale.config()["a"] == "1"
    else:
        assert stale.config() == {"a": "3", "b": "2"}
