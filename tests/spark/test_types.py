"""Values of every type, from Spark through us to pylance, and from pylance through us to Spark."""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as st

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.spark.io.types import arrow_schema, spark_schema
from lance_duck.spark.jobs.failures import as_ours

HAS_TIME = hasattr(st, "TimeType")
MOMENT = datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)
NAIVE = MOMENT.replace(tzinfo=None)
SPAN = timedelta(days=-3, microseconds=7)

# Type of Spark, a value, and the Arrow type that the table has.
FROM_SPARK: dict[str, tuple[st.DataType, Any, pa.DataType]] = {
    "byte": (st.ByteType(), -128, pa.int8()),
    "short": (st.ShortType(), 32767, pa.int16()),
    "int": (st.IntegerType(), -(2**31), pa.int32()),
    "long": (st.LongType(), 2**63 - 1, pa.int64()),
    "float": (st.FloatType(), 1.5, pa.float32()),
    "double": (st.DoubleType(), -0.1, pa.float64()),
    "bool": (st.BooleanType(), True, pa.bool_()),
    "text": (st.StringType(), "größer 🙂", pa.string()),
    "bytes": (st.BinaryType(), b"\x00\xff", pa.binary()),
    "decimal": (st.DecimalType(38, 10), decimal.Decimal("-1234567890.0123456789"), pa.decimal128(38, 10)),
    "date": (st.DateType(), date(1969, 12, 31), pa.date32()),
    "moment": (st.TimestampType(), MOMENT, pa.timestamp("us", "UTC")),
    "naive": (st.TimestampNTZType(), NAIVE, pa.timestamp("us")),
    "span": (st.DayTimeIntervalType(), SPAN, pa.duration("us")),
    "longs": (st.ArrayType(st.LongType()), [1, None, 3], pa.list_(pa.int64())),
    "texts": (st.ArrayType(st.StringType()), [], pa.list_(pa.string())),
    "vector": (st.ArrayType(st.FloatType()), [0.5, -2.0], pa.list_(pa.float32(), 2)),
    "struct": (
        st.StructType([st.StructField("x", st.IntegerType()), st.StructField("y", st.ArrayType(st.StringType()))]),
        {"x": None, "y": ["a", None]},
        pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]),
    ),
    "map": (st.MapType(st.StringType(), st.LongType()), {"a": 1, "b": None}, pa.map_(pa.string(), pa.int64())),
}
if HAS_TIME:
    FROM_SPARK["time"] = (st.TimeType(), time(23, 59, 59, 999999), pa.time64("ns"))


def test_spark_values_round_trip_and_are_readable_by_pylance(spark: SparkSession, tmp_path: Path) -> None:
    schema = st.StructType([st.StructField(name, kind) for name, (kind, _, _) in FROM_SPARK.items()])
    row = tuple(value for _, value, _ in FROM_SPARK.values())
    df = spark.createDataFrame([row, (None,) * len(row)], schema).coalesce(1)
    ls.write(df, tmp_path / "t", vector_columns={"vector": 2})

    found = lance.dataset(tmp_path / "t").to_table()

    assert dict(zip(found.schema.names, found.schema.types, strict=True)) == {
        n: k for n, (_, _, k) in FROM_SPARK.items()
    }
    expected = {name: value for name, (_, value, _) in FROM_SPARK.items()}
    expected["map"] = list(expected["map"].items())
    assert _plain(found.to_pylist()) == [expected, dict.fromkeys(expected)]
    back = ls.read(spark, tmp_path / "t")
    assert back.schema.simpleString() == schema.simpleString()
    assert sorted(back.collect(), key=str) == sorted(df.collect(), key=str)


def test_nullability_is_kept_at_every_level(spark: SparkSession, tmp_path: Path) -> None:
    sure = st.StructField("y", st.ArrayType(st.LongType(), containsNull=False), nullable=False)
    schema = st.StructType(
        [
            st.StructField("id", st.LongType(), nullable=False),
            st.StructField("s", st.StructType([st.StructField("x", st.LongType()), sure])),
            st.StructField("m", st.MapType(st.StringType(), st.LongType(), valueContainsNull=False)),
        ]
    )
    df = spark.createDataFrame([(1, (None, [2]), {"a": 3}), (2, None, None)], schema)
    ls.write(df, tmp_path / "t")

    back = ls.read(spark, tmp_path / "t")

    assert back.schema.json() == schema.json()
    assert {row.id: row for row in back.collect()} == {row.id: row for row in df.collect()}
    assert lance.dataset(tmp_path / "t").schema.field("id").nullable is False


def test_vectors_without_nulls_are_declared_so_and_may_get_nulls_later(spark: SparkSession, tmp_path: Path) -> None:
    item = st.ArrayType(st.FloatType())
    schema = st.StructType([st.StructField("id", st.LongType()), st.StructField("v", item)])
    uri, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    ls.write(spark.createDataFrame([(1, [1.0, 2.0]), (2, None)], schema), uri, vector_columns={"v": 2})

    first = ls.read(spark, uri)

    assert first.schema["v"].dataType == st.ArrayType(st.FloatType(), containsNull=False)
    assert ls.read(spark, uri, contains_null=True).schema["v"].dataType == item
    assert spark.read.format("lance").load(uri).schema["v"].dataType == item
    rows = [(1, [1.0, 2.0]), (2, None)]
    assert sorted(map(tuple, first.collect())) == rows
    ls.write(first, copy)
    ls.write(first, copy, mode="overwrite")
    assert lance.dataset(copy).schema == lance.dataset(uri).schema
    ls.create_view(spark, "vectors_that_may_get_nulls", uri)
    spark.sql("INSERT INTO vectors_that_may_get_nulls SELECT 3L, array(3f, CAST(NULL AS FLOAT))")
    first.createOrReplaceTempView("vectors_that_have_none")
    spark.sql("INSERT INTO vectors_that_have_none SELECT id + 3, v FROM vectors_that_have_none WHERE id = 1")
    now = ls.read(spark, uri)
    assert now.schema["v"].dataType == item
    assert sorted(map(tuple, now.collect())) == [*rows, (3, [3.0, None]), (4, [1.0, 2.0])]
    assert sorted(map(tuple, first.collect())) == rows
    ls.write(first.union(now), copy, mode="append")
    assert lance.dataset(copy).count_rows() == 8
    with pytest.raises(PySparkException, match="its Spark schema does not allow them"):
        ls.read(spark, uri, contains_null=False).collect()
    with pytest.raises(PySparkException, match="its Spark schema does not allow them"):
        spark.read.schema(first.schema).format("lance").load(uri).collect()
    ls.drop_view(spark, "vectors_that_may_get_nulls")
    spark.catalog.dropTempView("vectors_that_have_none")


# Arrow type of the table, a value, the Spark type, and the value in Spark.
_HALF = np.float16(1.5)
TO_SPARK: dict[str, tuple[pa.DataType, Any, str, Any]] = {
    "u8": (pa.uint8(), 255, "smallint", 255),
    "u16": (pa.uint16(), 65535, "int", 65535),
    "u32": (pa.uint32(), 2**32 - 1, "bigint", 2**32 - 1),
    "u64": (pa.uint64(), 2**64 - 1, "decimal(20,0)", decimal.Decimal(2**64 - 1)),
    "half": (pa.float16(), _HALF, "float", 1.5),
    "large_text": (pa.large_string(), "äö", "string", "äö"),
    "large_bytes": (pa.large_binary(), b"ab", "binary", b"ab"),
    "fixed": (pa.binary(3), b"abc", "binary", b"abc"),
    "words": (pa.dictionary(pa.int8(), pa.string()), "word", "string", "word"),
    "wide": (pa.decimal256(30, 2), decimal.Decimal("1.25"), "decimal(30,2)", decimal.Decimal("1.25")),
    "day64": (pa.date64(), date(2024, 2, 29), "date", date(2024, 2, 29)),
    "seconds": (pa.timestamp("s"), datetime(2024, 2, 29), "timestamp_ntz", datetime(2024, 2, 29)),
    "nanos": (pa.timestamp("ns"), -1, "timestamp_ntz", datetime(1969, 12, 31, 23, 59, 59, 999999)),
    "zoned": (pa.timestamp("ms", "Europe/Berlin"), MOMENT.replace(microsecond=123000), "timestamp", None),
    "span_ns": (pa.duration("ns"), 1999, "interval day to second", timedelta(microseconds=1)),
    "time32": (pa.time32("ms"), time(1, 2, 3), "time(6)", time(1, 2, 3)),
    "large_list": (pa.large_list(pa.uint16()), [1, None], "array<int>", [1, None]),
    "vector16": (pa.list_(pa.float16(), 2), [_HALF, _HALF], "array<float>", [1.5, 1.5]),
    "vector64": (pa.list_(pa.float64(), 2), [0.1, 0.2], "array<double>", [0.1, 0.2]),
    "tags": (pa.list_(pa.list_(pa.large_string())), [["a"], None, []], "array<array<string>>", [["a"], None, []]),
    "deep": (
        pa.struct([("u", pa.uint64()), ("v", pa.list_(pa.float16(), 2))]),
        {"u": 7, "v": [_HALF, _HALF]},
        "struct<u:decimal(20,0),v:array<float>>",
        {"u": decimal.Decimal(7), "v": [1.5, 1.5]},
    ),
    "mapped": (pa.map_(pa.string(), pa.uint8()), [("a", 1)], "map<string,smallint>", {"a": 1}),
}


def test_tables_of_pylance_arrive_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    fields = [pa.field(name, kind) for name, (kind, _, _, _) in TO_SPARK.items()]
    columns = [pa.array([value, None, value], kind) for kind, value, _, _ in TO_SPARK.values()]
    lance.write_dataset(pa.table(columns, pa.schema(fields)), tmp_path / "t", max_rows_per_file=2)

    df = ls.read(spark, tmp_path / "t")

    shown = {field.name: field.dataType.simpleString() for field in df.schema}
    assert shown == {n: _shown(said) for n, (_, _, said, _) in TO_SPARK.items()}
    rows = [row.asDict(recursive=True) for row in df.collect()]
    expected = {name: value for name, (_, _, _, value) in TO_SPARK.items()}
    expected["zoned"] = rows[0]["zoned"]
    assert rows[0]["zoned"].astimezone(UTC) == MOMENT.replace(microsecond=123000)
    if not HAS_TIME:
        expected["time32"] = 3_723_000_000_000
    assert rows == [expected, dict.fromkeys(expected), expected]
    assert df.schema["vector16"].metadata == {"arrow.fixed-size-list.size": 2, "arrow.fixed-size-list.item": "float16"}


def test_a_frame_is_cast_to_the_types_of_the_existing_table(spark: SparkSession, tmp_path: Path) -> None:
    kept = ["u8", "u64", "half", "large_text", "fixed", "seconds", "vector16", "deep"]
    fields = [pa.field(name, TO_SPARK[name][0]) for name in kept]
    table = pa.table([pa.array([TO_SPARK[name][1], None], TO_SPARK[name][0]) for name in kept], pa.schema(fields))
    lance.write_dataset(table, tmp_path / "t")
    df = ls.read(spark, tmp_path / "t")

    ls.write(df, tmp_path / "t", "append")
    assert lance.dataset(tmp_path / "t").to_table() == pa.concat_tables([table, table]).combine_chunks()

    ls.write(df.filter("u8 = 255"), tmp_path / "t", "overwrite")
    assert lance.dataset(tmp_path / "t").to_table() == table.slice(0, 1)


def test_types_missing_in_spark_or_lance_are_named(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.sql("select 1 id, interval '1' year years")
    with pytest.raises(UnsupportedError, match=r"column 'years'.*interval year"):
        ls.write(df, tmp_path / "t")
    assert not (tmp_path / "t").exists()

    lance.write_dataset(pa.table({"a": pa.array([1]), "b": pa.array([None], pa.decimal256(50, 2))}), tmp_path / "u")
    with pytest.raises(UnsupportedError, match=r"'b' is decimal256\(50, 2\)"):
        ls.read(spark, tmp_path / "u")
    assert ls.read(spark, tmp_path / "u", columns=["a"]).collect() == [(1,)]


def test_values_that_spark_cannot_hold_are_rejected_by_column(spark: SparkSession, tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"t": pa.array([2**60], pa.timestamp("s"))}), tmp_path / "t")

    with pytest.raises(InvalidInputError, match="column 't'"), as_ours():
        ls.read(spark, tmp_path / "t").collect()


@pytest.mark.parametrize(
    ("declared", "error"),
    [("id int", InvalidInputError), ("nothing long", InvalidInputError), ("id string", WrongTypeError)],
)
def test_a_declared_schema_is_checked(
    spark: SparkSession, tmp_path: Path, declared: str, error: type[Exception]
) -> None:
    ld.write_dataset(pa.table({"id": [2**40], "s": ["a"]}), tmp_path / "t")

    with pytest.raises(error), as_ours():
        spark.read.format("lance").schema(declared).load(str(tmp_path / "t")).collect()


def test_a_declared_schema_selects_columns_and_widens_numbers(spark: SparkSession, tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"id": pa.array([1, 2], pa.int32()), "s": ["a", None], "t": ["x", "y"]}), tmp_path / "t")

    df = spark.read.format("lance").schema("s string, id long").load(str(tmp_path / "t"))

    assert df.collect() == [("a", 1), (None, 2)]


def test_declared_arrow_types_equal_those_of_pyspark() -> None:
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = st.StructType([st.StructField(name, kind) for name, (kind, _, _) in FROM_SPARK.items()])
    try:
        expected = to_arrow_schema(schema, timezone="UTC")
    except TypeError:  # before 4.2
        expected = to_arrow_schema(schema)
    assert arrow_schema(schema).equals(expected)
    assert spark_schema(expected) == schema


def _plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v.to_pytimedelta() if hasattr(v, "to_pytimedelta") else v for k, v in row.items()} for row in rows]


def _shown(said: str) -> str:
    return "bigint" if said == "time(6)" and not HAS_TIME else said
