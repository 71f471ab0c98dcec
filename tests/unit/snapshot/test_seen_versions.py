from __future__ import annotations

import os
import random
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.snapshot import seen_versions as module
from lance_duck.snapshot.seen_versions import VersionDirectory, version_directory
from lance_duck.snapshot.versions import latest_version
from lance_duck.store import open_store
from lance_duck.wire.paths import ManifestName, newest_manifest

STATE = (1, 2, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VersionDirectory:
    monkeypatch.setattr(module, "_is_local", lambda _: True)
    (tmp_path / "_versions").mkdir()
    add(tmp_path / "_versions", 5)
    found = version_directory(open_store(str(tmp_path)))
    assert found is not None
    return found


def add(folder: Path, version: int, naming: int = 2) -> None:
    (folder.parent / ManifestName(version, naming).path).touch()


def remove(folder: Path, version: int) -> None:
    (folder.parent / ManifestName(version, 2).path).unlink()


def test_a_published_version_is_known_until_the_directory_changes(directory: VersionDirectory, tmp_path: Path) -> None:
    assert directory.newest() is None
    directory.note_published(ManifestName(5, 2))
    assert directory.newest() == ManifestName(5, 2)
    add(tmp_path / "_versions", 6)
    assert directory.newest() is None


def test_a_writer_may_remove_the_version_that_follows(directory: VersionDirectory, tmp_path: Path) -> None:
    directory.note_published(ManifestName(5, 2))
    add(tmp_path / "_versions", 6)
    add(tmp_path / "_versions", 7)
    remove(tmp_path / "_versions", 6)
    assert directory.newest() is None
    assert latest_version(open_store(str(tmp_path))) == ManifestName(7, 2)


@pytest.mark.parametrize("naming", [1, 2])
def test_the_next_version_is_looked_up_even_if_the_times_are_equal(
    directory: VersionDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, naming: int
) -> None:
    monkeypatch.setattr(directory, "state", lambda: STATE)
    directory.note_published(ManifestName(5, 2))
    assert directory.newest() == ManifestName(5, 2)
    add(tmp_path / "_versions", 6, naming)
    assert directory.newest() is None


@pytest.mark.parametrize(("age", "is_known"), [(0, False), (20_000_000, False), (20_000_001, True)])
def test_a_listing_counts_if_the_directory_did_not_change_shortly_before(
    directory: VersionDirectory, monkeypatch: pytest.MonkeyPatch, age: int, is_known: bool
) -> None:
    monkeypatch.setattr(directory, "state", lambda: STATE)
    monkeypatch.setattr("time.time_ns", lambda: STATE[3] + age)
    directory.note_listed(directory.state(), ManifestName(5, 2))
    assert (directory.newest() is not None) == is_known


@pytest.mark.parametrize("times", [(1_700_000_000_000_000_000, STATE[3]), (STATE[2], 1_700_000_000_123_000_000)])
def test_coarse_times_do_not_count(
    directory: VersionDirectory, monkeypatch: pytest.MonkeyPatch, times: tuple[int, int]
) -> None:
    monkeypatch.setattr(directory, "state", lambda: (1, 2, *times))
    directory.note_published(ManifestName(5, 2))
    assert directory.newest() is None


@pytest.mark.parametrize(("kind", "is_known"), [("ext4", True), ("nfs4", False), ("fuse.sshfs", False)])
def test_only_known_local_file_systems_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_known: bool
) -> None:
    device = os.stat(tmp_path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 2 0:0 / /a rw - nfs4 b c\n2 2 {number} / /mnt/a\\040b rw shared:1 - {kind} c rw\n")
    monkeypatch.setattr(module, "_MOUNTS", str(mounts))
    (tmp_path / "_versions").mkdir()
    directory = VersionDirectory(str(tmp_path / "_versions"))
    directory.note_published(ManifestName(5, 2))
    assert (directory.newest() is not None) == is_known
    monkeypatch.setattr(module, "_MOUNTS", str(tmp_path / "missing"))
    other = VersionDirectory(str(tmp_path / "_versions"))
    other.note_published(ManifestName(5, 2))
    assert other.newest() is None


def test_a_missing_directory_is_not_known(tmp_path: Path) -> None:
    directory = VersionDirectory(str(tmp_path / "_versions"))
    directory.note_published(ManifestName(5, 2))
    assert (directory.state(), directory.newest()) == (None, None)


def test_object_stores_have_no_directory() -> None:
    assert version_directory(open_store("memory://")) is None


def test_an_append_to_a_table_of_this_process_lists_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_is_local", lambda _: True)
    table = ld.write_dataset({"a": [1]}, tmp_path / "t")
    table.insert({"a": [2]})
    monkeypatch.setattr("lance_duck.store.local.LocalStore.names_at_once", None)  # calling None would fail
    table.insert({"a": [3]})
    assert (table.version, table.latest_version, table.count_rows()) == (3, 3, 3)


@settings(max_examples=10)
@given(st.randoms(use_true_random=False))
def test_the_newest_version_is_always_that_of_a_listing(
    tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> None:
    uri = ld.write_dataset({"a": [1]}, tmp_path_factory.mktemp("t") / "t").uri
    folder = Path(uri) / "_versions"
    for _ in range(8):
        change = rng.choice(["own", "own", "of another", "two of another", "temporary file"])
        if change == "own":
            ld.dataset(uri).insert({"a": [2]})
        elif change == "temporary file":
            (folder / f"{rng.random()}").touch()
        else:
            with patch.object(VersionDirectory, "note_published", lambda *_: None):
                first = ld.write_dataset({"a": [3]}, uri, mode="append").version
                if change == "two of another":
                    ld.write_dataset({"a": [4]}, uri, mode="append")
                    remove(folder, first)
        assert latest_version(open_store(uri)) == newest_manifest(os.listdir(folder))
