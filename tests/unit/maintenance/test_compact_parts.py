"""Compaction with groups written by other processes: pickled orders, batches, and concurrent writers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import RetryableError, StoreError
from lance_duck.maintenance import compact
from lance_duck.maintenance.compact import CompactionOutcome, compact_in_parts
from lance_duck.maintenance.options import CompactionOptions

OPTIONS = CompactionOptions(target_rows_per_fragment=18)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "t.lance"
    ld.write_dataset(pa.table({"id": range(80), "x": [i % 5 for i in range(80)]}), place, max_rows_per_file=10)
    dataset = ld.dataset(place)
    dataset.create_scalar_index("x", "BTREE")
    dataset.delete("id % 10 = 2")
    return place


def elsewhere(path: Path, orders: Sequence[Any]) -> list[Any]:
    """What another process makes of orders."""
    done = [
        order.write(ld.dataset(path, order.version).handle.snapshot) for order in pickle.loads(pickle.dumps(orders))
    ]
    return list(pickle.loads(pickle.dumps(done)))


def compacted(path: Path, write: Callable[[Any], Any] | None = None, batch: int = 1, **more: Any) -> CompactionOutcome:
    def anywhere(orders: Sequence[Any]) -> list[Any]:
        return elsewhere(path, orders)

    def written(_: object, orders: Sequence[Any]) -> list[Any]:
        return (write or anywhere)(orders)

    snapshot = ld.dataset(path).handle.snapshot
    return compact_in_parts(snapshot, OPTIONS, written, batch=lambda groups: batch, **{"follow": anywhere, **more})


def ids(path: Path, text: str | None = None) -> list[int]:
    return sorted(ld.dataset(path).to_table(filter=text)["id"].to_pylist())


def leftovers(path: Path) -> list[str]:
    explained = ld.dataset(path).explain_cleanup_old_versions(timedelta(0), delete_unverified=True, include_files=True)
    return [file.path for file in explained.candidate_files if file.unverified]


@pytest.mark.parametrize("follow", [{}, {"follow": None}], ids=["elsewhere", "here"])
def test_groups_are_committed_in_batches_and_indexes_follow(path: Path, follow: dict[str, Any]) -> None:
    before = ids(path), ids(path, "x = 3")
    done = compacted(path, batch=2, **follow)
    dataset = ld.dataset(path)
    assert (len(done.committed), done.commits, done.replanned) == (4, 2, 0)
    assert (ids(path), ids(path, "x = 3")) == before
    assert dataset.index_statistics("x_idx")["num_unindexed_rows"] == 0
    assert leftovers(path) == []
    dataset.validate()


def test_a_group_changed_by_another_writer_is_rewritten(path: Path) -> None:
    came: list[int] = []

    def write(orders: Sequence[Any]) -> list[Any]:
        done = elsewhere(path, orders)
        if not came:
            came.append(1)
            ld.dataset(path).delete("id = 5")
        return done

    before = ids(path)
    done = compacted(path, write, batch=9)
    assert (len(done.committed), done.commits, done.replanned) == (4, 2, 1)
    assert ids(path) == [i for i in before if i != 5]
    assert leftovers(path) == []


def test_files_of_abandoned_attempts_are_removed(path: Path) -> None:
    def twice(orders: Sequence[Any]) -> list[Any]:
        elsewhere(path, orders)
        return elsewhere(path, orders)

    before = ids(path)
    compacted(path, twice, follow=twice)
    assert ids(path) == before
    assert leftovers(path) == []


def test_a_commit_that_loses_a_race_is_retried(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = compact.prepare
    came: list[int] = []

    def prepare(now: Any, *more: Any) -> Any:
        prepared = real(now, *more)
        if not came:
            came.append(1)
            ld.dataset(path).delete("id = 5")
        return prepared

    monkeypatch.setattr(compact, "prepare", prepare)
    before = ids(path)
    done = compacted(path, batch=9)
    assert (done.commits, done.replanned) == (2, 1)
    assert ids(path) == [i for i in before if i != 5]
    assert leftovers(path) == []
    ld.dataset(path).validate()


def test_repeated_conflicts_raise_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "COMPACTION_RETRIES", 2)

    def write(orders: Sequence[Any]) -> list[Any]:
        done = elsewhere(path, orders)
        dataset = ld.dataset(path)
        dataset.delete(f"id = {dataset.to_table(columns=['id'])['id'][0].as_py()}")
        return done

    with pytest.raises(RetryableError, match="keep changing fragments"):
        compacted(path, write, batch=9)
    assert leftovers(path) == []


def test_failed_groups_leave_nothing_and_committed_groups_stay(path: Path) -> None:
    def write(orders: Sequence[Any]) -> list[Any]:
        done = elsewhere(path, orders)
        if 4 in orders[0].fragments:
            raise StoreError("the disk is full")
        return done

    before = ids(path), len(ld.dataset(path).get_fragments())
    with pytest.raises(StoreError, match="the disk is full"):
        compacted(path, write)
    assert ids(path) == before[0]
    assert len(ld.dataset(path).get_fragments()) < before[1]
    assert leftovers(path) == []
    ld.dataset(path).validate()
