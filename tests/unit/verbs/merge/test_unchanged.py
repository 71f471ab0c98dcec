"""A conditional merge that changes no row does not create a version. Other changes create one, as in pylance."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld

ROWS = pa.table({"id": [1, 2, 3], "v": [1, 2, 3], "w": [1, 2, 3]})
NOTHING = {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0}
OPTIONS = {"fsync": "false"}
Change = Callable[[ld.LanceDataset], Any]


def source(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([5] * len(ids), pa.int64())})


CONDITIONAL_MERGES: dict[str, Change] = {
    "a condition that never holds": lambda ds: (
        ds.merge_insert("id").when_matched_update_all("source.v < 0").execute(source(1, 9))
    ),
    "a condition that never holds, and no new key": lambda ds: (
        ds.merge_insert("id").when_matched_update_all("source.v < 0").when_not_matched_insert_all().execute(source(1))
    ),
    "a condition, and no matching row": lambda ds: (
        ds.merge_insert("id").when_matched_update_all("source.v > 0").execute(source(9))
    ),
    "a condition, columns in place": lambda ds: (
        ds.merge_insert("id").when_matched_update_all("source.v < 0").write_mode("rewrite_columns").execute(source(1))
    ),
    "no such row with the condition": lambda ds: (
        ds.merge_insert("id").when_not_matched_by_source_delete("v > 9").execute(source(1))
    ),
}
MERGES: dict[str, Change] = {
    "no matching row": lambda ds: ds.merge_insert("id").when_matched_update_all().execute(source(9)),
    "no new key": lambda ds: ds.merge_insert("id").when_not_matched_insert_all().execute(source(1, 2)),
    "no row to delete": lambda ds: ds.merge_insert("id").when_matched_delete().execute(source(9)),
    "no row that the source lacks": lambda ds: (
        ds.merge_insert("id").when_not_matched_by_source_delete().execute(source(1, 2, 3))
    ),
}
CHANGES: dict[str, Change] = {
    "delete": lambda ds: ds.delete("id > 9"),
    "update": lambda ds: ds.update({"v": "0"}, where="id > 9"),
    "insert": lambda ds: ds.insert(ROWS.slice(0, 0)),
}


@pytest.fixture(params=[False, True], ids=["", "stable row ids"])
def ds(request: pytest.FixtureRequest, tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, tmp_path / "t", enable_stable_row_ids=request.param, storage_options=OPTIONS)


@pytest.mark.parametrize("name", CONDITIONAL_MERGES)
def test_a_conditional_merge_that_changes_nothing_creates_no_version_and_no_file(
    ds: ld.LanceDataset, name: str
) -> None:
    before = sorted(Path(ds.uri).rglob("*"))
    assert CONDITIONAL_MERGES[name](ds) == NOTHING
    assert (ds.version, ds.latest_version, sorted(Path(ds.uri).rglob("*"))) == (1, 1, before)


@pytest.mark.parametrize("name", [*MERGES, *CHANGES])
def test_other_changes_create_a_version_even_if_they_change_nothing(ds: ld.LanceDataset, name: str) -> None:
    {**MERGES, **CHANGES}[name](ds)
    assert (ds.version, ds.latest_version, ds.to_table()) == (2, 2, ROWS)


def test_a_merge_that_changes_nothing_has_read_the_newest_version(ds: ld.LanceDataset) -> None:
    ld.dataset(ds.uri, storage_options=OPTIONS).insert(source(9))
    merge = ds.merge_insert("id").when_matched_update_all("target.v < 0").when_not_matched_insert_all()
    assert merge.execute(source(1, 9)) == NOTHING
    assert (ds.version, ds.latest_version) == (2, 2)
    ld.dataset(ds.uri, storage_options=OPTIONS).delete("id = 2")
    assert merge.execute(source(1, 2, 9)) == {**NOTHING, "num_inserted_rows": 1}
    assert (ds.version, ds.latest_version) == (4, 4)
