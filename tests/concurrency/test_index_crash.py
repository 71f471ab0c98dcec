"""A writer of indexes stops, or its store fails, at every single step."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from concurrency.crashing import Files, fresh, opened, read_files, write, write_files
from support.faults import Crash, Faults, fail_at, fail_from, lose_answer, stop_at

import lance_duck as ld
from lance_duck.errors import StoreError
from lance_duck.store import is_temporary, open_store

Act = Callable[[ld.LanceDataset], Any]


def apart(dataset: ld.LanceDataset) -> None:
    segment = dataset.create_index_uncommitted("n", "BITMAP", "n_idx", fragment_ids=[1], replace=True)
    dataset.commit_existing_index_segments("n_idx", "n", [segment])


ACTS: dict[str, Act] = {
    "create": lambda ds: ds.create_scalar_index("id", "ZONEMAP"),
    "create empty": lambda ds: ds.create_scalar_index("id", "BITMAP", train=False),
    "replace": lambda ds: ds.create_scalar_index("n", "BITMAP"),
    "append a segment": lambda ds: ds.optimize.optimize_indices(num_indices_to_merge=0),
    "merge segments": lambda ds: ds.optimize.optimize_indices(),
    "retrain": lambda ds: ds.optimize.optimize_indices(retrain=True),
    "build apart": apart,
    "drop": lambda ds: ds.drop_index("n_idx"),
}


def prepare(uri: str) -> None:
    """Write a table of two fragments with an index over the first."""
    write(uri, pa.table({"id": range(8), "n": [0, 1] * 4}), "create")
    opened(uri).create_scalar_index("n", "BITMAP")
    write(uri, pa.table({"id": range(8, 12), "n": [1, 2] * 2}), "append")


@pytest.fixture(scope="module")
def prepared() -> Files:
    uri = fresh("memory://prepared")
    prepare(uri)
    return read_files(uri)


@pytest.fixture(params=["memory", pytest.param("disk", marks=pytest.mark.slow)])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory://crash" if request.param == "memory" else str(tmp_path)


def state(uri: str) -> list[tuple[str, str, tuple[int, ...]]]:
    """Indexes of the newest version."""
    return sorted((i["name"], i["type"], tuple(sorted(i["fragment_ids"]))) for i in opened(uri).list_indices())


def files(uri: str) -> set[str]:
    """Files of segments."""
    return {e.path for e in open_store(uri).walk("_indices") if not is_temporary(e.path)}


def strays(uri: str) -> set[str]:
    """Files of segments that no version names."""
    dataset = opened(uri)
    named = {
        segment["uuid"]
        for version in dataset.versions()
        for segment in dataset.checkout_version(version["version"]).list_indices()
    }
    return {path for path in files(uri) if path.split("/")[1] not in named}


def check(uri: str, known: tuple[Any, Any]) -> bool:
    """The indexes are the old or the new ones, and work; returns whether they are new."""
    found = state(uri)
    assert found in known
    dataset = opened(uri)
    assert sorted(dataset.to_table(filter="n = 1")["id"].to_pylist()) == [1, 3, 5, 7, 8, 10]
    dataset.validate()
    return found == known[1]


def prepare_texts(uri: str) -> None:
    """Write a table of two fragments with a full-text and an n-gram index over the first, and one deleted row."""
    write(uri, pa.table({"n": range(8), "s": ["duck", "the lake"] * 4}), "create")
    opened(uri).create_scalar_index("s", "INVERTED", "words", with_position=True)
    opened(uri).create_scalar_index("s", "NGRAM", "grams")
    write(uri, pa.table({"n": range(8, 12), "s": ["lake", None] * 2}), "append")
    opened(uri).delete("n = 3")


def remap_later(dataset: ld.LanceDataset) -> None:
    dataset.optimize.compact_files(defer_index_remap=True)
    dataset.optimize.optimize_indices(num_indices_to_merge=9)


TEXT_ACTS: dict[str, Act] = {
    "create full text": lambda ds: ds.create_scalar_index("s", "INVERTED", "other", with_position=True),
    "create n-grams": lambda ds: ds.create_scalar_index("s", "NGRAM", "other"),
    "append segments": lambda ds: ds.optimize.optimize_indices(num_indices_to_merge=0),
    "merge segments": lambda ds: ds.optimize.optimize_indices(),
    "retrain": lambda ds: ds.optimize.optimize_indices(retrain=True),
    "compact": lambda ds: ds.optimize.compact_files(),
    "compact, remap later": remap_later,
}


@pytest.mark.parametrize("name", list(TEXT_ACTS))
def test_a_killed_full_text_index_writer_leaves_the_old_or_the_new_index(name: str) -> None:
    uri = fresh("memory://texts")
    prepare_texts(uri)
    prepared = read_files(uri)
    (before, after), steps = run(write_files(fresh("memory://crash"), prepared), TEXT_ACTS[name])
    between = [] if name != "compact, remap later" else [compacted(prepared)]
    for at in range(0, len(steps), 1 if name == "merge segments" else 3):
        uri = write_files(fresh("memory://crash"), prepared)
        with pytest.raises(Crash), Faults(stop_at(at)):
            TEXT_ACTS[name](opened(uri))
        assert state(uri) in (before, after, *between)
        dataset = opened(uri)
        assert sorted(dataset.to_table(full_text_query="lake")["n"].to_pylist()) == [1, 5, 7, 8, 10]
        assert sorted(dataset.to_table(full_text_query='"the lake"')["n"].to_pylist()) == [1, 5, 7, 8, 10]
        assert sorted(dataset.to_table(filter="contains(s, 'e lak')")["n"].to_pylist()) == [1, 5, 7]
        dataset.validate()
        dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
        assert not strays(uri)


def compacted(prepared: Files) -> list[tuple[str, str, tuple[int, ...]]]:
    """Indexes once a compaction that puts remapping off is done."""
    uri = write_files(fresh("memory://crash"), prepared)
    opened(uri).optimize.compact_files(defer_index_remap=True)
    return state(uri)


def commits(step: str) -> bool:
    return "_transactions" in step or "_versions" in step


def run(uri: str, act: Act) -> tuple[tuple[Any, Any], list[str]]:
    """Return the effect of an act without faults."""
    before = state(uri)
    with Faults() as seen:
        act(opened(uri))
    return (before, state(uri)), seen.steps


@pytest.mark.parametrize("name", list(ACTS))
def test_a_killed_writer_leaves_the_old_or_the_new_indexes(prepared: Files, folder: str, name: str) -> None:
    known, steps = run(write_files(fresh(folder), prepared), ACTS[name])
    visible = []
    for at in range(len(steps)):
        uri = write_files(fresh(folder), prepared)
        with pytest.raises(Crash), Faults(stop_at(at)):
            ACTS[name](opened(uri))
        visible.append(check(uri, known))
        opened(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
        assert not strays(uri)
    assert visible == sorted(visible)
    assert not visible[0]


@pytest.mark.parametrize("name", list(ACTS))
@pytest.mark.parametrize("fail", [fail_at, fail_from])
def test_a_failure_before_the_commit_leaves_no_entry_and_no_files(
    prepared: Files, folder: str, name: str, fail: Callable[..., Any]
) -> None:
    known, steps = run(write_files(fresh(folder), prepared), ACTS[name])
    for at in range(next(at for at, step in enumerate(steps) if commits(step))):
        uri = write_files(fresh(folder), prepared)
        before = files(uri)
        done = False
        with suppress(StoreError), Faults(fail(at, errno.ENOSPC)) as seen:
            ACTS[name](opened(uri))
            done = True
        assert check(uri, known) == done
        if not any(map(commits, seen.steps)) and name != "build apart":
            assert files(uri) == before


@pytest.mark.parametrize("name", list(ACTS))
def test_a_lost_response_leaves_the_old_or_the_new_indexes(prepared: Files, folder: str, name: str) -> None:
    known, steps = run(write_files(fresh(folder), prepared), ACTS[name])
    for at in range(len(steps)):
        uri = write_files(fresh(folder), prepared)
        done = False
        with suppress(StoreError), Faults(lose_answer(at)):
            ACTS[name](opened(uri))
            done = True
        visible = check(uri, known)
        assert visible or not done
