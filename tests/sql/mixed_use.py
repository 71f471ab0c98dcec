"""A long-lived connection: statements of all kinds, and the files they leave open."""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa

import lance_duck as ld

STATEMENTS = (
    "UPDATE t SET s = 'goose' WHERE id = {k}",
    "INSERT INTO t VALUES ({k} + 1000, 'duck', [0.5, 0.5, {k}, 1])",
    "DELETE FROM t WHERE id = {k} + 1000",
    "MERGE INTO t USING (SELECT {k} AS id) m ON t.id = m.id WHEN MATCHED THEN UPDATE SET s = 'swan'",
    "SELECT s FROM t WHERE id = {k}",
    "SELECT count(*), min(s), max(v[1]) FROM t",
    "SELECT count(s) FROM '{folder}/t.lance' WHERE id > {k}",
    "SELECT id FROM t ORDER BY array_distance(v, [0.5, 0.5, {k}, 1]::FLOAT[4]) LIMIT 2",
    "SELECT id FROM t WHERE match(s, 'duck') LIMIT 2",
    "SELECT count(*) FROM t AT (VERSION => 1)",
    "SELECT count(*) FROM lance_vector_search('t', 'v', [0.5, 0.5, {k}, 1], k := 2)",
    "CREATE OR REPLACE TABLE lance.u AS SELECT id FROM t WHERE id < {k}",
    "SELECT count(*) FROM '{folder}/t.lance' WHERE s > 'e'",
    "BEGIN; UPDATE t SET s = 'rail' WHERE id = {k}; SELECT count(s) FROM t; ROLLBACK",
    "SELECT nope FROM t",
    "UPDATE t SET id = 'q' WHERE id = {k}",
)


def open_files(folder: Path) -> tuple[int, int, int]:
    """Count the descriptors of files below a folder, their maps, and the maps of deleted ones."""
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            descriptors.append(os.readlink(f"/proc/self/fd/{name}"))
    maps = [line for line in Path("/proc/self/maps").read_text().splitlines() if f" {folder}/" in line]
    return (
        sum(name.startswith(f"{folder}/") for name in descriptors),
        len(maps),
        sum(line.endswith("(deleted)") for line in maps),
    )


def used(folder: Path, seed: int, statements: int) -> list[tuple[int, int, int]]:
    """Run random statements on a table that others compact and clean up; return `open_files` after every 25 of them."""
    random = Random(seed)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 400, pa.float32()), 4)
    options = {"fsync": "false"}
    data = pa.table({"id": pa.array(range(100), pa.int32()), "s": ["duck"] * 100, "v": vectors})
    ld.write_dataset(data, folder / "t.lance", max_rows_per_file=20, storage_options=options)
    first = ld.dataset(folder / "t.lance")
    first.tags.create("first", 1)
    first.create_scalar_index("id", "BTREE")
    first.create_scalar_index("s", "INVERTED")
    counts = []
    with ld.connect(folder, storage_options=options) as connection:
        for number in range(1, statements + 1):
            sql = random.choice(STATEMENTS).format(k=random.randrange(100), folder=folder)
            with suppress(duckdb.Error) if "nope" in sql or "'q'" in sql else nullcontext():
                connection.execute(sql).fetchall()
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
            if number % 25 == 0:
                other = ld.dataset(folder / "t.lance", storage_options=options)
                other.optimize.compact_files()
                other.optimize.optimize_indices()
                other.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
                counts.append(open_files(folder))
    return counts
