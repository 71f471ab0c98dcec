"""Power cuts at any step while a process commits a group of several tables, or takes it back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.faults import Crash, stop_at
from support.power import PowerCut
from unit.groups.group_tables import (
    EDITS,
    OPTIONS,
    Rows,
    after,
    before,
    commit_group,
    copy_folder,
    group_of,
    make_folder,
    put,
    rows_of,
)

import lance_duck as ld
from lance_duck.errors import CommitConflictError
from lance_duck.groups.finish import finish, settle
from lance_duck.groups.log import PUBLISHED, UNDO, CommitLog

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux names the files of handles")

STRIDE = 1 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 5
"""The quick profile cuts the power at every fifth step."""
ALL = {name: after(name, edit) for name, edit in EDITS.items()}
NONE = {name: before(name) for name in EDITS}


def outcomes(
    tmp_path: Path, work: Callable[[str], object], expected: Callable[[str | None], dict[str, Rows]]
) -> list[str | None]:
    """Cut the power at many steps of some work on a folder, and finish its group. Returns the outcomes."""
    template, root = str(tmp_path / "template"), tmp_path / "folder"
    make_folder(template)
    found: list[str | None] = []
    is_over = False
    while not is_over:
        copy_folder(template, str(root))
        cut = PowerCut(root, stop_at(len(found) * STRIDE))
        try:
            with cut:
                work(str(root))
            is_over = True
        except Crash:
            pass
        left = str(cut.after(tmp_path / f"left {len(found)}"))
        settle(CommitLog(left, OPTIONS), wait=0)
        log = CommitLog(left, OPTIONS)
        found.append(log.outcome(1) if log.state().number else None)
        assert {name: rows_of(left, name) for name in EDITS} == expected(found[-1]), len(found)
    return found


def test_a_group_is_whole_or_nothing_after_a_power_cut(tmp_path: Path) -> None:
    def work(root: str) -> None:
        commit_group(CommitLog(root), group_of(root, options={}))

    found = outcomes(tmp_path, work, lambda outcome: ALL if outcome == PUBLISHED else NONE)
    assert found == [None] * found.count(None) + [PUBLISHED] * found.count(PUBLISHED)
    assert min(found.count(None), found.count(PUBLISHED)) * STRIDE > 40


def test_a_group_is_undone_after_a_power_cut(tmp_path: Path) -> None:
    taken = NONE | {"b": [{"id": 10, "v": 7}, *before("b")[1:]]}

    def work(root: str) -> None:
        log = CommitLog(root)
        entry, staged = put(log, group_of(root, options={}))
        ld.dataset(f"{root}/b.lance").update({"v": "7"}, where="id = 10")
        with pytest.raises(CommitConflictError):
            finish(log, entry, staged)

    def check(outcome: str | None) -> dict[str, Rows]:
        return {None: NONE, PUBLISHED: ALL, UNDO: taken}[outcome]

    found = outcomes(tmp_path, work, check)
    assert found.count(UNDO) * STRIDE > 40
    assert set(found) == {None, PUBLISHED, UNDO}
