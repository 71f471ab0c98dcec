"""Several helpers that finish the same group: one outcome, and each change exactly once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from support.faults import Do, Faults, Plan
from unit.groups.group_tables import (
    EDITS,
    OPTIONS,
    after,
    append,
    before,
    commit_group,
    copy_folder,
    delete_fragment,
    exit_code,
    files_of,
    forked,
    group_of,
    make_folder,
    names_in_log,
    numbers,
    put,
    rows_of,
    swap,
)

import lance_duck as ld
from lance_duck.errors import CommitConflictError
from lance_duck.groups.entry import GroupEntry
from lance_duck.groups.finish import finish, settle
from lance_duck.groups.log import PUBLISHED, UNDO, CommitLog
from lance_duck.snapshot import turns
from lance_duck.wire.paths import STAGED_GROUPS

TIMES = 50 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 5
ALL = {name: after(name, edit) for name, edit in EDITS.items()}
NONE = {name: before(name) for name in EDITS}
TAKEN = [{"id": 10, "v": 7}, *before("b")[1:]]
"""The table b after another writer changed a row that the group changes."""


def help_out(root: str) -> None:
    settle(CommitLog(root, OPTIONS), wait=0)


def take_row(root: str) -> None:
    """Change a row that the group changes."""
    ld.dataset(f"{root}/b.lance", storage_options=OPTIONS).update({"v": "7"}, where="id = 10")


def contents(root: str) -> dict[str, Any]:
    return {name: rows_of(root, name) for name in EDITS}


def versions(root: str, name: str, entry: GroupEntry) -> list[str]:
    """Return which versions of a table the group made, oldest first: "change" or "undo"."""
    table = next(table for table in entry.tables if table.folder == f"{name}.lance")
    names = {table.transaction: "change", table.undo: "undo"}
    dataset = ld.dataset(f"{root}/{name}.lance")
    made_by = [dataset.checkout_version(each).handle.snapshot.transaction() for each in range(1, dataset.version + 1)]
    return [names[each.uuid] for each in made_by if each is not None and each.uuid in names]


def check(root: str, entry: GroupEntry, *, is_taken: bool) -> None:
    log = CommitLog(root, OPTIONS)
    assert log.state().is_finished
    if is_taken:
        assert log.outcome(1) == UNDO
        assert log.undone(1) == {}
        assert contents(root) == NONE | {"b": TAKEN}
        assert [versions(root, name, entry) for name in EDITS] == [["change", "undo"], ["undo"], ["change", "undo"]]
    else:
        assert log.outcome(1) == PUBLISHED
        assert contents(root) == ALL
        assert [versions(root, name, entry) for name in EDITS] == [["change"]] * 3


def at_once(*work: Callable[[], object]) -> list[Exception]:
    """Run some functions in threads that start together. Returns their errors."""
    barrier, errors = threading.Barrier(len(work)), []

    def run(do: Callable[[], object]) -> None:
        barrier.wait()
        try:
            do()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,)) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize("number", range(TIMES))
@pytest.mark.parametrize("helpers", [1, 2])
@pytest.mark.parametrize("is_taken", [False, True])
def test_threads_finish_a_group_once(tmp_path: Path, number: int, helpers: int, is_taken: bool) -> None:
    root = str(tmp_path)
    log = make_folder(root)
    entry, staged = put(log, group_of(root))
    if is_taken:
        take_row(root)
    errors = at_once(lambda: finish(log, entry, staged), *[lambda: help_out(root)] * helpers)
    assert [type(error) for error in errors] == [CommitConflictError] * is_taken, errors
    check(root, entry, is_taken=is_taken)


@pytest.mark.skipif(os.name == "nt", reason="no forks")
@pytest.mark.parametrize("number", range(TIMES))
@pytest.mark.parametrize("is_taken", [False, True])
def test_processes_finish_a_group_once(tmp_path: Path, number: int, is_taken: bool) -> None:
    root = str(tmp_path)
    entry, _ = put(make_folder(root), group_of(root))
    if is_taken:
        take_row(root)
    children = [forked(lambda: help_out(root)) for _ in range(3)]
    assert [exit_code(child) for child in children] == [0, 0, 0]
    check(root, entry, is_taken=is_taken)


@pytest.mark.skipif(os.name == "nt", reason="no forks")
@pytest.mark.parametrize("number", range(TIMES))
def test_processes_publish_and_move_once(tmp_path: Path, number: int) -> None:
    root = str(tmp_path)
    log = make_folder(root, "abd")
    put(log, group_of(root, {"a": delete_fragment, "b": append}, swap(root, "a", "b")))
    children = [forked(lambda: help_out(root)) for _ in range(3)]
    assert [exit_code(child) for child in children] == [0, 0, 0]
    assert CommitLog(root, OPTIONS).outcome(1) == PUBLISHED
    assert rows_of(root, "b") == after("a", delete_fragment)
    assert rows_of(root, "a") == after("b", append)
    assert rows_of(root, "n") == before("n")
    assert sorted(os.listdir(root)) == ["__lance_duck", "a.lance", "b.lance", "n.lance"]
    assert not [path for path in files_of(root) if path.startswith(STAGED_GROUPS)]


def at_puts(places: Sequence[int], act: Callable[[], object]) -> Plan:
    """Return a plan that calls a function before some puts. Its own puts are counted next."""
    puts = count()

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        if name == "link" and next(puts) in places:
            act()
        return do()

    return plan


@pytest.mark.parametrize("is_taken", [False, True])
def test_helpers_may_finish_a_group_before_any_put_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_taken: bool
) -> None:
    monkeypatch.setattr(turns, "LONGEST_TURN", 0)  # of the writer, who waits for the helper here
    template, root = str(tmp_path / "template"), str(tmp_path / "folder")
    entry, _ = put(make_folder(template), group_of(template))
    if is_taken:
        take_row(template)
    puts = 7 if is_taken else 4
    for first in range(puts):
        for second in range(first, puts + 1):
            copy_folder(template, root)
            log = CommitLog(root, OPTIONS)
            with Faults(at_puts([first, second], lambda: help_out(root))):
                settle(log, wait=0)
            check(root, entry, is_taken=is_taken)
            assert names_in_log(root) == ([".end", ".json", ".undone"] if is_taken else [".end", ".json"])


def test_writers_of_groups_take_turns(tmp_path: Path) -> None:
    root = str(tmp_path)
    make_folder(root)

    def write(first: int) -> None:
        edits = dict.fromkeys(EDITS, lambda dataset: dataset.insert(numbers(first, 1)))
        for _ in range(3):
            commit_group(CommitLog(root, OPTIONS), group_of(root, edits))

    assert at_once(*(partial(write, first) for first in (100, 101, 102, 103))) == []
    assert CommitLog(root, OPTIONS).numbers() == list(range(12, 0, -1))
    added = [row for first in (100, 101, 102, 103) for row in numbers(first, 1).to_pylist() * 3]
    assert contents(root) == {name: [*rows, *added] for name, rows in NONE.items()}


def test_a_group_finishes_the_group_before_it(tmp_path: Path) -> None:
    root = str(tmp_path)
    put(log := make_folder(root), group_of(root, {"a": append, "b": append}))
    commit_group(CommitLog(root, OPTIONS), group_of(root, {"b": append, "c": append}))
    assert [log.outcome(number) for number in (1, 2)] == [PUBLISHED, PUBLISHED]
    expected = {name: after(name, append) for name in EDITS}
    assert contents(root) == expected | {"b": [*expected["b"], expected["b"][-1]]}
