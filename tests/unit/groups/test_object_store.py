"""Groups of changes of tables on an object store, in memory."""

from __future__ import annotations

import errno
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import obstore
import pytest
from support.faults import Crash, Faults, Plan, Proxy, answer_twice, fail_at, lose_answer, stop_at
from unit.groups.group_tables import (
    EDITS,
    OPTIONS,
    after,
    append,
    before,
    commit_group,
    group_of,
    make_folder,
    put,
    rows_of,
    update,
)

import lance_duck as ld
from lance_duck.errors import CommitConflictError, StoreError, UnsupportedError
from lance_duck.groups.finish import finish, settle
from lance_duck.groups.log import PUBLISHED, CommitLog
from lance_duck.groups.write import folder_moves
from lance_duck.store import object as object_store

CALLS = ("get", "get_ranges", "head", "list", "list_with_delimiter", "put", "delete", "copy", "open_writer")
ALL = {name: after(name, edit) for name, edit in EDITS.items()}
NONE = {name: before(name) for name in EDITS}


@pytest.fixture
def root() -> str:
    return f"memory://{uuid.uuid4().hex}/folder"


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """The number of requests by kind."""
    found, lock = Counter[str](), threading.Lock()

    def counted(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            with lock:
                found[name] += 1
            return getattr(obstore, name)(*arguments, **more)

        return call

    monkeypatch.setattr(object_store, "obstore", Proxy(obstore, {name: counted(name) for name in CALLS}))
    return found


def contents(root: str) -> dict[str, Any]:
    return {name: rows_of(root, name) for name in EDITS}


def test_a_group_is_published(root: str) -> None:
    log = make_folder(root)
    commit_group(log, group_of(root))
    assert log.outcome(1) == PUBLISHED
    assert contents(root) == ALL


def test_a_group_is_undone_after_a_conflict(root: str) -> None:
    log = make_folder(root)
    entry, staged = put(log, group_of(root))
    ld.dataset(f"{root}/b.lance").update({"v": "7"}, where="id = 10")
    with pytest.raises(CommitConflictError, match="nothing was committed"):
        finish(log, entry, staged)
    assert log.undone(1) == {}
    assert contents(root) == NONE | {"b": [{"id": 10, "v": 7}, *before("b")[1:]]}


def test_a_helper_publishes_a_group(root: str) -> None:
    log = make_folder(root)
    put(log, group_of(root))
    settle(CommitLog(root, OPTIONS), wait=0)
    assert log.outcome(1) == PUBLISHED
    assert contents(root) == ALL


def test_folders_cannot_be_moved(root: str) -> None:
    with pytest.raises(UnsupportedError, match="object store cannot be renamed or dropped"):
        folder_moves(root, [(f"{root}/a.lance", f"{root}/x.lance")])


PLANS: dict[str, Callable[[int], Plan]] = {
    "killed process": stop_at,
    "failing request": lambda at: fail_at(at, errno.EIO),
    "lost response": lose_answer,
    "repeated request": answer_twice,
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_fault_at_any_request_leaves_all_or_nothing(plan: Callable[[int], Plan]) -> None:
    at = 0
    while True:
        root, error = f"memory://{uuid.uuid4().hex}/folder", None
        make_folder(root)
        group = group_of(root)
        with Faults(plan(at)) as faults:
            try:
                commit_group(CommitLog(root, OPTIONS), group)
            except (StoreError, Crash) as found:
                error = found
        log = CommitLog(root, OPTIONS)
        settle(log, wait=0)
        is_in = log.state().number == 1 and log.outcome(1) == PUBLISHED
        assert contents(root) == (ALL if is_in else NONE), at
        assert is_in or error is not None
        if at >= len(faults.steps):
            break
        at += 1
    assert at > 12


def test_a_group_of_two_tables_takes_few_requests(root: str, requests: Counter[str]) -> None:
    log = make_folder(root, "ab")
    commit_group(log, group_of(root, {"a": update, "b": update}))
    group = group_of(root, {"a": append, "b": append})
    requests.clear()
    entry, staged = put(log, group)
    assert requests == {
        "list": 3,
        "get": 1,
        "head": 2,
        "put": 3,
    }  # the log and both tables; their changes and the entry
    requests.clear()
    finish(log, entry, staged)
    assert requests == {
        "list": 3,
        "get": 2,
        "head": 2,
        "put": 7,
        "delete": 1,
    }  # three files for each table, and the end
    requests.clear()
    settle(log)
    assert requests == {"list": 1, "get": 1}
