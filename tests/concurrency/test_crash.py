"""A writer stops, or its store fails, at every single step of every change."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from concurrency import crashing
from concurrency.crashing import VERBS, Files, State, Verb, fresh, state, version, write_files
from support.faults import Crash, Faults, Plan, answer_twice, fail_at, fail_from, lose_answer, stop_at
from support.power import PowerCut

from lance_duck.errors import AlreadyExistsError, NotFoundError, StoreError
from lance_duck.store import open_store

QUICK = ("create", "append", "overwrite", "delete", "update", "upsert", "add columns", "rename", "compact", "branch")

by_name = pytest.mark.parametrize(
    "verb",
    [pytest.param(verb, id=verb.name, marks=() if verb.name in QUICK else pytest.mark.slow) for verb in VERBS],
)
on_disk_too = pytest.mark.parametrize("place", ["memory", pytest.param("disk", marks=pytest.mark.slow)])


@dataclass(frozen=True)
class Known:
    """The effect of a change without faults."""

    files: Files
    old: State | None
    new: State | None
    versions: tuple[int, int]
    steps: int


@pytest.fixture(scope="module")
def prepared() -> Files:
    uri = fresh("memory://prepared")
    crashing.prepare(uri)
    return crashing.read_files(uri)


@pytest.fixture(scope="module")
def know(prepared: Files) -> Callable[[Verb, str], Known]:
    """Return a function that runs a change once below a folder without faults and caches the result."""
    seen: dict[tuple[str, bool], Known] = {}

    def run(verb: Verb, folder: str) -> Known:
        key = verb.name, folder.startswith("memory:")
        if key not in seen:
            files = {} if verb.creates else prepared
            uri = write_files(fresh(folder), files)
            old, first = state(uri), version(uri)
            with Faults() as faults:
                verb.act(uri)
            seen[key] = Known(files, old, state(uri), (first, version(uri)), len(faults.steps))
            crashing.forget(uri)
        return seen[key]

    return run


@pytest.fixture
def folder(place: str, tmp_path: Path) -> str:
    return "memory://crash" if place == "memory" else str(tmp_path)


def tables(known: Known, folder: str) -> Iterator[tuple[int, str]]:
    """Each step of a change, and a table to do it to."""
    for at in range(known.steps):
        uri = write_files(fresh(folder), known.files)
        yield at, uri
        crashing.forget(uri)


def assert_old_or_new(uri: str, known: Known, verb: Verb) -> bool:
    """Return whether the change is visible, after checking that it is visible completely or not at all."""
    now = state(uri)
    assert now in (known.old, known.new)
    assert known.versions[0] <= version(uri) <= known.versions[1]
    return now == known.new


@by_name
@on_disk_too
def test_a_killed_writer_leaves_the_old_or_the_new_state(
    know: Callable[[Verb, str], Known], verb: Verb, folder: str
) -> None:
    known = know(verb, folder)
    assert known.steps
    visible = []
    for at, uri in tables(known, folder):
        with pytest.raises(Crash), Faults(stop_at(at)):
            verb.act(uri)
        visible.append(assert_old_or_new(uri, known, verb))
        if at % 4 == 0 or folder.startswith("memory:"):
            crashing.assert_goes_on(uri)
    if known.old != known.new:
        assert visible == sorted(visible)
        assert not visible[0]


@by_name
@on_disk_too
@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(lambda at: fail_from(at, errno.ENOSPC), id="full"),
        pytest.param(lambda at: fail_at(at, errno.EIO), id="broken", marks=pytest.mark.slow),
    ],
)
def test_a_failing_store_leaves_the_old_or_the_new_state(
    know: Callable[[Verb, str], Known], verb: Verb, folder: str, plan: Callable[[int], Plan]
) -> None:
    known = know(verb, folder)
    for at, uri in tables(known, folder):
        done = False
        with suppress(StoreError), Faults(plan(at)):
            verb.act(uri)
            done = True
        visible = assert_old_or_new(uri, known, verb)
        assert visible or not done
    crashing.assert_goes_on(write_files(uri, known.files))


@by_name
@on_disk_too
def test_a_lost_response_never_commits_twice(know: Callable[[Verb, str], Known], verb: Verb, folder: str) -> None:
    known = know(verb, folder)
    for at, uri in tables(known, folder):
        done = False
        with suppress(StoreError), Faults(lose_answer(at)):
            verb.act(uri)
            done = True
        visible = assert_old_or_new(uri, known, verb)
        assert visible or not done


@by_name
def test_a_duplicated_request_changes_nothing(know: Callable[[Verb, str], Known], verb: Verb) -> None:
    known = know(verb, "memory://crash")
    for at, uri in tables(known, "memory://crash"):
        with Faults(answer_twice(at)):
            verb.act(uri)
        assert state(uri) == known.new
        assert version(uri) == known.versions[1]


def test_a_partially_created_branch_can_be_deleted_and_created_again(prepared: Files) -> None:
    uri = write_files(fresh("memory://crash"), prepared)
    crashing.opened(uri).create_branch("side")
    open_store(uri).delete(["_refs/branches/side.json"])
    dataset = crashing.opened(uri)
    assert dataset.branches.list() == {}
    with pytest.raises(AlreadyExistsError, match=r"branch 'side' is not completely created.*branches\.delete"):
        dataset.create_branch("side")
    dataset.branches.delete("side")
    with pytest.raises(NotFoundError):
        dataset.branches.delete("side")
    assert dataset.create_branch("side").to_table() == dataset.to_table()


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(verb, id=verb.name, marks=() if verb.name in ("update", "move tag") else pytest.mark.slow)
        for verb in VERBS
    ],
)
def test_committed_versions_survive_a_power_cut(
    know: Callable[[Verb, str], Known], verb: Verb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crashing, "UNFLUSHED", {"fsync": "true"})
    known = know(verb, str(tmp_path))
    uri = write_files(str(tmp_path / "counted"), known.files)
    with Faults() as faults:
        verb.act(uri)
    for at in range(len(faults.steps) + 1):
        disk = tmp_path / f"disk {at}"
        disk.mkdir()
        uri = write_files(str(disk / "t"), known.files)
        with suppress(Crash), PowerCut(disk, stop_at(at)) as cut:
            verb.act(uri)
        left = str(cut.after(tmp_path / f"left {at}") / "t")
        visible = assert_old_or_new(left, known, verb)
        assert visible or at < len(faults.steps)
