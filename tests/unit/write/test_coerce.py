from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.arrow import limits
from lance_duck.errors import ArrayLimitError, InvalidInputError
from lance_duck.wire.schema_write import schema_from_arrow
from lance_duck.write.coerce import check_fits, coerce


def fit(data: pa.Table | Iterable[pa.RecordBatch], *fields: pa.Field | tuple[str, pa.DataType]) -> pa.Table:
    schema = schema_from_arrow(pa.schema(list(fields)))
    batches = list(coerce(data.to_reader() if isinstance(data, pa.Table) else data, schema))
    types = [f.storage_type for f in schema.fields]
    return pa.Table.from_batches(batches, pa.schema(list(zip(schema.names, types, strict=True))))


def one(array: pa.Array, wanted: pa.DataType, *, nullable: bool = True) -> pa.ChunkedArray:
    """An array as a column of another type."""
    return fit(pa.table({"c": array}), pa.field("c", wanted, nullable=nullable))["c"]


def test_columns_are_matched_by_name_in_any_order() -> None:
    data = pa.table({"b": ["x"], "a": [1]})
    assert fit(data, ("a", pa.int64()), ("b", pa.string())).to_pylist() == [{"a": 1, "b": "x"}]


def test_missing_columns_are_nulls() -> None:
    found = fit(pa.table({"a": [1]}), ("a", pa.int64()), ("l", pa.list_(pa.int8())), ("u", pa.uuid()))
    assert found.to_pylist() == [{"a": 1, "l": None, "u": None}]


def test_empty_maps_in_maps_have_no_items() -> None:
    nothing = pa.py_buffer(b"\xff" * 64).slice(0, 0)
    inner, wanted = pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int8())
    items = pa.Array.from_buffers(inner, 0, [None, nothing], children=[pa.array([], inner.field(0).type)])
    outer = pa.map_(pa.string(), inner)
    entries = pa.StructArray.from_arrays([pa.array([], pa.string()), items], fields=list(outer.field(0).type))
    maps = pa.Array.from_buffers(outer, 0, [None, nothing], children=[entries])
    assert one(maps, pa.map_(pa.string(), wanted)).to_pylist() == []
    rows = pa.MapArray.from_arrays(pa.array([0, 0], pa.int32()), entries.field(0), items, type=outer)
    assert one(rows, pa.map_(pa.string(), wanted)).to_pylist() == [[]]


def test_matching_arrays_are_passed_without_a_copy() -> None:
    array = pa.array([1, 2, 3])
    assert one(array, pa.int64()).chunk(0).buffers()[1].address == array.buffers()[1].address


DAY = pa.array([10], pa.date32())
CASTS: list[tuple[pa.Array, pa.DataType, Any]] = [
    (pa.array([1, None], pa.int64()), pa.int8(), [1, None]),
    (pa.array([200], pa.int32()), pa.uint8(), [200]),
    (pa.array([1, 2**53], pa.int64()), pa.float64(), [1.0, 2.0**53]),
    (pa.array([1.5, float("nan"), None]), pa.float32(), [1.5, "nan", None]),
    (pa.array([2.0]), pa.int16(), [2]),
    (pa.array([0.5], pa.float16()), pa.float64(), [0.5]),
    (pa.array([12]), pa.decimal128(5, 2), [Decimal("12.00")]),
    (pa.array([Decimal("1.5")], pa.decimal32(3, 1)), pa.decimal128(10, 3), [Decimal("1.500")]),
    (pa.array([Decimal(2**64 - 1), None]), pa.uint64(), [2**64 - 1, None]),
    (pa.array(["a", None]), pa.large_string(), ["a", None]),
    (pa.array(["a"], pa.string_view()), pa.string(), ["a"]),
    (pa.array([b"ab"], pa.binary()), pa.binary(2), [b"ab"]),
    (pa.array([b"ab"], pa.binary_view()), pa.large_binary(), [b"ab"]),
    (pa.array([b"ab"], pa.binary(2)), pa.binary(), [b"ab"]),
    (pa.array([3000], pa.timestamp("ms")), pa.timestamp("s"), [pa.scalar(3, pa.timestamp("s")).as_py()]),
    (DAY, pa.date64(), DAY.to_pylist()),
    (pa.array([60], pa.time32("s")), pa.time64("us"), [pa.scalar(60, pa.time32("s")).as_py()]),
    (pa.array([2], pa.duration("s")), pa.duration("ms"), [pa.scalar(2, pa.duration("s")).as_py()]),
    (pa.array(["x", "y", None, "x"]).dictionary_encode(), pa.string(), ["x", "y", None, "x"]),
    (pa.array(["x", None]), pa.dictionary(pa.int8(), pa.large_string()), ["x", None]),
    (pa.array([[1], [], None]), pa.large_list(pa.int8()), [[1], [], None]),
    (pa.array([[1.0, 2.0], None, [3.0, 4.0]]), pa.list_(pa.float32(), 2), [[1, 2], None, [3, 4]]),
    (pa.array([[0.1, 2.0]]), pa.list_(pa.float32(), 2), [np.array([0.1, 2.0], "f4").tolist()]),
    (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), pa.list_(pa.float32(), 2), [[1, 2]]),
    (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), pa.list_(pa.int64()), [[1, 2], None]),
    (pa.array([[1], None], pa.list_view(pa.int64())), pa.list_(pa.int64()), [[1], None]),
    (
        pa.array([{"b": 1, "a": "x"}, None]),
        pa.struct([("a", pa.string()), ("n", pa.int8()), ("b", pa.int8())]),
        [{"a": "x", "n": None, "b": 1}, None],
    ),
    (pa.array([[{"b": 1}]]), pa.list_(pa.struct([("a", pa.int8()), ("b", pa.int16())])), [[{"a": None, "b": 1}]]),
    (
        pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
        pa.map_(pa.large_string(), pa.int8()),
        [[("k", 1)], None],
    ),
    (pa.nulls(2), pa.struct([("a", pa.int8())]), [None, None]),
    (pa.array([bytes(16)], pa.uuid()), pa.uuid(), [bytes(16)]),
    (pa.array([bytes(16)], pa.binary(16)), pa.uuid(), [bytes(16)]),
    (pa.array(['{"a": 1}'], pa.json_()), pa.json_(), ['{"a": 1}']),
    (pa.array(["[1]"], pa.large_string()), pa.json_(), ["[1]"]),
    (pa.array([7], pa.bool8().storage_type).cast(pa.int8()), pa.int8(), [7]),
]


@pytest.mark.parametrize(
    ("array", "wanted", "values"), CASTS, ids=lambda value: str(getattr(value, "type", value))[:40]
)
def test_casts_keep_the_values(array: pa.Array, wanted: pa.DataType, values: list[Any]) -> None:
    found = ["nan" if v != v else v for v in one(array, wanted).to_pylist()]
    assert found == values
    if len(array) > 1:
        assert one(array.slice(1), wanted).to_pylist()[1:] == values[2:]


REFUSED: list[tuple[pa.Array, pa.DataType, str]] = [
    (
        pa.array([1, 2, 300]),
        pa.int8(),
        r"column 'c', row 2: the value does not fit the column: expected int8, found 300",
    ),
    (pa.array([1, -1]), pa.uint64(), "row 1"),
    (pa.array([2**53 + 1]), pa.float64(), "row 0"),
    (pa.array([0.5, 0.1]), pa.float32(), "row 1: the value would be rounded"),
    (pa.array([1e300]), pa.float32(), "row 0"),
    (pa.array([1.5]), pa.int64(), "row 0"),
    (pa.array([float("nan")]), pa.int64(), "row 0"),
    (pa.array([1000, 1]), pa.decimal128(4, 2), "row 0"),
    (pa.array([Decimal("1.0"), Decimal("1.5")]), pa.int64(), "row 1"),
    (pa.array([1500], pa.timestamp("ms")), pa.timestamp("s"), "row 0"),
    (pa.array([1], pa.timestamp("s")), pa.timestamp("s", "UTC"), "the wrong type"),
    (pa.array(["1"]), pa.int64(), "expected int64, found string"),
    (pa.array([1]), pa.string(), "expected string, found int64"),
    (pa.array([True]), pa.int8(), "the wrong type"),
    (pa.array([b"x"]), pa.string(), "the wrong type"),
    (pa.array([b"abc"]), pa.binary(2), "row 0"),
    (
        pa.array([[1.0, 2.0], None, [3.0]]),
        pa.list_(pa.float32(), 2),
        "row 2: the vector has the wrong length: expected 2, found 1",
    ),
    (pa.array([None, [1.0] * 3], pa.list_(pa.float32(), 3)), pa.list_(pa.float32(), 2), "row 1.*expected 2, found 3"),
    (pa.array([[1, 300]]), pa.list_(pa.int8()), r"c'\.item, row 0"),
    (pa.array([[1.0]]), pa.float32(), "the wrong type"),
    (pa.array([{"z": 1}]), pa.struct([("a", pa.int8())]), "table does not have: expected a, found z"),
]


@pytest.mark.parametrize(
    ("array", "wanted", "message"), REFUSED, ids=lambda value: str(getattr(value, "type", value))[:40]
)
def test_lossy_casts_are_rejected(array: pa.Array, wanted: pa.DataType, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        one(array, wanted)


def test_dictionaries_that_overflow_their_indices_are_split() -> None:
    schema = schema_from_arrow(pa.schema([("c", pa.dictionary(pa.int8(), pa.string()))]), "2.2")
    texts = [str(number) for number in range(200)]
    parts = list(coerce([pa.record_batch({"c": texts})], schema))
    assert [part.num_rows for part in parts] == [100, 100]
    assert [text for part in parts for text in part.column("c").to_pylist()] == texts
    many = pa.record_batch({"c": [str(number) for number in range(16 * 200)]})
    with pytest.raises(
        ArrayLimitError, match=r"column 'c', rows from 0: the dictionary has more values .*cast the column"
    ):
        list(coerce([many], schema))


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (pa.array(["x" * 60] * 8, pa.large_string()), pa.string()),
        (pa.array(["x" * 60] * 8).dictionary_encode(), pa.string()),
        (pa.array([[1] * 60] * 8, pa.large_list(pa.int8())), pa.list_(pa.int8())),
        (pa.RunEndEncodedArray.from_arrays([8], pa.array(["x" * 60])), pa.string()),
    ],
    ids=["large string", "dictionary", "large list", "run ends"],
)
def test_values_that_exceed_one_array_are_split(
    monkeypatch: pytest.MonkeyPatch, array: pa.Array, wanted: pa.DataType
) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 150)
    schema = schema_from_arrow(pa.schema([("c", wanted)]), "2.2")
    parts = list(coerce([pa.record_batch({"c": array})], schema))
    assert [part.num_rows for part in parts] == [2, 2, 2, 2]
    assert [value for part in parts for value in part.column("c").to_pylist()] == array.to_pylist()


def test_rows_count_from_the_start_of_the_data() -> None:
    def batch(*values: int) -> pa.RecordBatch:
        return pa.record_batch({"c": pa.array(values)})

    with pytest.raises(InvalidInputError, match="row 4"):
        fit([batch(1, 2, 3), batch(4, 500)], ("c", pa.int8()))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pa.table([[1], [2]], names=["a", "a"]), "duplicate column names: found a"),
        (pa.table({"a": [1], "z": [2]}), "does not have: expected a, b, found z"),
        (pa.table({"b": [1]}), "non-nullable columns are missing from the data: expected a"),
        (pa.table({"a": pa.array([1, None]), "b": [1, 2]}), "column 'a', row 1: a non-nullable column contains a null"),
    ],
)
def test_mismatched_columns_are_rejected(data: pa.Table, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fit(data, pa.field("a", pa.int64(), nullable=False), ("b", pa.int64()))


STRICT = pa.struct([pa.field("x", pa.int64(), nullable=False)])


@pytest.mark.parametrize(
    ("array", "wanted", "row"),
    [
        (pa.array([{"x": 1}, None, {"x": None}]), STRICT, r"c'\.x, row 2"),
        (pa.array([[{"x": 1}], [], [{"x": 1}, {"x": None}]]), pa.list_(STRICT), r"c'\.item\.x, row 2"),
        (pa.array([[1], None, [None]]), pa.list_(pa.field("item", pa.int64(), nullable=False)), r"item, row 2"),
        (
            pa.array(
                [[("a", {"x": 1})], None, [("b", {"x": None})]], pa.map_(pa.string(), pa.struct([("x", pa.int64())]))
            ),
            pa.map_(pa.string(), STRICT),
            r"value\.x, row 2",
        ),
    ],
)
def test_nested_nulls_are_rejected_if_the_schema_forbids_them(array: pa.Array, wanted: pa.DataType, row: str) -> None:
    with pytest.raises(InvalidInputError, match=row):
        one(array, wanted)


def test_values_below_a_null_may_be_null() -> None:
    assert one(pa.array([None, {"x": 1}], pa.struct([("x", pa.int64())])), STRICT).to_pylist() == [None, {"x": 1}]

    inner = pa.StructArray.from_arrays([pa.array([1, None])], fields=list(STRICT), mask=pa.array([False, True]))
    outer = pa.StructArray.from_arrays([inner], names=["s"])
    values = pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), pa.array(["a", "b"]), outer)
    rows = [[("a", {"s": {"x": 1}})], [("b", {"s": None})]]
    assert one(values, values.type).to_pylist() == rows
    assert one(values.slice(1), values.type).to_pylist() == rows[1:]


@pytest.mark.parametrize("kind", ["list", "large_list", "vector", "map"])
def test_not_null_items_are_cast_within_structs(kind: str) -> None:
    def of(item: pa.DataType, *, nullable: bool) -> pa.DataType:
        field = pa.field("item", item, nullable)
        lists = {"list": pa.list_(field), "large_list": pa.large_list(field), "vector": pa.list_(field, 1)}
        return pa.struct([("x", lists[kind] if kind in lists else pa.map_(pa.string(), field))])

    rows = [{"x": [("a", 1)] if kind == "map" else [1]}, None]
    for nullable in (True, False):
        found = one(pa.array(rows, of(pa.int32(), nullable=nullable)), of(pa.int64(), nullable=False))
        assert found.to_pylist() == rows


def test_binary_columns_become_blobs() -> None:
    blob = pa.field("c", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    found = fit(pa.table({"c": pa.array([b"ab", None])}), blob)["c"]
    assert found.to_pylist() == [{"data": b"ab", "uri": None}, None]
    given = pa.array([{"uri": "s3://b/x", "data": None}], pa.struct([("uri", pa.string()), ("data", pa.binary())]))
    assert fit(pa.table({"c": given}), blob)["c"].to_pylist() == [{"data": None, "uri": "s3://b/x"}]


def test_batches_that_differ_from_their_schema_are_rejected() -> None:
    def lying() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"c": pa.array([1])})
        yield pa.record_batch({"c": pa.array(["x"])})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("c", pa.int64())]), lying())
    with pytest.raises(InvalidInputError, match="row 1: the batch does not have the declared schema"):
        fit(reader, ("c", pa.int64()))


def test_invalid_batches_are_rejected() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 900, 5], "i4")), pa.py_buffer(b"abcde")]
    )
    with pytest.raises(InvalidInputError, match="the batch is invalid"):
        fit([pa.record_batch({"c": broken})], ("c", pa.string()))


def test_empty_batches_are_skipped_and_empty_streams_are_checked() -> None:
    empty = pa.record_batch({"c": pa.array([], pa.int64())})
    assert list(coerce([empty], schema_from_arrow(empty.schema))) == []
    with pytest.raises(InvalidInputError, match="the wrong type"):
        fit(pa.table({"c": pa.array([], pa.string())}), ("c", pa.int64()))


def test_rows_without_columns_are_rejected() -> None:
    rows = pa.record_batch({"a": [1, 2]}).select([])
    with pytest.raises(InvalidInputError, match="the data has rows but no columns"):
        fit([rows])
    assert list(coerce([rows.slice(0, 0)], schema_from_arrow(pa.schema([])))) == []


def test_schemas_are_checked_without_data() -> None:
    schema = schema_from_arrow(pa.schema([("c", pa.int8())]))
    check_fits(pa.schema([("c", pa.int64())]), schema)
    with pytest.raises(InvalidInputError, match="the wrong type"):
        check_fits(pa.schema([("c", pa.string())]), schema)


@given(st.lists(st.none() | st.lists(st.none() | st.integers(-128, 127), max_size=4), max_size=12), st.data())
def test_slices_are_cast_by_their_visible_values(values: list[Any], data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(values)))
    array = pa.array([[9], None, *values], pa.list_(pa.int64())).slice(2 + start)
    casts: list[Callable[[], pa.ChunkedArray]] = [
        lambda: one(array, pa.large_list(pa.int8())),
        lambda: one(array.cast(pa.large_list(pa.int64())), pa.list_(pa.int8())),
    ]
    for cast in casts:
        assert cast().to_pylist() == values[start:]
