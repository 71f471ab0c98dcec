"""Batches for DuckDB hold the same rows, in arrays that it reads correctly."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.scan.duckdb.batches import duckdb_batches

FORM = pa.dictionary(pa.int32(), pa.string())
NULLS = pa.array([None] * 3, FORM)


def test_a_dictionary_without_entries_gets_one_that_no_row_uses() -> None:
    struct = pa.StructArray.from_arrays([NULLS], ["f"], mask=pa.array([False, True, False]))
    table = pa.table({"a": NULLS, "s": struct, "b": pa.array(["x", None, "y"], FORM)})
    (batch,) = duckdb_batches(table.to_reader())
    entries = [batch["a"].dictionary, batch["s"].field("f").dictionary, batch["b"].dictionary]
    assert (batch.to_pylist(), [len(each) for each in entries]) == (table.to_pylist(), [1, 1, 2])


def test_streams_without_dictionaries_and_structs_are_returned_as_they_are() -> None:
    reader = pa.table({"a": [1], "l": [[1]]}).to_reader()
    assert duckdb_batches(reader) is reader


@pytest.mark.parametrize("column", ["a", "s.f"])
def test_rows_are_grouped_by_a_dictionary_of_nulls(tmp_path: Path, column: str) -> None:
    table = pa.table({"a": NULLS, "s": pa.StructArray.from_arrays([NULLS], ["f"])})
    ld.write_dataset(table, tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        assert con.execute(f"SELECT {column}, count(*) FROM t GROUP BY {column}").fetchall() == [(None, 3)]
