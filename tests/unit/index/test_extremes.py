"""The ends of a B-tree equal the minimum and maximum of live rows, after every change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.index.aggregates import extremes
from lance_duck.index.catalog import catalog


@pytest.fixture(params=[False, True], ids=["addresses", "stable_ids"])
def dataset(tmp_path: Path, request: pytest.FixtureRequest) -> ld.LanceDataset:
    numbers = np.random.default_rng(0).permutation(6000)
    table = pa.table({"x": pa.array(numbers, mask=numbers % 7 == 0), "y": numbers})
    made = ld.write_dataset(table, tmp_path / "t", max_rows_per_file=2000, enable_stable_row_ids=request.param)
    made.create_scalar_index("x", "BTREE", zone_size=256)
    return made


def ends(dataset: ld.LanceDataset) -> list[int] | None:
    (index,) = catalog(dataset.handle.snapshot).over("x")
    values = extremes(dataset.handle.snapshot, index)
    return None if values is None else values.to_pylist()


def test_the_ends_are_read_beyond_nulls(dataset: ld.LanceDataset) -> None:
    assert ends(dataset) == [1, 5998]


def test_deleted_and_moved_rows_are_skipped(dataset: ld.LanceDataset) -> None:
    dataset.delete("y < 300 OR y > 5983")
    dataset.update({"x": "7"}, where="y = 5983")
    assert ends(dataset) == [300, 5982]


def test_an_extreme_behind_many_deleted_rows_is_unknown(dataset: ld.LanceDataset) -> None:
    dataset.delete("y < 3000")
    assert ends(dataset) is None


def test_an_all_null_column_has_no_extremes(tmp_path: Path) -> None:
    made = ld.write_dataset(pa.table({"x": pa.nulls(10, pa.int64())}), tmp_path / "t")
    made.create_scalar_index("x", "BTREE")
    assert ends(made) == []


def test_unordered_kinds_have_no_extremes(tmp_path: Path) -> None:
    made = ld.write_dataset(pa.table({"x": [1, 2, 3]}), tmp_path / "t")
    made.create_scalar_index("x", "BITMAP")
    assert ends(made) is None
