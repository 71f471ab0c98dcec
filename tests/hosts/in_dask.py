"""Dask's frames of a table's fragments, each read by a task, and tables that its tasks write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck import examples
from lance_duck.fragment import LanceFragment, write_fragments


@pytest.fixture
def trips(tmp_path: Path) -> ld.LanceDataset:
    ds = ld.write_dataset(examples.trips(300), tmp_path / "trips.lance", max_rows_per_file=70)
    ds.delete("id = 33")
    return ds


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the columns requested by each fragment scan."""
    asked: list[Any] = []
    to_table = LanceFragment.to_table

    def noted(self: LanceFragment, *arguments: Any, **options: Any) -> Any:
        asked.append(options.get("columns"))
        return to_table(self, *arguments, **options)

    monkeypatch.setattr(LanceFragment, "to_table", noted)
    return asked


def read(fragment: LanceFragment, columns: list[str] | None = None) -> pd.DataFrame:
    return fragment.to_table(columns=columns).to_pandas()


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_fragments_are_the_partitions_of_a_frame(trips: ld.LanceDataset, scheduler: str) -> None:
    frame = dd.from_map(read, trips.get_fragments())
    assert frame.npartitions == 5
    groups = frame.groupby("city")["id"].agg(["count", "sum"]).compute(scheduler=scheduler)
    expected = trips.to_table().group_by("city").aggregate([("id", "count"), ("id", "sum")])
    rows = zip(*expected.to_pydict().values(), strict=True)
    assert sorted(groups.reset_index().values.tolist()) == sorted(map(list, rows))


def test_columns_are_pushed_down(trips: ld.LanceDataset, scans: list[Any]) -> None:
    frame = dd.from_map(read, trips.get_fragments())
    scans.clear()  # Dask has read the first fragment to learn the columns
    assert frame["fare"].max().compute(scheduler="synchronous") == max(trips.to_table()["fare"].to_pylist())
    assert len(scans) >= 5
    assert all(columns == ["fare"] for columns in scans)


def test_a_filter_prunes_fragments(trips: ld.LanceDataset) -> None:
    trips.create_scalar_index("id", "BTREE")
    assert len(trips.get_fragments("id BETWEEN 30 AND 35")) == 1
    parts = trips.get_fragments("id BETWEEN 30 AND 35")
    frame = dd.from_map(lambda f: f.to_table(filter="id BETWEEN 30 AND 35").to_pandas(), parts)
    assert frame["id"].compute(scheduler="synchronous").tolist() == [30, 31, 32, 34, 35]


def test_tasks_write_fragments_that_one_commit_adds(trips: ld.LanceDataset, tmp_path: Path) -> None:
    target = str(tmp_path / "copy.lance")

    @dask.delayed
    def write(part: pd.DataFrame) -> list[str]:
        rows = pa.Table.from_pandas(part, schema=trips.schema, preserve_index=False)
        return [json.dumps(fragment.to_json()) for fragment in write_fragments(rows, target)]

    parts = dd.from_map(read, trips.get_fragments()).to_delayed()
    texts = dask.compute(*map(write, parts), scheduler="processes")
    fragments = [ld.FragmentMetadata.from_json(text) for group in texts for text in group]
    copy = ld.LanceDataset.commit(target, ld.LanceOperation.Overwrite(trips.schema, fragments))
    assert (copy.version, len(copy.get_fragments())) == (1, 5)
    assert copy.to_table().equals(trips.to_table())
