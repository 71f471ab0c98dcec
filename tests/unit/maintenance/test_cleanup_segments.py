"""Directories of index segments under cleanup: they stay as long as a version, a tag or a branch needs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.index.plain import PlainKind
from unit.maintenance.indexed import check, compact, directories, with_index, write

import lance_duck as ld
from lance_duck.index import registry


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> PlainKind:
    made = PlainKind()
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, registry.KindEntry.of(made)))
    return made


def clean(path: Path, *, unverified: bool = False) -> int:
    done = ld.dataset(path).cleanup_old_versions(
        retain_versions=1, error_if_tagged_old_versions=False, delete_unverified=unverified
    )
    return done.index_files_removed


def test_segments_are_removed_with_the_last_version_that_names_them(tmp_path: Path, kind: PlainKind) -> None:
    path = tmp_path / "t.lance"
    dataset = compact(with_index(write(path), kind))
    assert len(directories(path)) == 2
    assert clean(path) == 1
    assert directories(path) == {str(dataset.handle.snapshot.indices[0].uuid)}
    assert check(ld.dataset(path)) == {6}


def test_segments_of_a_tagged_version_are_kept(tmp_path: Path, kind: PlainKind) -> None:
    path = tmp_path / "t.lance"
    dataset = with_index(write(path), kind)
    dataset.tags.create("old", dataset.version)
    compact(dataset)
    assert clean(path) == 0
    assert check(ld.dataset(path, version="old")) == {0, 1, 2, 3, 4, 5}
    ld.dataset(path).tags.delete("old")
    assert clean(path) == 1


def test_segments_used_by_a_branch_are_kept(tmp_path: Path, kind: PlainKind) -> None:
    path = tmp_path / "t.lance"
    dataset = with_index(write(path), kind)
    branch = dataset.create_branch("side")
    assert check(branch) == {0, 1, 2, 3, 4, 5}
    compact(dataset, defer_index_remap=True)
    compact(ld.dataset(path), target_rows_per_fragment=10_000, materialize_deletions_threshold=0)
    clean(path, unverified=True)
    assert check(ld.dataset(path, version=("side", None))) == {0, 1, 2, 3, 4, 5}
    branch = compact(ld.dataset(path, version=("side", None)))
    assert check(ld.dataset(path, version=("side", None))) == set(branch.fragment_ids())


def test_unreferenced_segments_are_removed_only_on_request(tmp_path: Path, kind: PlainKind) -> None:
    path = tmp_path / "t.lance"
    with_index(write(path, 2), kind)
    stray = path / "_indices" / "00000000-0000-4000-8000-000000000001" / "page.lance"
    stray.parent.mkdir()
    stray.write_bytes(b"x")
    assert clean(path) == 0
    assert clean(path, unverified=True) == 1
    assert len(directories(path)) == 1
