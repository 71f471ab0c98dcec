"""Staged files that killed processes left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.groups.group_tables import (
    OPTIONS,
    append,
    commit_group,
    files_of,
    group_of,
    is_stopped,
    make_folder,
    put,
    swap,
)

from lance_duck.groups import moves
from lance_duck.groups.finish import settle
from lance_duck.groups.log import KEPT_SECONDS, PUBLISHED, CommitLog
from lance_duck.wire.paths import STAGED_GROUPS


def staged_files(root: str) -> list[str]:
    return [path for path in files_of(root) if path.startswith(STAGED_GROUPS)]


def make_old(folder: Path) -> None:
    """Date all files and folders below a folder more than a week back."""
    for path in folder.rglob("*"):
        then = path.stat().st_mtime - KEPT_SECONDS - 60
        os.utime(path, (then, then))


@pytest.mark.skipif(os.name == "nt", reason="no forks")
def test_staged_files_of_a_killed_writer_are_removed_after_a_week(tmp_path: Path) -> None:
    root = str(tmp_path)
    make_folder(root)
    group = group_of(root)
    assert is_stopped(lambda: put(CommitLog(root, OPTIONS), group), 12)
    left = staged_files(root)
    assert len(left) == 3
    commit_group(CommitLog(root, OPTIONS), group_of(root, {"a": append}))
    assert staged_files(root) == left
    make_old(tmp_path / STAGED_GROUPS)
    commit_group(CommitLog(root, OPTIONS), group_of(root, {"a": append}))
    assert staged_files(root) == []


def test_old_files_of_a_table_that_is_being_dropped_are_kept(tmp_path: Path) -> None:
    root = str(tmp_path)
    log = make_folder(root, "abd")
    make_old(tmp_path)
    entry, _ = put(log, group_of(root, {"a": append}, swap(root, "a", "b")))
    with moves.turn(log, entry):
        moves.move_all(log, entry)
    moved = [path for path in staged_files(root) if "moved-" in path]
    assert len(moved) == 5
    log.remove_old()
    assert [path for path in staged_files(root) if "moved-" in path] == moved
    settle(log, wait=0)
    assert log.outcome(1) == PUBLISHED
    assert staged_files(root) == []
