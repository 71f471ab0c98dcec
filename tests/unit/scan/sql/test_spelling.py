from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.scan.sql.spelling import with_casts


@pytest.mark.parametrize(
    ("text", "cast"),
    [
        ("arrow_cast(a, 'Int32')", "CAST(a AS INTEGER)"),
        ("ARROW_CAST( f(a, 1) , 'Utf8') = b", "CAST( f(a, 1)  AS VARCHAR) = b"),
        ("arrow_cast(arrow_cast(a, 'Utf8'), 'Date32')", "CAST(CAST(a AS VARCHAR) AS DATE)"),
        ("arrow_cast([1, 2], 'FixedSizeList(2, Float32)')", "CAST([1, 2] AS FLOAT[2])"),
        ("arrow_cast(a, 'List(LargeList(Int8))')", "CAST(a AS TINYINT[][])"),
        ("arrow_cast(a, 'FixedSizeList(2, List(Int8))')", "CAST(a AS TINYINT[][2])"),
        ("arrow_cast(a, 'Decimal128(10, 2)')", "CAST(a AS DECIMAL(10,2))"),
        ("arrow_cast(a, 'Timestamp(Millisecond, None)')", "CAST(a AS TIMESTAMP_MS)"),
        ("arrow_cast(a, 'Timestamp(Second, Some(\"UTC\"))')", "CAST(a AS TIMESTAMPTZ)"),
        ("s = 'arrow_cast(a, ''Int32'')'", "s = 'arrow_cast(a, ''Int32'')'"),
        ("arrow_cast(0x3233, 'FixedSizeBinary(2)')", "CAST(unhex('3233') AS BLOB)"),
        ("b = 0xfF AND a0xff = '0xff'", "b = unhex('fF') AND a0xff = '0xff'"),
        ("b = 0xfff", "b = 0xfff"),
        ("arrow_cast(a, b)", "arrow_cast(a, b)"),
        ("arrow_cast(a", "arrow_cast(a"),
    ],
)
def test_a_call_becomes_a_cast_of_duckdb(text: str, cast: str) -> None:
    assert with_casts(text) == cast


def test_a_type_that_duckdb_lacks_is_named() -> None:
    with pytest.raises(ld.InvalidInputError, match=r"arrow_cast: type: .* found 'Float16'"):
        with_casts("arrow_cast(a, 'FixedSizeList(2, Float16)')")


def test_types_are_nested_to_any_depth() -> None:
    name = "List(" * 2000 + "Int8" + ")" * 2000
    assert with_casts(f"arrow_cast(a, '{name}')") == f"CAST(a AS TINYINT{'[]' * 2000})"


def test_arrow_cast_works_in_filters_and_new_columns(tmp_path: Path) -> None:
    dataset = ld.write_dataset(pa.table({"a": [1, 2, 3]}), tmp_path / "t.lance")
    assert dataset.to_table(filter="arrow_cast(a, 'Utf8') = '2' OR a = 3")["a"].to_pylist() == [2, 3]
    dataset.add_columns({"v": "arrow_cast(NULL, 'FixedSizeList(4, Float32)')"})
    assert dataset.schema.field("v").type == pa.list_(pa.float32(), 4)


@pytest.mark.parametrize(
    "filter_", ["u = 0x31323132313231323132313231323132", "f = arrow_cast(0x3334, 'FixedSizeBinary(2)')"]
)
def test_bytes_are_compared_with_hexadecimal_literals(tmp_path: Path, filter_: str) -> None:
    uuids = pa.array([b"12" * 8, b"34" * 8], pa.uuid())
    rows = pa.table({"i": [0, 1], "u": uuids, "f": pa.array([b"12", b"34"], pa.binary(2))})
    dataset = ld.write_dataset(rows, tmp_path / "t.lance")
    expected = dataset.to_table(filter=filter_)["i"].to_pylist()
    assert expected == [0 if filter_[0] == "u" else 1]
    dataset.create_scalar_index("f", "BTREE")
    assert dataset.to_table(filter=filter_)["i"].to_pylist() == expected


@pytest.mark.parametrize(
    "filter_",
    [
        "b = 0xff01",
        "b IN (0xff01, 0x00)",
        "f = arrow_cast(0xff01, 'FixedSizeBinary(2)')",
        "i = arrow_cast(7, 'Int32')",
        "i > arrow_cast('7', 'Int64') AND b = 0xff01",
    ],
)
def test_arrow_cast_conditions_use_indexes(filter_: str, tmp_path: Path) -> None:
    schema = pa.schema({"b": pa.binary(), "f": pa.binary(2), "i": pa.int32()})
    rows = pa.table([[b"\xff\x01", b"a", None], [b"\xff\x01", b"ab", None], [9, 7, None]], schema=schema)
    dataset = ld.write_dataset(rows, tmp_path / "t.lance")
    truth = dataset.to_table(filter=filter_)
    assert truth.num_rows == 1
    for column in schema.names:
        dataset.create_scalar_index(column, "BTREE")
    assert "without an index" not in dataset.scanner(filter=filter_).explain_plan()
    assert dataset.to_table(filter=filter_) == truth
