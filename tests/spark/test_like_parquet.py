"""Frames of random types and values read back like from Spark's Parquet."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

import lance_duck.spark as ls
from tests.spark.conftest import Conf

MOMENTS = [
    *(datetime(2, 1, 2), datetime(1500, 3, 1, 1, 2, 3, 456789), datetime(1582, 10, 4, 23, 59, 59)),
    *(datetime(1883, 11, 18, 12), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 11, 3, 1, 30)),
]
LEAVES: dict[st.DataType, list[Any]] = {
    st.BooleanType(): [False, True],
    st.ByteType(): [-128, 0, 127],
    st.LongType(): [-(2**63), -1, 0, 2**63 - 1],
    st.FloatType(): [0.0, -0.0, 1.5, float("nan"), float("-inf")],
    st.DoubleType(): [0.0, -0.0, -0.1, float("nan"), float("inf")],
    st.StringType(): ["", "a'b", "größer 🦆", "e\u0301", "\x00", "x" * 300],
    st.BinaryType(): [b"", b"\x00\xff", b"abc" * 50],
    st.DateType(): [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(1899, 12, 31), date(9999, 12, 31)],
    st.TimestampType(): [moment.replace(tzinfo=UTC) for moment in MOMENTS],
    st.TimestampNTZType(): MOMENTS,
    st.DayTimeIntervalType(): [timedelta(0), timedelta(microseconds=-1), timedelta(days=1000, microseconds=7)],
    st.DecimalType(5, 5): [Decimal("-0.99999"), Decimal("0.00001")],
    st.DecimalType(20, 7): [Decimal("-1234567890123.1234567"), Decimal(0)],
    st.DecimalType(38, 0): [Decimal("9" * 38), Decimal(-1)],
}


def random_type(chance: random.Random, depth: int = 0) -> st.DataType:
    """A type, three levels deep at most."""
    if depth == 3 or chance.random() < 0.5:
        return chance.choice(list(LEAVES))
    kind, nullable = chance.randrange(3), chance.random() < 0.8
    if kind == 0:
        return st.ArrayType(random_type(chance, depth + 1), nullable)
    if kind == 1:
        key = chance.choice([st.StringType(), st.LongType(), st.DateType()])
        return st.MapType(key, random_type(chance, depth + 1), nullable)
    names = chance.sample(["a", "B", "ü", "two words"], chance.randrange(1, 4))
    return st.StructType(
        [st.StructField(name, random_type(chance, depth + 1), chance.random() < 0.8) for name in names]
    )


def random_value(chance: random.Random, kind: st.DataType, nullable: bool, nulls: float) -> Any:
    """Return a value of a type, sometimes None if the type is nullable."""
    if nullable and chance.random() < nulls:
        return None
    if isinstance(kind, st.ArrayType):
        length = chance.choice([0, 1, 4])
        return [random_value(chance, kind.elementType, kind.containsNull, nulls) for _ in range(length)]
    if isinstance(kind, st.MapType):
        keys = chance.sample(LEAVES[kind.keyType], chance.randrange(3))
        return {key: random_value(chance, kind.valueType, kind.valueContainsNull, nulls) for key in keys}
    if isinstance(kind, st.StructType):
        return tuple(random_value(chance, field.dataType, field.nullable, nulls) for field in kind)
    return chance.choice(LEAVES[kind])


def shown(frame: DataFrame) -> list[str]:
    """Return the rows as strings with NaN equal to NaN and signed zeros."""
    return sorted(map(repr, frame.collect()))


def plain(kind: st.DataType) -> str:
    return kind.simpleString()


@pytest.mark.parametrize("seed", range(3))
def test_rows_and_types_equal_those_of_parquet(spark: SparkSession, conf: Conf, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    fields = [st.StructField(name, random_type(chance), chance.random() < 0.8) for name in ("Upper", "ü", "with space")]
    schema = st.StructType([st.StructField("id", st.LongType()), *fields])
    nulls = chance.choice([0.0, 0.2, 1.0])
    rows = [(i, *(random_value(chance, field.dataType, field.nullable, nulls) for field in fields)) for i in range(40)]
    frame = spark.createDataFrame(rows, schema).repartition(3)  # a filter below empties some partitions
    table, parquet = str(tmp_path / "t.lance"), str(tmp_path / "t.parquet")
    lists = {field.name: 0 for field in fields if isinstance(field.dataType, st.ArrayType)}
    with conf(**{"spark.sql.session.timeZone": "America/Los_Angeles"}):
        frame.filter("id % 10 < 8").write.parquet(parquet)
        ls.write(spark.read.parquet(parquet), table, vector_columns=lists, data_storage_version="2.2")
    with conf(**{"spark.sql.session.timeZone": "Asia/Kathmandu"}):
        ours, theirs = ls.read(spark, table), spark.read.parquet(parquet)
        assert plain(ours.schema) == plain(theirs.schema)
        assert shown(ours) == shown(theirs)
        texts = [f"CAST(`{name}` AS STRING)" for name in schema.names]
        assert shown(ours.selectExpr(*texts)) == shown(theirs.selectExpr(*texts))
    ls.write(frame.filter("id % 10 >= 8"), table, "append")
    assert shown(ls.read(spark, table)) == shown(frame)
    assert ls.read(spark, table, limit=7).count() == 7


KEYS: dict[str, tuple[st.DataType, str]] = {
    "text": (st.StringType(), "'größer 🦆'"),
    "moment": (st.TimestampType(), "TIMESTAMP '1582-10-04 23:59:59+00'"),
    "double": (st.DoubleType(), "0.0"),
}


@pytest.mark.parametrize("name", KEYS)
def test_filters_find_the_rows_that_spark_finds_with_an_index_or_without(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    kind, literal = KEYS[name]
    values = [*(value for value in LEAVES[kind] if value == value), None]  # without NaN, which equals itself in Spark
    schema = st.StructType([st.StructField("id", st.LongType()), st.StructField("k", kind)])
    frame = spark.createDataFrame([(i, values[i % len(values)]) for i in range(40)], schema).repartition(3)
    table = str(tmp_path / "t.lance")
    ls.write(frame, table)
    conditions = [f"k = {literal}", f"k < {literal}", f"NOT (k = {literal})", f"k IN ({literal}, NULL)", "k IS NULL"]
    expected = [shown(frame.filter(condition)) for condition in conditions]
    assert [shown(ls.read(spark, table, filter=condition)) for condition in conditions] == expected
    ls.create_index(spark, table, "k", "BTREE")
    assert [shown(ls.read(spark, table, filter=condition)) for condition in conditions] == expected
