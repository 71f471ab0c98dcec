"""Lists from any producer become the same vectors: when they are written, when they are cast, and when rows follow."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import DataMismatchError

Lists = list[list[float] | None]
Producer = Callable[[Lists], Any]


def relation(lists: Lists) -> Any:
    con = duckdb.connect()
    con.register("rows", pa.table({"v": pa.array(lists, pa.list_(pa.float32()))}))
    return con.sql("SELECT v FROM rows")


def batches(lists: Lists) -> Any:
    type_ = pa.list_(pa.float32())
    yield pa.record_batch({"v": pa.array([], type_)})
    for value in lists:
        yield pa.record_batch({"v": pa.array([value], type_)})


def typed(type_: pa.DataType) -> Producer:
    return lambda lists: pa.table({"v": pa.array(lists, type_)})


PRODUCERS: dict[str, Producer] = {
    "pandas, arrays": lambda lists: pd.DataFrame(
        {"v": pd.Series([None if v is None else np.array(v, np.float32) for v in lists], dtype=object)}
    ),
    "pandas, lists": lambda lists: pd.DataFrame({"v": pd.Series(lists, dtype=object)}),
    "polars": lambda lists: pl.DataFrame({"v": pl.Series(lists, dtype=pl.List(pl.Float32))}),
    "polars, lazy": lambda lists: pl.DataFrame({"v": pl.Series(lists, dtype=pl.List(pl.Float64))}).lazy(),
    "polars, arrays": lambda lists: pl.DataFrame(
        {"v": pl.Series(lists, dtype=pl.Array(pl.Float32, len(next(v for v in lists if v is not None))))}
    ),
    "dicts": lambda lists: [{"v": v} for v in lists],
    "columns": lambda lists: {"v": lists},
    "batches": batches,
    "relation": relation,
    "list": typed(pa.list_(pa.float64())),
    "large list": typed(pa.large_list(pa.float32())),
    "list view": typed(pa.list_view(pa.float32())),
}


@st.composite
def lists_of_one_length(draw: st.DrawFn) -> Lists:
    width = draw(st.integers(1, 9))
    number = st.integers(-64, 64).map(lambda n: n / 4)
    rows = draw(st.lists(st.none() | st.lists(number, min_size=width, max_size=width), min_size=1, max_size=12))
    return rows if any(row is not None for row in rows) else [*rows, [1.0] * width]


@pytest.mark.parametrize("producer", PRODUCERS.values(), ids=PRODUCERS)
@settings(max_examples=max(8, settings.default.max_examples // 12))
@given(lists=lists_of_one_length(), rows=st.integers(1, 5), data=st.data())
def test_lists_of_equal_length_become_vectors(producer: Producer, lists: Lists, rows: int, data: st.DataObject) -> None:
    width = len(next(row for row in lists if row is not None))
    item = data.draw(st.sampled_from(["float16", "float32", "float64"]))
    asked = data.draw(st.sampled_from([["v"], {"v": width}, {"v": f"{item}[{width}]"}]))
    with tempfile.TemporaryDirectory() as folder:
        ds = ld.write_dataset(producer(lists), f"{folder}/t.lance", vector_columns=asked, max_rows_per_file=rows)
        assert ds.schema.field("v").type.list_size == width
        assert ds.to_table()["v"].to_pylist() == lists
        ds.insert(producer(lists))
        assert ds.to_table()["v"].to_pylist() == lists * 2
        deleted = data.draw(st.sets(st.integers(0, 2 * len(lists) - 1), max_size=3))
        kept = [row for i, row in enumerate(lists * 2) if i not in deleted]
        if deleted:
            ids = ds.to_table(columns=["_rowid"])["_rowid"].to_pylist()
            ds.delete(f"_rowid IN ({', '.join(str(ids[i]) for i in sorted(deleted))})")
        for type_ in (pa.list_(pa.float64()), pa.list_(pa.float32(), width)):
            ds.alter_columns({"path": "v", "data_type": type_})
            assert ds.schema.field("v").type == type_
            assert ds.to_table()["v"].to_pylist() == kept


@settings(max_examples=max(20, settings.default.max_examples // 4))
@given(lists=lists_of_one_length(), at=st.integers(0, 12), rows=st.integers(1, 5), by=st.sampled_from([-1, 1]))
def test_the_first_list_with_a_different_length_is_named(lists: Lists, at: int, rows: int, by: int) -> None:
    width = len(next(row for row in lists if row is not None))
    first = lists.index(next(row for row in lists if row is not None))
    at = max(min(at, len(lists)), first + 1)
    ragged = [*lists[:at], [0.5] * (width + by), *lists[at:]]
    found = rf"column 'v', row {at}: .*expected {width}, found {width + by}"
    with tempfile.TemporaryDirectory() as folder:
        with pytest.raises(DataMismatchError, match=found):
            ld.write_dataset({"v": ragged}, f"{folder}/t.lance", vector_columns=["v"], max_rows_per_file=rows)
        ds = ld.write_dataset({"v": ragged}, f"{folder}/t.lance", max_rows_per_file=rows)
        with pytest.raises(DataMismatchError, match=found):
            ds.alter_columns({"path": "v", "data_type": pa.list_(pa.float32(), width)})
