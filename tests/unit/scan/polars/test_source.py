"""A dataset as a LazyFrame."""

from __future__ import annotations

import builtins
import pickle
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnknownColumnError, UnsupportedError
from lance_duck.scan import scanner
from lance_duck.scan.options import ScanOptions

ROWS = pa.table({"id": range(100), "x": [i % 7 for i in range(100)], "s": [f"row {i}" for i in range(100)]})


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    dataset = ld.write_dataset(ROWS, tmp_path / "t.lance", max_rows_per_file=20)
    dataset.delete("id = 50")
    return dataset


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ScanOptions]:
    """Return the options of all scans."""
    found: list[ScanOptions] = []

    class Noted(scanner.LanceScanner):
        def to_batches(self, *arguments: Any, **options: Any) -> Any:
            found.append(self._options)
            return super().to_batches(*arguments, **options)

    monkeypatch.setattr("lance_duck.scan.polars.source.LanceScanner", Noted)
    return found


def test_columns_and_filters_are_pushed_down(table: ld.LanceDataset, asked: list[ScanOptions]) -> None:
    query = table.to_polars().filter(pl.col("id") > 96, pl.col("s").str.slice(4).cast(pl.Int64) < 99).select("s")
    assert query.collect()["s"].to_list() == ["row 97", "row 98"]
    (options,) = asked
    assert sorted(options.columns or []) == ["id", "s"]
    assert str(options.filter) == "id > 96"


def test_a_limit_is_pushed_down(table: ld.LanceDataset, asked: list[ScanOptions]) -> None:
    assert table.to_polars().select("x").head(3).collect()["x"].to_list() == [0, 1, 2]
    assert [(options.columns, options.limit) for options in asked] == [(["x"], 3)]


def test_rows_are_counted(table: ld.LanceDataset) -> None:
    assert table.to_polars().select(pl.len()).collect().item() == 99
    assert table.to_polars().filter(pl.col("x") == 0).select(pl.len()).collect().item() == 15


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_both_polars_engines_return_the_same_rows(table: ld.LanceDataset, engine: Any) -> None:
    grouped = table.to_polars().group_by("x").agg(pl.col("id").sum()).sort("x").collect(engine=engine)
    expected = pl.DataFrame(table.to_table()).group_by("x").agg(pl.col("id").sum()).sort("x")
    assert grouped.equals(expected)


def test_the_frame_stays_on_its_version(table: ld.LanceDataset) -> None:
    lazy = table.to_polars()
    table.delete("id < 90")
    assert lazy.select(pl.len()).collect().item() == 99
    assert table.to_polars().select(pl.len()).collect().item() == 10


def test_columns_and_a_filter_can_be_given_to_to_polars(table: ld.LanceDataset) -> None:
    lazy = table.to_polars(["s", "_rowid"], filter="id >= 97")
    assert lazy.collect_schema() == {"s": pl.String, "_rowid": pl.UInt64}
    least = lazy.select(pl.col("_rowid").min()).collect().item()
    assert lazy.filter(pl.col("_rowid") > least).collect()["s"].to_list() == ["row 98", "row 99"]
    assert table.filter("id >= 97").to_polars().select("id").collect()["id"].to_list() == [97, 98, 99]


def test_a_lazy_frame_can_be_pickled(table: ld.LanceDataset) -> None:
    lazy = pickle.loads(pickle.dumps(table.to_polars()))
    assert lazy.filter(pl.col("id") == 7).collect()["s"].to_list() == ["row 7"]


def test_an_empty_table_has_its_columns(tmp_path: Path) -> None:
    lazy = ld.write_dataset(ROWS.slice(0, 0), tmp_path / "e.lance").to_polars()
    assert lazy.filter(pl.col("x") > 1).collect().schema == {"id": pl.Int64, "x": pl.Int64, "s": pl.String}


def test_frames_fill_a_table(table: ld.LanceDataset, tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [1, 1000], "x": [9, 9], "s": ["new", "newer"]})
    table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(frame.lazy())
    table.insert(frame.with_columns(id=pl.col("id") + 1))
    assert table.to_table(filter="x = 9")["id"].to_pylist().count(1000) == 1
    copy = ld.write_dataset(table.to_polars().filter(pl.col("x") == 9), tmp_path / "copy.lance")
    assert sorted(copy.to_table()["id"].to_pylist()) == [1, 2, 1000, 1001]


def test_invalid_arguments_and_a_missing_polars_raise_clear_errors(
    table: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownColumnError):
        table.to_polars(["nope"])
    with pytest.raises(InvalidInputError, match="with_columns"):
        table.to_polars({"double": "2 * x"})
    import_ = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name == "polars":
            raise ImportError(name)
        return import_(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "polars")
    with pytest.raises(UnsupportedError, match="pip install polars"):
        table.to_polars()


def test_types_missing_in_polars_are_rejected(tmp_path: Path) -> None:
    wide = pa.table({"id": [1], "n": pa.array([1], pa.decimal256(50, 2))})
    dataset = ld.write_dataset(wide, tmp_path / "wide.lance")
    with pytest.raises(UnsupportedError, match="column n"):
        dataset.to_polars()
    assert dataset.to_polars(["id"]).collect().height == 1
