"""Commits of pylance and of this package on one table: their conflicts and their results."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import lance
import pytest
from google.protobuf.message import Message
from oracle.cases import Cases
from oracle.operations import READ_VERSION, Sample, commit_ours, commit_theirs, ours_of, state, verdict

import lance_duck as ld

CASE_KIND = "written"

# (first, second) -> outcome here, for cases in which pylance leaves an index over a dropped column or fails otherwise.
STRICTER = {("project away b", "index b"): "X", ("project away b", "field metadata b"): "X"}
# A change that reads a row or replaces a column is retried after new values of its fragment. New values without a
# column are retried as well.
OVERLAID = {0: ("overlay row 0 of f0", "overlay row 1 of f0"), 1: ("overlay f1",)}
STRICTER |= {(a, f"{verb} f{i}"): "R" for i in OVERLAID for a in OVERLAID[i] for verb in ("delete", "replace b of")}
STRICTER |= {(a, "delete all of f0"): "R" for a in OVERLAID[0]}
STRICTER |= {("project away b", b): "R" for i in OVERLAID for b in OVERLAID[i]}
# A projection by pylance reverts concurrent schema metadata; here it does not.
KEPT = {("schema metadata", name) for name in ("project", "project that keeps", "project away b")}


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable row ids"])
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return Sample(tmp_path_factory.mktemp("commits"), stable=request.param)


def test_each_operation_creates_the_same_version_as_in_pylance(sample: Sample, cases: Cases) -> None:
    for name, operation in sample.operations.items():
        path = sample.copy()
        outcome = commit_theirs(path, operation)
        expected = None if outcome else state(path)
        path = sample.copy()
        mine = commit_ours(path, operation)
        with cases.case(name):
            assert bool(mine) == bool(outcome), f"{mine!r} where pylance says {outcome!r}"
            assert outcome or state(path) == expected


@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
def test_concurrent_changes_conflict_or_combine_like_pylance(sample: Sample, cases: Cases, step: int) -> None:
    pairs = [(first, second) for first in sample.operations for second in sample.operations]
    for first, second in pairs[::step]:
        with cases.case(f"{second} on top of {first}"):
            check_pair(sample, first, second)


def made_by(path: str, first: str) -> tuple[Message, list[Message]]:
    """Return the state of a table; index coverage is left out after overlays, which reduce it here."""
    manifest, segments = state(path)
    for segment in segments if first.startswith("overlay") else ():
        segment.ClearField("fragment_bitmap")
    return manifest, segments


def check_pair(sample: Sample, first: str, second: str) -> None:
    a, b = sample.operations[first], sample.operations[second]
    path = sample.copy()
    if commit_theirs(path, a):
        return
    expected = verdict(commit_theirs(path, b))
    made = made_by(path, first)
    path = sample.copy()
    commit_theirs(path, a)
    assert verdict(commit_ours(path, b)) == STRICTER.get((first, second), expected), "ours on top of pylance"
    same = (first, second) in KEPT or (first, second) in STRICTER or made_by(path, first) == made
    assert expected != "." or same, "ours on top of pylance"
    path = sample.copy()
    commit_ours(path, a)
    assert verdict(commit_theirs(path, b)) == expected, "pylance on top of ours"
    assert expected != "." or made_by(path, first) == made, "pylance on top of ours"


def test_pylance_reads_and_extends_versions_committed_by_lance_duck(sample: Sample, cases: Cases) -> None:
    for name, operation in sample.operations.items():
        path = sample.copy()
        if commit_ours(path, operation):
            continue
        with cases.case(name):
            theirs = lance.dataset(path)
            theirs.validate()
            expected = theirs.to_table()
            assert ld.dataset(path).to_table().equals(expected)
            assert (
                theirs.read_transaction(theirs.version).uuid == ld.dataset(path).read_transaction(theirs.version).uuid
            )
            lance.write_dataset(theirs.to_table(limit=1), path, mode="append")
            assert ld.dataset(path).count_rows() == expected.num_rows + 1


def test_transactions_are_read_like_pylance(sample: Sample, cases: Cases) -> None:
    for name, operation in sample.operations.items():
        path = sample.copy()
        if commit_theirs(path, operation):
            continue
        with cases.case(name):
            theirs = lance.dataset(path).read_transaction(READ_VERSION + 1)
            mine = ld.dataset(path).read_transaction(READ_VERSION + 1)
            assert (mine.read_version, mine.uuid) == (theirs.read_version, theirs.uuid)
            assert type(mine.operation).__name__ == type(theirs.operation).__name__
            assert mine.operation == ours_of(theirs.operation)


def test_clones_and_branches_of_both_libraries_are_readable_by_both(sample: Sample, tmp_path: Path) -> None:
    path = sample.copy()
    shutil.copytree(path, tmp_path / "t")
    operation = ld.LanceOperation.Clone(True, None, READ_VERSION, str(tmp_path / "t"), None)
    mine = ld.LanceDataset.commit(tmp_path / "mine", operation, read_version=READ_VERSION)
    lance.dataset(str(tmp_path / "t")).shallow_clone(str(tmp_path / "theirs"), READ_VERSION)
    assert state(str(tmp_path / "mine")) == state(str(tmp_path / "theirs"))
    assert lance.dataset(str(tmp_path / "mine")).to_table().equals(mine.to_table())


def test_detached_versions_of_both_libraries_are_readable_by_both(sample: Sample) -> None:
    path = sample.copy()
    append = sample.operations["append"]
    theirs = lance.LanceDataset.commit(path, append, read_version=READ_VERSION, detached=True)
    mine = ld.LanceDataset.commit(path, ours_of(append), read_version=READ_VERSION, detached=True)
    assert lance.dataset(path, version=mine.version).to_table().equals(theirs.to_table())
    assert ld.dataset(path, version=theirs.version).to_table().equals(mine.to_table())
    assert lance.dataset(path).version == ld.dataset(path).version == READ_VERSION
