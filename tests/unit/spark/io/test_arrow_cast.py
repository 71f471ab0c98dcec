from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.spark.costs import BATCH_BYTES
from lance_duck.spark.io.types import Declaration, arrow_schema, as_declared, spark_schema

BFLOAT16 = {"ARROW:extension:name": "lance.bfloat16"}


def shown(array: pa.Array, field: pa.Field | None = None) -> pa.Array:
    """What Spark gets of a column, sliced and whole."""
    field = pa.field("x", array.type) if field is None else field
    schema = pa.schema([field])
    promise = spark_schema(schema)
    batch = pa.record_batch([array], schema=schema)
    found = as_declared(batch, promise)
    assert found.schema == arrow_schema(promise)
    found.validate(full=True)
    part = as_declared(batch.slice(1, 2), promise)
    part.validate(full=True)
    assert part.column(0) == found.column(0).slice(1, 2)
    return found.column(0)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(pa.float32(), 2), [[1, 2], None, [3, 4], [5, 6]]),
        (pa.list_(pa.float16(), 2), [[1, 2], None, [3, 4], [5, 6]]),
        (pa.large_list(pa.uint16()), [[1], None, [], [2, None]]),
        (pa.list_(pa.list_(pa.uint8(), 2)), [[[1, 2], None], None, [], [[3, 4]]]),
        (pa.list_(pa.struct({"a": pa.uint8(), "b": pa.large_string()})), [[{"a": 1, "b": "x"}, None], None, [], []]),
        (
            pa.struct({"a": pa.list_(pa.uint8()), "b": pa.int64()}),
            [{"a": [1], "b": 2}, None, {"a": None, "b": 3}, None],
        ),
        (pa.map_(pa.string(), pa.uint8()), [[("a", 1)], None, [], [("b", None)]]),
        (pa.map_(pa.large_string(), pa.list_(pa.uint8())), [[("a", [1])], None, [], [("b", None)]]),
        (pa.dictionary(pa.int8(), pa.large_string()), ["a", None, "b", "a"]),
        (pa.string_view(), ["a", None, "c", "d"]),
        (pa.null(), [None, None, None, None]),
    ],
)
def test_nested_values_are_unchanged(kind: pa.DataType, values: list[Any]) -> None:
    assert shown(pa.array(values, kind)).to_pylist() == values


def test_vectors_are_not_copied() -> None:
    vectors = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
    found = shown(vectors)
    assert found.values.buffers()[1].address == vectors.values.buffers()[1].address


def test_upper_halves_of_floats_become_floats() -> None:
    halves = pa.array([b"\x80\x3f", None, b"\x00\xc0"], pa.binary(2))
    assert shown(halves, pa.field("x", pa.binary(2), metadata=BFLOAT16)).to_pylist() == [1.0, None, -2.0]
    item = pa.field("item", pa.binary(2), metadata=BFLOAT16)
    vectors = pa.array([[b"\x80\x3f"] * 2, None, [b"\x00\xc0"] * 2], pa.list_(pa.binary(2), 2)).cast(pa.list_(item, 2))
    assert shown(vectors, pa.field("x", pa.list_(item, 2))).to_pylist() == [[1.0, 1.0], None, [-2.0, -2.0]]


def test_nanoseconds_are_rounded_down_to_microseconds() -> None:
    found = shown(pa.array([1999, -1, -1000, -1001], pa.timestamp("ns", "UTC")))
    assert found.cast(pa.int64()).to_pylist() == [1, -1, -1, -2]


def test_nulls_in_a_not_null_column_are_rejected() -> None:
    schema = st.StructType([st.StructField("x", st.LongType(), nullable=False)])
    with pytest.raises(InvalidInputError, match="column 'x'"):
        as_declared(pa.record_batch({"x": [1, None]}), schema)


def test_numbers_are_widened_and_never_narrowed_silently() -> None:
    batch = pa.record_batch({"x": pa.array([1, 2**40])})
    assert as_declared(batch, st.StructType().add("x", st.DoubleType())).column(0).to_pylist() == [1.0, float(2**40)]
    with pytest.raises(InvalidInputError, match="column 'x'"):
        as_declared(batch, st.StructType().add("x", st.IntegerType()))
    no = ((pa.float64(), st.FloatType()), (pa.string(), st.LongType()), (pa.timestamp("us"), st.TimestampType()))
    for found, wanted in no:
        with pytest.raises(WrongTypeError, match="column 'x'"):
            Declaration(st.StructType().add("x", wanted), pa.schema({"x": found}))


def test_large_batches_are_split_for_spark() -> None:
    items = pa.array(range(3 << 20), pa.float32())
    table = pa.table({"id": range(3 << 10), "v": pa.FixedSizeListArray.from_arrays(items, 1 << 10)})
    (batch,) = table.to_batches()
    declaration = Declaration(spark_schema(batch.schema), batch.schema)

    pieces = list(declaration.pieces(batch))

    assert [round(piece.nbytes / BATCH_BYTES, 1) for piece in pieces] == [1.0] * 6 + [0.0]
    assert pa.Table.from_batches(pieces)["id"].to_pylist() == list(range(3 << 10))
    assert pa.Table.from_batches(pieces).equals(pa.Table.from_batches([declaration.apply(batch)]))
    assert list(declaration.pieces(batch.slice(0, 0))) == [declaration.apply(batch.slice(0, 0))]
