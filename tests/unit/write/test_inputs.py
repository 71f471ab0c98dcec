from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, StoreError
from lance_duck.write.inputs import to_reader

TABLE = pa.table({"i": pa.array([1, 2, None]), "s": ["a", "b", "c"]})
BATCH = TABLE.to_batches()[0]


class Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


class Array:
    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return BATCH.__arrow_c_array__(requested_schema)


def batches() -> Iterator[pa.RecordBatch]:
    yield BATCH.slice(0, 1)
    yield BATCH.slice(1)


@pytest.mark.parametrize(
    "data",
    [
        *(TABLE, BATCH, TABLE.to_reader(), pads.dataset(TABLE), pads.dataset(TABLE).scanner(), Stream(), Array()),
        *(batches, batches(), list(batches()), [TABLE], [Array()], TABLE.to_pylist(), iter(TABLE.to_pylist())),
        {"i": [1, 2, None], "s": TABLE["s"]},
    ],
    ids=lambda data: type(data).__name__,
)
def test_every_supported_input_gives_the_same_rows(data: object) -> None:
    found = to_reader(data)
    assert isinstance(found, pa.RecordBatchReader)
    assert found.read_all().cast(TABLE.schema).equals(TABLE)


def test_duckdb_relations_are_accepted() -> None:
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT * FROM (VALUES (1::BIGINT, 'a'), (2, 'b'), (NULL, 'c')) t(i, s)")
        assert to_reader(relation).read_all().to_pylist() == TABLE.to_pylist()
        del relation


@pytest.mark.parametrize("frame", [pl.from_arrow(TABLE), pl.LazyFrame(pl.from_arrow(TABLE)).filter(pl.col("s") != "")])
def test_polars_frames_are_accepted(frame: object) -> None:
    assert to_reader(frame).read_all().to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_tables_with_blobs_are_read_as_bytes(tmp_path: Path, version: str) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    fields = [blob, pa.field("i", pa.int64())]
    values = [[b"ab", None, b"", b"x" * 100_000], [1, 2, 3, 4]]
    if version != "2.0":
        fields.append(pa.field("s", pa.struct([blob, ("k", pa.int8())])))
        values.append([{"b": b"in", "k": 1}, None, {"b": None, "k": 2}, {"b": b"", "k": 3}])
    table = pa.table(values, schema=pa.schema(fields))
    source = ld.write_dataset(table, tmp_path / "a", data_storage_version=version)
    assert to_reader(source).read_all().to_pylist() == table.to_pylist()
    copy = ld.write_dataset(source, tmp_path / "b", data_storage_version=version)
    assert copy.schema.equals(source.schema, check_metadata=True)
    assert copy.to_table(blob_handling="all_binary").to_pylist() == table.to_pylist()


def test_pandas_frames_are_accepted() -> None:
    frame = pd.DataFrame({"i": [1, 2], "s": ["a", None]})
    assert to_reader(frame).read_all().to_pylist() == [{"i": 1, "s": "a"}, {"i": 2, "s": None}]
    schema = pa.schema([("i", pa.int8()), ("s", pa.string())])
    assert to_reader(frame, schema).schema.types == [pa.int8(), pa.string()]


def test_rows_with_missing_names_get_nulls() -> None:
    assert to_reader([{"a": 1}, {"b": 2}]).read_all().to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": 2}]


def test_matrices_become_vectors() -> None:
    found = to_reader({"v": np.arange(6, dtype="f4").reshape(2, 3)}).read_all()
    assert found.schema.types == [pa.list_(pa.float32(), 3)]
    assert found["v"].to_pylist() == [[0, 1, 2], [3, 4, 5]]
    wanted = pa.schema([("v", pa.list_(pa.float64(), 3))])
    assert to_reader({"v": np.zeros((2, 3), "f4")}, wanted).schema == wanted


def test_python_values_are_cast_to_a_schema() -> None:
    schema = pa.schema([("a", pa.int8()), ("v", pa.list_(pa.float32(), 2))], metadata={"k": "v"})
    for data in ([{"a": 1, "v": [1, 2]}], {"a": [1], "v": [[1, 2]]}):
        assert to_reader(data, schema).read_all().schema.equals(schema, check_metadata=True)


def test_batches_are_pulled_one_by_one() -> None:
    asked = []

    def endless() -> Iterator[pa.RecordBatch]:
        while True:
            asked.append(1)
            yield BATCH

    found = to_reader(endless())
    assert len(asked) == 1
    found.read_next_batch()
    found.read_next_batch()
    assert len(asked) <= 3


def test_an_empty_list_of_batches_requires_a_schema() -> None:
    assert to_reader([], TABLE.schema).read_all().num_rows == 0
    assert to_reader(iter([]), TABLE.schema).schema == TABLE.schema
    with pytest.raises(InvalidInputError, match="schema="):
        to_reader([])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *((7, "found int"), ("text", "found str"), (None, "found NoneType"), ([1, 2], "found int")),
        *(([{"a": 1}, 2], "dicts only"), ({"a": [1], "b": [1, 2]}, "Arrow"), ({"a": [1, "x"]}, "Arrow")),
        (pa.array([1]), "Arrow"),
    ],
)
def test_unsupported_data_is_rejected(data: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        to_reader(data).read_all()


@pytest.mark.parametrize("data", [[{"a": 1, "z": 2}], {"a": [1], "z": [2]}])
def test_columns_missing_in_a_schema_are_rejected(data: object) -> None:
    with pytest.raises(InvalidInputError, match=r"found \['z'\]"):
        to_reader(data, pa.schema([("a", pa.int8())]))


def test_errors_of_the_source_are_unchanged() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield BATCH
        raise StoreError("gone")

    with pytest.raises(StoreError, match="gone"):
        to_reader(failing).read_all()


def test_batches_are_cast_to_a_given_schema() -> None:
    wanted = pa.schema([pa.field("a", pa.int64()), pa.field("v", pa.float32())], metadata={"k": "v"})
    narrow = pa.record_batch({"a": pa.array([1, 2], pa.int8()), "v": pa.array([0.5, 1.5])})
    found = to_reader(iter([narrow, narrow]), wanted).read_all()
    assert found.schema.equals(wanted, check_metadata=True)
    assert found.to_pydict() == {"a": [1, 2, 1, 2], "v": [0.5, 1.5, 0.5, 1.5]}
    with pytest.raises(InvalidInputError, match="column 'a': Arrow cannot represent these values"):
        to_reader([pa.record_batch({"a": ["x"], "v": [1.0]})], wanted).read_all()
