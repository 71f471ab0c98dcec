from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

from lance_duck.scan.duckdb.types import duckdb_arrow_schema, duckdb_arrow_type


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pa.float16(), pa.float32()),
        (pa.decimal128(9, 2), pa.decimal32(9, 2)),
        (pa.decimal128(10, 2), pa.decimal64(10, 2)),
        (pa.decimal128(18, 0), pa.decimal64(18, 0)),
        (pa.decimal128(19, 2), pa.decimal128(19, 2)),
        (pa.decimal256(38, 2), pa.decimal128(38, 2)),
        (pa.decimal256(39, 2), pa.decimal128(38, 2)),
        (pa.decimal128(5, -1), pa.decimal128(6, 0)),
        (pa.uuid(), pa.uuid()),
        (pa.json_(pa.string()), pa.json_(pa.string())),
        (pa.fixed_shape_tensor(pa.float32(), [2]), pa.list_(pa.float32(), 2)),
        (pa.dictionary(pa.int8(), pa.decimal128(5, 2)), pa.dictionary(pa.int8(), pa.decimal32(5, 2))),
        (pa.list_(pa.dictionary(pa.int8(), pa.string())), pa.list_(pa.string())),
        (pa.list_(pa.float16()), pa.list_(pa.float32())),
        (pa.large_list(pa.float16()), pa.large_list(pa.float32())),
        (pa.list_(pa.float16(), 4), pa.list_(pa.float32(), 4)),
        (pa.map_(pa.string(), pa.float16()), pa.map_(pa.string(), pa.float32())),
        (pa.struct([("a", pa.list_(pa.float16()))]), pa.struct([("a", pa.list_(pa.float32()))])),
        (pa.large_string(), pa.large_string()),
        (pa.timestamp("ns"), pa.timestamp("ns")),
    ],
    ids=str,
)
def test_arrow_types_are_mapped_to_types_duckdb_reads(before: pa.DataType, after: pa.DataType) -> None:
    assert duckdb_arrow_type(pa.field("x", before)) == after


def test_bfloat16_is_float32_in_vectors_and_alone() -> None:
    item = pa.field("item", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})
    assert duckdb_arrow_type(item) == pa.float32()
    (field,) = duckdb_arrow_schema(pa.schema([pa.field("v", pa.list_(item, 3))]))
    assert field.type == pa.list_(pa.float32(), 3)
    assert field.type.value_field.metadata is None


def test_duckdb_reads_every_mapped_type() -> None:
    types = [pa.float32(), pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.uuid(), pa.string()]
    chosen = pa.table({f"c{i}": pa.nulls(1, type_) for i, type_ in enumerate(types)})  # noqa: F841
    names = [row[1] for row in duckdb.sql("DESCRIBE FROM chosen").fetchall()]
    assert names == ["FLOAT", "DECIMAL(9,2)", "DECIMAL(18,2)", "DECIMAL(38,2)", "UUID", "VARCHAR"]
