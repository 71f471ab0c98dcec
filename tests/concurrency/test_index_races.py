"""Rows and indexes of one table change concurrently: no index changes an answer, and no index is lost."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CommitConflictError

OPTIONS = {"fsync": "false"}
INDEXES = {"by_id": ("id", "BTREE"), "by_n": ("n", "BITMAP"), "zones": ("id", "ZONEMAP")}
SECONDS = 2.0


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([i % 5 for i in ids], pa.int64())})


def opened(uri: str) -> ld.LanceDataset:
    return ld.dataset(uri, storage_options=OPTIONS)


class Changers:
    """Concurrent changes, each in a separate thread, until the time is over."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.end = time.monotonic() + SECONDS
        self.done: Counter[str] = Counter()
        self.errors: list[BaseException] = []
        self._next = iter(range(1000, 1_000_000, 100))

    def append(self) -> None:
        ld.write_dataset(rows(next(self._next), 20), self.uri, mode="append", storage_options=OPTIONS)

    def change(self) -> None:
        key = random.randrange(50)
        opened(self.uri).update({"id": "id + 500"}, f"id % 50 = {key}")
        opened(self.uri).delete(f"id % 97 = {key}")

    def compact(self) -> None:
        opened(self.uri).optimize.compact_files()

    def optimize(self) -> None:
        opened(self.uri).optimize.optimize_indices(num_indices_to_merge=random.choice([None, 0, 2]))

    def create(self) -> None:
        name, (column, kind) = random.choice(list(INDEXES.items()))
        opened(self.uri).create_scalar_index(column, kind, name)

    def read(self) -> None:
        check(opened(self.uri))

    def run(self, works: Mapping[str, Callable[[], Any]]) -> None:
        threads = [threading.Thread(target=self._repeat, args=work) for work in works.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _repeat(self, name: str, work: Callable[[], Any]) -> None:
        while time.monotonic() < self.end and not self.errors:
            try:
                work()
                self.done[name] += 1
            except CommitConflictError:
                self.done[f"{name} lost"] += 1
            except BaseException as error:
                self.errors.append(error)


def check(dataset: ld.LanceDataset) -> None:
    """Check that indexes and scans return the same rows."""
    for where in ("id BETWEEN 100 AND 600", "n = 3", "id IN (7, 507, 1007) OR n = 1"):
        expected = dataset.to_table(filter=where, use_scalar_index=False)
        assert dataset.to_table(filter=where) == expected


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
def test_rows_and_indexes_can_change_concurrently(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t")
    dataset = ld.write_dataset(
        rows(0, 200), uri, storage_options=OPTIONS, max_rows_per_file=50, enable_stable_row_ids=stable
    )
    for name, (column, kind) in INDEXES.items():
        dataset.create_scalar_index(column, kind, name)
    changers = Changers(uri)
    works = (changers.append, changers.change, changers.compact, changers.optimize, changers.create, changers.read)
    changers.run({work.__name__: work for work in works})
    if changers.errors:
        raise changers.errors[0]
    assert all(changers.done[name] for name in ("append", "change", "optimize", "create", "read"))
    dataset = opened(uri)
    assert {index.name for index in dataset.describe_indices()} == set(INDEXES)
    check(dataset)
    dataset.validate()
    dataset.optimize.optimize_indices()
    assert all(dataset.index_statistics(name)["num_unindexed_rows"] == 0 for name in INDEXES)
    check(dataset)
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
    named = {segment["uuid"] for segment in dataset.list_indices()}
    assert {path.parent.name for path in Path(uri).rglob("_indices/*/*")} == named
