"""An index alone counts rows only if it has exactly one entry for each live row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.index.aggregates import count
from lance_duck.index.catalog import catalog
from lance_duck.index.query import Between, Except, Null

QUERY = Between(pa.scalar(10, pa.int64()), pa.scalar(2500, pa.int64()))


@pytest.fixture(params=[False, True], ids=["addresses", "stable_ids"])
def dataset(tmp_path: Path, request: pytest.FixtureRequest) -> ld.LanceDataset:
    numbers = np.random.default_rng(0).integers(0, 3000, 6000)
    table = pa.table({"x": pa.array(numbers, mask=numbers % 7 == 0), "y": np.arange(6000)})
    made = ld.write_dataset(table, tmp_path / "t", max_rows_per_file=2000, enable_stable_row_ids=request.param)
    made.create_scalar_index("x", "BTREE", zone_size=256)
    return made


def counted(dataset: ld.LanceDataset, query: object = QUERY) -> int | None:
    (index,) = catalog(dataset.handle.snapshot).over("x")
    return count(dataset.handle.snapshot, index, query)  # type: ignore[arg-type]


def scanned(dataset: ld.LanceDataset, condition: str = "x BETWEEN 10 AND 2500") -> int:
    return int(dataset.scanner(filter=condition, use_scalar_index=False).count_rows())


def test_an_index_of_all_rows_counts_them(dataset: ld.LanceDataset) -> None:
    assert counted(dataset) == scanned(dataset) == dataset.count_rows("x BETWEEN 10 AND 2500")
    assert counted(dataset, Null()) == scanned(dataset, "x IS NULL")
    assert counted(dataset, Except(QUERY)) == scanned(dataset, "NOT (x BETWEEN 10 AND 2500)")
    assert dataset.scanner(filter="x BETWEEN 10 AND 2500", limit=100, offset=3).count_rows() == 100
    assert dataset.scanner(filter="x < 3", offset=10**6).count_rows() == 0


@pytest.mark.parametrize("change", ["delete", "update", "append", "in_place"])
def test_changed_rows_are_scanned_for_a_count(dataset: ld.LanceDataset, change: str) -> None:
    if change == "delete":
        dataset.delete("y % 1000 = 3")
    elif change == "update":
        dataset.update({"x": "x + 1"}, where="y < 50")
    elif change == "append":
        dataset.insert(pa.table({"x": [11, 12], "y": [1, 2]}))
    else:
        fragment = dataset.get_fragment(1)
        news = pa.table({"_rowaddr": fragment.to_table(with_row_address=True)["_rowaddr"], "x": np.full(2000, 50)})
        changed, fields = fragment.update_columns(news, "_rowaddr", "_rowaddr")
        operation = ld.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
        dataset = ld.LanceDataset.commit(dataset, operation, read_version=dataset.version)
    assert counted(dataset) is None
    assert dataset.count_rows("x BETWEEN 10 AND 2500") == scanned(dataset)


def test_counts_of_some_fragments_are_correct(dataset: ld.LanceDataset) -> None:
    some = [dataset.get_fragment(0)]
    plain = dataset.scanner(filter="x < 100", fragments=some, use_scalar_index=False).count_rows()
    assert dataset.scanner(filter="x < 100", fragments=some).count_rows() == plain < scanned(dataset, "x < 100")
