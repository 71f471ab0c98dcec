"""A connection holds no descriptors of read files, maps few of them, and unmaps all when it closes."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from sql.mixed_use import open_files, used

import lance_duck as ld

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts by /proc")


def test_descriptors_and_maps_stay_bounded_over_mixed_statements(tmp_path: Path) -> None:
    counts = used(tmp_path, seed=1, statements=150)
    assert max(descriptors for descriptors, _, _ in counts) == 0
    assert max(maps for _, maps, _ in counts) < 90
    assert max(deleted for _, _, deleted in counts) < 80


def test_more_updates_than_the_descriptor_limit_succeed(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ld.write_dataset({"id": range(10), "s": ["duck"] * 10}, tmp_path / "t.lance")
    with ld.connect(tmp_path, storage_options={"fsync": "false"}) as connection, (tmp_path / "x").open("w") as lowest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest.fileno() + 25, hard))
        try:
            for number in range(60):
                connection.execute(f"UPDATE t SET s = '{number}' WHERE id = 1")
            assert connection.execute("SELECT s FROM t WHERE id = 1").fetchall() == [("59",)]
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_table_with_more_files_than_the_descriptor_limit_is_read(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    data = pa.table({"id": range(900), "s": [f"duck {i}" for i in range(900)]})
    dataset = ld.write_dataset(data, tmp_path / "t.lance", max_rows_per_file=5, storage_options={"fsync": "false"})
    with (tmp_path / "x").open("w") as lowest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest.fileno() + 25, hard))
        try:
            batches = list(dataset.to_batches(batch_size=3))
            rows = dataset.take(list(range(0, 900, 5)))
            assert pa.Table.from_batches(batches).equals(data)
            assert rows["s"].to_pylist() == [f"duck {i}" for i in range(0, 900, 5)]
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_closing_the_last_connection_unmaps_all_data_files(tmp_path: Path) -> None:
    words = [f"duck {i % 7}" for i in range(300)]
    dataset = ld.write_dataset(pa.table({"id": range(300), "s": words}), tmp_path / "t.lance", max_rows_per_file=20)
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("s", "INVERTED")
    del dataset
    connection = ld.connect(tmp_path)
    cursor = connection.cursor()
    for statement in (
        "SELECT sum(id), max(s) FROM t",
        "SELECT s FROM t WHERE id = 7",
        "SELECT id FROM t WHERE match(s, '3')",
        f"SELECT count(s) FROM '{tmp_path}/t.lance' WHERE id > 3",
        "UPDATE t SET s = 'x' WHERE id = 7",
    ):
        connection.execute(statement).fetchall()
        cursor.execute(statement).fetchall()
    cursor.close()
    assert open_files(tmp_path)[1] > 15
    assert connection.execute("SELECT count(*) FROM t WHERE s = 'x'").fetchall() == [(1,)]
    connection.close()
    gc.collect()  # indexes have reference cycles
    assert open_files(tmp_path / "t.lance" / "data") == (0, 0, 0)
    assert open_files(tmp_path)[1] <= 4  # pages of indexes
