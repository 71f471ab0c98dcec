"""Extension types at every level round trip or are rejected by column; they never become their storage type."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lance.arrow
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import UnsupportedError

OFFSETS = pa.array([0, 1, 2], pa.int32())
UUIDS = pa.array([uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes], pa.binary(16))
TENSORS = pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))
STORAGES = {
    "uuid": (pa.uuid(), UUIDS),
    "bool8": (pa.bool8(), pa.array([1, 0], pa.int8())),
    "json": (pa.json_(), pa.array(['{"a":1}', "[1]"])),
    "opaque": (pa.opaque(pa.int32(), "type", "vendor"), pa.array([1, 2], pa.int32())),
    "tensor": (pa.fixed_shape_tensor(pa.float32(), [2]), TENSORS),
}
ARRAYS = {name: pa.ExtensionArray.from_storage(*parts) for name, parts in STORAGES.items()}
ARRAYS["bfloat16"] = lance.arrow.bfloat16_array([1.0, 2.0])

NESTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "top": lambda a: a,
    "struct": lambda a: pa.StructArray.from_arrays([a], ["q"]),
    "list": lambda a: pa.ListArray.from_arrays(OFFSETS, a),
    "large list": lambda a: pa.LargeListArray.from_arrays(OFFSETS.cast(pa.int64()), a),
    "array": lambda a: pa.FixedSizeListArray.from_arrays(a, 1),
    "array of arrays": lambda a: NESTS["array"](NESTS["array"](a)),
    "array of structs": lambda a: NESTS["array"](NESTS["struct"](a)),
    "list of arrays": lambda a: NESTS["list"](NESTS["array"](a)),
    "map value": lambda a: pa.MapArray.from_arrays(OFFSETS, pa.array(["a", "b"]), a),
    "map key": lambda a: pa.MapArray.from_arrays(OFFSETS, a, pa.array(["a", "b"])),
    "dictionary": lambda a: pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), a),
}


@pytest.mark.parametrize("nest", NESTS)
@pytest.mark.parametrize("name", ARRAYS)
def test_extension_types_are_kept_or_rejected(tmp_path: Path, name: str, nest: str) -> None:
    table = pa.table({"id": [1, 2], "x": NESTS[nest](ARRAYS[name])})
    if nest == "dictionary" or ("array" in nest and nest != "array of structs" and name != "bfloat16"):
        with pytest.raises(UnsupportedError, match=r"column 'x[.a-z]*': Lance cannot store (fixed_size_list|dict)"):
            ld.write_dataset(table, tmp_path / "t.lance")
        return
    ld.write_dataset(table, tmp_path / "t.lance")
    written = ld.write_dataset(table, tmp_path / "t.lance", mode="append")
    for found in (written.to_table(), lance.dataset(tmp_path / "t.lance").to_table()):
        assert found.schema.field("x").type == table.schema.field("x").type
        assert found.slice(2).combine_chunks().equals(table.combine_chunks())


@pytest.mark.parametrize("nest", ["array", "array of arrays", "list of arrays"])
def test_unregistered_extension_types_are_kept(tmp_path: Path, nest: str) -> None:
    type_ = NESTS[nest](pa.array([1, 2], pa.int8())).type

    def marked(type_: pa.DataType) -> pa.DataType:
        field = type_.value_field
        if pa.types.is_int8(field.type):
            field = field.with_metadata({"ARROW:extension:name": "my.own"})
        else:
            field = field.with_type(marked(field.type))
        return pa.list_(field, type_.list_size) if pa.types.is_fixed_size_list(type_) else pa.list_(field)

    rows = pa.RecordBatchReader.from_batches(pa.schema([("x", marked(type_))]), [])
    with pytest.raises(UnsupportedError, match=r"column 'x[.a-z]*': Lance cannot store fixed_size_list"):
        ld.write_dataset(rows, tmp_path / "t.lance")


ONE = "'00000000-0000-0000-0000-000000000001'::UUID"
KEPT: dict[str, Any] = {
    f"[{ONE}]": [uuid.UUID(int=1)],
    f"{{'q': {ONE}}}": {"q": uuid.UUID(int=1)},
    f"MAP {{{ONE}: [{ONE}]}}": {uuid.UUID(int=1): [uuid.UUID(int=1)]},
    f"[{{'q': {ONE}}}]::STRUCT(q UUID)[1]": ({"q": uuid.UUID(int=1)},),
}


@pytest.mark.parametrize("expression", KEPT)
def test_uuids_written_in_sql_read_back(tmp_path: Path, expression: str) -> None:
    with ld.connect(tmp_path) as connection:
        before = connection.execute(f"SELECT typeof({expression})").fetchall()
        connection.execute(f"CREATE TABLE lance.t AS SELECT {expression} AS u")
        assert connection.execute("SELECT u FROM lance.t").fetchall() == [(KEPT[expression],)]
        assert connection.execute("SELECT typeof(u) FROM lance.t").fetchall() == before


@pytest.mark.parametrize(
    "statement",
    [
        f"CREATE TABLE lance.t AS SELECT [{ONE}]::UUID[1] AS u",
        f"CREATE TABLE lance.t AS SELECT [[{ONE}]::UUID[1]] AS u",
        "CREATE TABLE lance.t (u UUID[2])",
        "ALTER TABLE lance.other ADD COLUMN u UUID[2]",
    ],
)
def test_arrays_of_uuids_are_rejected_by_column(tmp_path: Path, statement: str) -> None:
    with ld.connect(tmp_path) as connection:
        connection.execute("CREATE TABLE lance.other AS SELECT 1 AS i")
        with pytest.raises(UnsupportedError, match=r"column 'u[.a-z]*': Lance cannot store .*uuid.*cast it to a list"):
            connection.execute(statement)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_bool8_columns_can_be_changed_in_sql(tmp_path: Path) -> None:
    array = ARRAYS["bool8"]
    table = pa.table({"b": array, "l": NESTS["list"](array), "s": NESTS["struct"](array)})
    ld.write_dataset(table, tmp_path / "t.lance")
    with ld.connect(tmp_path) as connection:
        assert connection.execute("SELECT count(*) FROM lance.t WHERE b").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM lance.t WHERE b = false").fetchall() == [(1,)]
        connection.execute("INSERT INTO lance.t VALUES (true, [false, NULL], {'q': true})")
        connection.execute("UPDATE lance.t SET b = NOT b, l = [b] WHERE s.q")
        rows = connection.execute("SELECT b, l, s FROM lance.t ORDER BY ALL").fetchall()
    assert rows == [(False, [False], {"q": False}), (False, [True], {"q": True}), (False, [True], {"q": True})]
    assert ld.dataset(tmp_path / "t.lance").schema.types == table.schema.types


@pytest.mark.parametrize("name", ["uuid", "bool8", "json", "opaque"])
def test_extension_types_are_sorted_by_their_storage(tmp_path: Path, name: str) -> None:
    values = pa.chunked_array([ARRAYS[name], ARRAYS[name].slice(0, 1), pa.nulls(1, ARRAYS[name].type)])
    dataset = ld.write_dataset(pa.table({"id": range(4), "x": values}), tmp_path / "t.lance")
    found = dataset.to_table(order_by=[ld.ColumnOrdering("x")])
    assert found["x"].to_pylist() == [*sorted(values.to_pylist()[:3]), None]
    assert found["id"].to_pylist()[-1] == 3


class Celsius(pa.ExtensionType):
    """An extension type as users define it: without a hash."""

    def __init__(self) -> None:
        super().__init__(pa.int32(), "test.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Celsius:
        return cls()


def test_user_extension_types_can_be_changed_in_sql(tmp_path: Path) -> None:
    pa.register_extension_type(Celsius())
    try:
        values = pa.ExtensionArray.from_storage(Celsius(), pa.array([10, 20, None], pa.int32()))
        ld.write_dataset(pa.table({"id": [1, 2, 3], "c": values}), tmp_path / "t.lance")
        with ld.connect(tmp_path) as connection:
            connection.execute("INSERT INTO lance.t SELECT id + 3, c FROM lance.t")
            connection.execute("UPDATE lance.t SET c = c + 1 WHERE id = 1")
            connection.execute(
                "MERGE INTO lance.t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c = c + 5"
            )
            connection.execute(
                "MERGE INTO lance.t USING (SELECT 9 AS id, 90 AS c) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT"
            )
            connection.execute("INSERT INTO lance.t VALUES (3, 30) ON CONFLICT (id) DO UPDATE SET c = excluded.c")
            connection.execute("DELETE FROM lance.t WHERE c = 10")
            rows = connection.execute("SELECT * FROM lance.t ORDER BY id").fetchall()
        assert rows == [(1, 11), (2, 25), (3, 30), (5, 20), (6, None), (9, 90)]
        assert ld.dataset(tmp_path / "t.lance").schema.field("c").type == Celsius()
    finally:
        pa.unregister_extension_type("test.celsius")
