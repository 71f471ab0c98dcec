"""Disks that fail at any step of a group."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.faults import Faults, Plan, answer_twice, fail_at, fail_from, lose_answer
from unit.groups.group_tables import (
    EDITS,
    OPTIONS,
    after,
    before,
    copy_folder,
    group_of,
    make_folder,
    put,
    rows_of,
)

import lance_duck as ld
from lance_duck.errors import CommitConflictError, StoreError
from lance_duck.groups.finish import finish, settle
from lance_duck.groups.log import PUBLISHED, CommitLog

STRIDE = 1 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 4
"""The quick profile lets every fourth step fail."""
PLANS: dict[str, Callable[[int], Plan]] = {
    "full disk": lambda at: fail_from(at, errno.ENOSPC),
    "failing disk": lambda at: fail_at(at, errno.EIO),
    "lost response": lose_answer,
    "repeated request": answer_twice,
}
plans = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
ALL = {name: after(name, edit) for name, edit in EDITS.items()}
NONE = {name: before(name) for name in EDITS}


def contents(root: str) -> dict[str, object]:
    return {name: rows_of(root, name) for name in EDITS}


def settled(root: str) -> CommitLog:
    log = CommitLog(root, OPTIONS)
    settle(log, wait=0)
    return log


@plans
def test_a_group_is_whole_or_nothing_after_a_failure_at_any_step(tmp_path: Path, plan: Callable[[int], Plan]) -> None:
    template, root = str(tmp_path / "template"), str(tmp_path / "folder")
    make_folder(template)
    for at in range(0, 1000, STRIDE):
        copy_folder(template, root)
        group, is_put, error = group_of(root), False, None
        log = CommitLog(root, OPTIONS)
        with Faults(plan(at)) as faults:
            try:
                entry, staged = put(log, group)
                is_put = True
                finish(log, entry, staged)
            except StoreError as found:
                error = found
        log = settled(root)
        is_in = log.state().number == 1 and log.outcome(1) == PUBLISHED
        assert is_in == is_put, at
        assert contents(root) == (ALL if is_in else NONE), at
        assert is_in or error is not None
        if at >= len(faults.steps):
            break
    assert at > 40


@plans
def test_a_group_is_undone_after_a_failure_at_any_step(tmp_path: Path, plan: Callable[[int], Plan]) -> None:
    template, root = str(tmp_path / "template"), str(tmp_path / "folder")
    put(make_folder(template), group_of(template))
    ld.dataset(f"{template}/b.lance", storage_options=OPTIONS).update({"v": "7"}, where="id = 10")
    for at in range(0, 1000, STRIDE):
        copy_folder(template, root)
        log = CommitLog(root, OPTIONS)
        with Faults(plan(at)) as faults, pytest.raises((StoreError, CommitConflictError)):
            finish(log, log.read(1))
        assert settled(root).undone(1) == {}
        assert contents(root) == NONE | {"b": [{"id": 10, "v": 7}, *before("b")[1:]]}, at
        if at >= len(faults.steps):
            break
    assert at > 40
