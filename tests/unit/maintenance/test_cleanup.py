"""Cleanup of tables on disk."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import ReferencedError

ALL = timedelta(0)


def files(path: Path) -> set[str]:
    return {f.relative_to(path).as_posix() for f in path.rglob("*") if f.is_file()}


@pytest.fixture
def dataset(tmp_path: Path) -> ld.LanceDataset:
    """Three versions; the first file belongs only to the first one."""
    path = tmp_path / "t.lance"
    ld.write_dataset(pa.table({"id": [1, 2, 3]}), path)
    dataset = ld.write_dataset(pa.table({"id": [4, 5, 6]}), path, mode="overwrite")
    dataset.delete("id = 5")
    return dataset


def test_only_old_versions_and_their_files_are_removed(dataset: ld.LanceDataset) -> None:
    path = Path(dataset.uri)
    stats = dataset.cleanup_old_versions(ALL)
    assert (stats.old_versions, stats.data_files_removed, stats.transaction_files_removed) == (2, 1, 2)
    assert dataset.version_refs() == [{"version": 3}]
    assert ld.dataset(path).to_table().to_pydict() == {"id": [4, 6]}
    assert sum(name.startswith("data/") for name in files(path)) == 1


def test_the_reported_bytes_equal_those_of_the_removed_files(dataset: ld.LanceDataset) -> None:
    path = Path(dataset.uri)
    before = {name: (path / name).stat().st_size for name in files(path)}
    stats = dataset.cleanup_old_versions(ALL)
    assert stats.bytes_removed == sum(before[name] for name in set(before) - files(path))


def test_a_dry_run_reports_the_same_numbers_and_removes_nothing(dataset: ld.LanceDataset) -> None:
    path = Path(dataset.uri)
    before = files(path)
    told = dataset.cleanup_old_versions(ALL, dry_run=True)
    named = dataset.explain_cleanup_old_versions(ALL, include_files=True)
    assert files(path) == before
    assert told == named.stats == dataset.cleanup_old_versions(ALL)
    assert {f.path for f in named.candidate_files} == before - files(path)


def test_a_tagged_version_keeps_all_files(dataset: ld.LanceDataset) -> None:
    dataset.tags.create("first", 1)
    with pytest.raises(ReferencedError, match="first"):
        dataset.cleanup_old_versions(ALL)
    dataset.cleanup_old_versions(ALL, error_if_tagged_old_versions=False)
    assert dataset.checkout_version("first").to_table().to_pydict() == {"id": [1, 2, 3]}


def test_files_used_by_a_branch_are_kept(dataset: ld.LanceDataset) -> None:
    branch = dataset.create_branch("side", 1)
    branch.insert(pa.table({"id": [9]}))
    dataset.cleanup_old_versions(ALL)
    assert ld.dataset(dataset.uri, version=("side", None)).to_table().to_pydict() == {"id": [1, 2, 3, 9]}


def test_unreferenced_files_are_removed_after_a_week_or_on_request(dataset: ld.LanceDataset) -> None:
    path = Path(dataset.uri)
    for name in ("data/stray.lance", "data/notes.txt", "_duck/x.lance"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(b"x")
    dataset.cleanup_old_versions(ALL)
    assert "data/stray.lance" in files(path)
    old = (path / "data/stray.lance").stat().st_mtime - 8 * 86400
    os.utime(path / "data/notes.txt", (old, old))
    dataset.cleanup_old_versions(ALL, delete_unverified=True)
    assert {name for name in files(path) if "stray" in name} == set()
    assert {"data/notes.txt", "_duck/x.lance"} <= files(path)


def test_opening_a_removed_version_raises_not_found(dataset: ld.LanceDataset) -> None:
    dataset.cleanup_old_versions(ALL)
    with pytest.raises(FileNotFoundError, match="no version 1"):
        dataset.checkout_version(1)
