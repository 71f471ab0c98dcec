from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError, WrongTypeError
from lance_duck.spark.io.columns import table_schema
from lance_duck.spark.io.types import spark_schema

FLOATS = st.ArrayType(st.FloatType())


def column(kind: st.DataType, **metadata: object) -> st.StructType:
    return st.StructType([st.StructField("v", kind, True, metadata or None)])


def found(schema: st.StructType, said: str | None = None) -> pa.DataType:
    return table_schema(schema, {} if said is None else {"v": said}).field("v").type


def test_vectors_have_the_declared_length() -> None:
    assert found(column(FLOATS), "4") == pa.list_(pa.float32(), 4)
    assert found(column(st.ArrayType(st.DoubleType())), "4") == pa.list_(pa.float64(), 4)
    assert found(column(FLOATS), "float16[4]") == pa.list_(pa.float16(), 4)
    assert found(column(FLOATS), "0") == pa.list_(pa.float32())
    assert found(column(FLOATS, **{"arrow.fixed-size-list.size": 8})) == pa.list_(pa.float32(), 8)
    assert found(column(FLOATS, **{"arrow.fixed-size-list.size": 8}), "4") == pa.list_(pa.float32(), 4)


def test_vectors_declared_to_spark_round_trip() -> None:
    schema = pa.schema({"v": pa.list_(pa.float16(), 3), "w": pa.list_(pa.float64(), 2), "l": pa.list_(pa.int64())})
    assert table_schema(spark_schema(schema)) == schema


@pytest.mark.parametrize(
    ("kind", "said", "error"),
    [
        (FLOATS, None, InvalidInputError),
        (st.ArrayType(st.DoubleType()), None, InvalidInputError),
        (FLOATS, "many", InvalidInputError),
        (FLOATS, "float16[4", InvalidInputError),
        (FLOATS, "int8[4]", InvalidInputError),
        (st.LongType(), "4", WrongTypeError),
        (st.VariantType(), None, UnsupportedError),
        (st.ArrayType(st.YearMonthIntervalType()), None, UnsupportedError),
    ],
)
def test_unsupported_columns_are_rejected_by_name(
    kind: st.DataType, said: str | None, error: type[LanceDuckError]
) -> None:
    with pytest.raises(error, match="v"):
        found(column(kind), said)


def test_unknown_columns_are_rejected() -> None:
    with pytest.raises(InvalidInputError, match="no column 'w'"):
        table_schema(column(FLOATS), {"w": "4"})
    with pytest.raises(InvalidInputError, match="no column 'w'"):
        table_schema(column(st.LongType()), {}, frozenset({"w"}))
    with pytest.raises(WrongTypeError, match="blobs must be bytes"):
        table_schema(column(st.LongType()), {}, frozenset({"v"}))


def test_a_column_keeps_its_table_type_if_spark_cannot_express_it() -> None:
    like = pa.schema(
        [
            pa.field("v", pa.list_(pa.float16(), 4)),
            pa.field("u", pa.uint8(), metadata={"k": "v"}),
            pa.field("s", pa.large_string()),
            pa.field("n", pa.int32()),
        ]
    )
    schema = spark_schema(like)
    assert table_schema(schema, like=like).equals(like, check_metadata=True)
    changed = st.StructType(
        [*schema.fields[:3], st.StructField("n", st.LongType()), st.StructField("x", st.LongType())]
    )
    expected = pa.schema([*[like.field(i) for i in range(3)], ("n", pa.int64()), ("x", pa.int64())])
    assert table_schema(changed, like=like) == expected
    assert table_schema(schema, {"v": "2"}, like=like).field("v").type == pa.list_(pa.float32(), 2)
