"""Compaction, from a handle and in steps."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, RetryableError
from lance_duck.optimize import Compaction, CompactionPlan, CompactionTask, RewriteResult

LINEAGE = ["id", "text", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def table(start: int, count: int = 10) -> pa.Table:
    return pa.table({"id": range(start, start + count), "text": [f"t{i}" for i in range(count)]})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.lance"


def written(path: Path, fragments: int = 6, *, stable: bool = False) -> ld.LanceDataset:
    dataset = ld.write_dataset(table(0), path, enable_stable_row_ids=stable)
    for i in range(1, fragments):
        dataset.insert(table(10 * i))
    return dataset


def test_compaction_keeps_row_order_and_drops_deleted_rows(path: Path) -> None:
    dataset = written(path)
    dataset.delete("id % 3 = 0")
    before = dataset.to_table()
    metrics = dataset.optimize.compact_files()
    assert vars(metrics) == {"fragments_removed": 6, "fragments_added": 1, "files_removed": 12, "files_added": 1}
    assert dataset.to_table() == before == ld.dataset(path).to_table()
    assert [(f.physical_rows, f.num_deletions) for f in dataset.get_fragments()] == [(40, 0)]


def test_rows_are_spread_evenly_over_the_new_fragments(path: Path) -> None:
    dataset = written(path, 7)
    dataset.optimize.compact_files(target_rows_per_fragment=35)
    assert [f.count_rows() for f in dataset.get_fragments()] == [35, 35]


def test_an_interrupt_after_the_commit_keeps_the_new_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = written(path)
    before = dataset.to_table()

    def interrupted(*_: object) -> None:
        if ld.dataset(path).version == 8:
            raise KeyboardInterrupt

    monkeypatch.setattr("lance_duck.commit.version_files.write_version_hint", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dataset.optimize.compact_files()
    after = ld.dataset(path)
    assert (after.version, len(after.get_fragments()), after.to_table()) == (8, 1, before)


def test_a_failed_compaction_leaves_no_files(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = written(path, 2, stable=True)
    before = sorted(path.rglob("*"))

    def broken(*_: object) -> None:
        raise CorruptError("row ids")

    monkeypatch.setattr("lance_duck.snapshot.snapshot.Snapshot.row_ids", broken)
    with pytest.raises(CorruptError):
        dataset.optimize.compact_files()
    assert sorted(path.rglob("*")) == before


def test_compaction_keeps_stable_row_ids_and_row_versions(path: Path) -> None:
    dataset = written(path, stable=True)
    dataset.update({"text": "'new'"}, where="id IN (3, 33)")
    dataset.delete("id % 7 = 0")
    before = dataset.to_table(columns=LINEAGE)
    dataset.optimize.compact_files(target_rows_per_fragment=25)
    assert len(dataset.get_fragments()) == 2
    assert dataset.to_table(columns=LINEAGE) == before
    dataset.validate()


def test_compaction_without_work_creates_no_version(path: Path) -> None:
    dataset = written(path, 1)
    assert vars(dataset.optimize.compact_files()) == dict.fromkeys(
        ("fragments_removed", "fragments_added", "files_removed", "files_added"), 0
    )
    assert dataset.version == 1


def test_new_files_omit_dropped_columns(path: Path) -> None:
    dataset = written(path, 2)
    dataset.drop_columns(["text"])
    dataset.optimize.compact_files()
    (file,) = dataset.get_fragments()[0].data_files()
    assert file.fields == [0]


def test_tasks_run_from_json_and_commit_next_to_an_append(path: Path) -> None:
    dataset = written(path)
    plan = CompactionPlan.from_json(Compaction.plan(dataset, {"target_rows_per_fragment": 30}).json())
    assert plan.num_tasks() == 2
    results = []
    for task in pickle.loads(pickle.dumps(plan)).tasks:
        done = CompactionTask.from_json(task.json()).execute(ld.dataset(path))
        results.append(RewriteResult.from_json(done.json()))
        assert results[-1] == done
    ld.dataset(path).insert(table(60))
    metrics = Compaction.commit(dataset, results)
    assert (metrics.fragments_removed, metrics.fragments_added) == (6, 2)
    assert dataset.to_table().sort_by("id")["id"].to_pylist() == list(range(70))
    assert dataset.fragment_ids() == sorted(dataset.fragment_ids())


def test_a_fragment_changed_during_compaction_is_not_replaced(path: Path) -> None:
    dataset = written(path, 2)
    done = [task.execute(dataset) for task in Compaction.plan(dataset).tasks]
    ld.dataset(path).delete("id = 3")
    with pytest.raises(RetryableError, match="Delete"):
        Compaction.commit(dataset, done)
    assert ld.dataset(path).count_rows() == 19


def test_a_compaction_of_a_stale_handle_is_replanned(path: Path) -> None:
    dataset = written(path, 3)
    ld.dataset(path).delete("id = 3")
    dataset.optimize.compact_files()
    assert dataset.count_rows() == 29
    assert len(dataset.get_fragments()) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"tasks": [], "read_version": "x", "options": {}}'])
def test_json_that_is_not_a_plan_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInputError):
        CompactionPlan.from_json(text)


def test_progress_is_reported_per_group(path: Path) -> None:
    seen: list[tuple[int, int]] = []
    written(path).optimize.compact_files(target_rows_per_fragment=30, progress=lambda *at: seen.append(at))
    assert seen == [(1, 2), (2, 2)]


def test_a_table_with_all_rows_deleted_compacts_to_an_empty_table(path: Path) -> None:
    dataset = written(path, 2)
    dataset.delete("true")
    dataset.optimize.compact_files()
    assert dataset.to_table().num_rows == 0


def test_a_replanned_compaction_commits_once(path: Path) -> None:
    dataset = written(path)
    changes: list[int] = []

    def changed(done: int, groups: int) -> None:
        if not changes:
            changes.append(ld.dataset(path).delete("id = 3")["num_deleted_rows"])

    metrics = dataset.optimize.compact_files(target_rows_per_fragment=30, progress=changed)
    assert (metrics.fragments_removed, metrics.fragments_added, changes) == (6, 1, [1])
    assert [version["version"] for version in dataset.versions()] == list(range(1, 11))  # delete, 2 × reserve, rewrite
    assert dataset.to_table()["id"].to_pylist() == [i for i in range(60) if i != 3]
    assert len(list((path / "data").iterdir())) == 7
