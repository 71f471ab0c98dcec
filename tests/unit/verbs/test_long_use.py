"""A process that changes tables for a long time keeps no unnecessary file open."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld

ROUNDS = 8
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="open files are listed in /proc")


def rows(first: int, number: int) -> pa.Table:
    ids = np.arange(first, first + number)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.tile(ids.astype(np.float32) + 1, (4, 1)).T.ravel()), 4)
    return pa.table({"id": ids, "v": ids / 2, "s": [f"text {i % 17}" for i in ids.tolist()], "vector": vectors})


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    """200 rows in two fragments, with an index of each family."""
    dataset = ld.write_dataset(
        rows(0, 200), tmp_path / "t.lance", max_rows_per_file=100, storage_options={"fsync": "false"}
    )
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("s", "INVERTED")
    dataset.create_index("vector", "IVF_FLAT", num_partitions=2)
    return dataset


def append(table: ld.LanceDataset, number: int) -> None:
    table.insert(rows(1000 + number, 1))


def delete(table: ld.LanceDataset, number: int) -> None:
    table.delete(f"id = {number}")


def update(table: ld.LanceDataset, number: int) -> None:
    table.update({"v": "v + 1"}, where=f"id = {100 + number % 100}")


def merge(table: ld.LanceDataset, number: int) -> None:
    builder = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(rows(180 + number, 2))


def sql(table: ld.LanceDataset, number: int) -> None:
    with ld.connect({"t": table.uri}) as connection:
        connection.execute(f"INSERT INTO t (id, v) VALUES ({5000 + number}, 0)")
        connection.execute(f"UPDATE t SET v = 1 WHERE id = {5000 + number}")
        connection.execute(f"DELETE FROM t WHERE id = {5000 + number}")
        assert connection.execute("SELECT count(*) FROM t").fetchone() is not None
    table.checkout_latest()


def search(table: ld.LanceDataset, number: int) -> None:
    assert table.to_table(filter=f"id = {150 + number % 40}").num_rows <= 1
    assert table.to_table(["id"], full_text_query=f"{number % 17}", limit=3).num_rows == 3
    assert table.to_table(["id"], nearest={"column": "vector", "q": [1.0] * 4, "k": 3}).num_rows == 3


def tidy(table: ld.LanceDataset) -> None:
    table.optimize.compact_files()
    table.optimize.optimize_indices()
    table.cleanup_old_versions(older_than=timedelta(0))


@pytest.mark.parametrize("change", [append, delete, update, merge, sql])
def test_files_removed_by_cleanup_are_closed(
    table: ld.LanceDataset, change: Callable[[ld.LanceDataset, int], None]
) -> None:
    number = count()

    def use() -> int:
        for _ in range(3):
            change(table, next(number))
            search(table, next(number))
        tidy(table)
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    use()
    before = use()
    opened = [use() for _ in range(ROUNDS)]
    assert max(opened) <= before + 4, opened
    if change is not sql:  # its connection had a separate handle
        assert gone(table) == []


def gone(table: ld.LanceDataset) -> list[str]:
    """Return the files of a table that are open, although they were removed."""
    places = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            places.append(os.readlink(descriptor))
        except OSError:  # the listing's own
            continue
    return [place for place in places if place.startswith(table.uri) and place.endswith("(deleted)")]


def test_unused_segments_are_closed_and_old_versions_still_work(
    table: ld.LanceDataset,
) -> None:
    old = table.checkout_version(table.version)
    search(old, 0)
    before = len(os.listdir("/proc/self/fd"))
    for turn in range(ROUNDS):
        append(table, turn)
        table.create_scalar_index("id", "BTREE", replace=True)
        assert table.to_table(filter=f"id = {1000 + turn}").num_rows == 1
        assert old.to_table(filter="id = 7")["v"].to_pylist() == [3.5]
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 2 * ROUNDS + 4


def test_dropped_handles_leave_no_open_files(table: ld.LanceDataset) -> None:
    def use() -> int:
        for number in range(10):
            search(ld.dataset(table.uri), number)
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    use()
    before = use()
    assert max(use() for _ in range(3)) <= before + 2
