"""Processes that are killed at any step while they commit a group of several tables, or take it back.

After each kill, pylance reads all tables and appends to some of them. Then another process finishes the group.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import lance
import lancedb
import pytest
from unit.groups.group_tables import (
    EDITS,
    FIRST,
    OPTIONS,
    Edit,
    Rows,
    after,
    append,
    before,
    commit_group,
    copy_folder,
    delete_fragment,
    files_of,
    group_of,
    is_stopped,
    make_folder,
    names_in_log,
    numbers,
    put,
    swap,
)

from lance_duck.errors import CommitConflictError
from lance_duck.groups.entry import GroupEntry
from lance_duck.groups.finish import StagedTable, finish, settle
from lance_duck.groups.log import PUBLISHED, UNDO, CommitLog
from lance_duck.groups.write import Group
from lance_duck.wire.paths import STAGED_GROUPS

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no forks")

STRIDE = 1 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 2
"""The quick profile kills at every second step."""
Tables = dict[str, Rows]
Staged = Mapping[str, StagedTable]


@dataclass(frozen=True)
class Case:
    """A group of changes.

    Attributes:
        edits: Changes by table.
        swapped: Two tables that swap their folders, or nothing. With a swap, d is dropped and n is created.
        appended: Tables to which pylance appends after the kill.
        conflict: A change by pylance, after the entry was put, that conflicts with the group.
        conflicting: Tables that pylance has changed.
    """

    edits: Mapping[str, Edit]
    swapped: Sequence[str] = ()
    appended: str = ""
    conflict: Callable[[str], object] = str
    conflicting: Tables = field(default_factory=dict)

    def before(self) -> Tables:
        """Return the tables before the group, by name."""
        return {name: before(name) for name in "abcstd"} | self.conflicting

    def after(self) -> Tables:
        """Return the tables after the group, by name."""
        names = dict(zip(self.swapped, reversed(self.swapped), strict=True))
        tables = {name: after(name, self.edits[name]) if name in self.edits else before(name) for name in "abcst"}
        tables |= {"n": before("n")} if self.swapped else {"d": before("d")}
        return {names.get(name, name): rows for name, rows in tables.items()}

    def prepare(self, root: str) -> Group:
        """Write the files of the group."""
        return group_of(root, self.edits, swap(root, *self.swapped) if self.swapped else ())


CASES = {
    "other tables are moved": Case(EDITS, "st", "ab"),
    "changed tables are moved": Case({"a": delete_fragment, "b": append}, "ab", "s"),
}
CONFLICTS = {
    "a row": Case(
        EDITS,
        appended="bs",
        conflict=lambda root: lance.dataset(f"{root}/b.lance").update({"v": "7"}, where="id = 10"),
        conflicting={"b": [{"id": 10, "v": 7}, *before("b")[1:]]},
    ),
    "a name": Case(
        {"a": delete_fragment, "b": append},
        "ab",
        "s",
        conflict=lambda root: lance.write_dataset(numbers(FIRST["m"]), f"{root}/n.lance"),
        conflicting={"n": before("m")},
    ),
}


def tables_below(root: str) -> Tables:
    """Return the rows of all tables below a folder, read by pylance, by their first ids.

    The dropped table, and a new one that nobody sees yet, may be partly deleted.
    """
    tables = {}
    for path in sorted(path.parent for path in Path(root).rglob("_versions")):
        if path.name not in ("d.lance", "moved-2") and path != Path(root, STAGED_GROUPS, "n.lance"):
            rows = lance.dataset(str(path)).to_table().sort_by("id").to_pylist()
            (name,) = (name for name in FIRST if FIRST[name] == rows[0]["id"] // 10 * 10)
            tables[name] = rows
    return tables


def tables_of(root: str) -> Tables:
    """Return the rows of all tables of a folder, read by LanceDB."""
    database = lancedb.connect(root)
    return {name: database[name].to_arrow().sort_by("id").to_pylist() for name in database.list_tables().tables}


def add(root: str, names: str) -> Tables:
    """Append a row to each table that exists, with pylance. Returns the rows."""
    added = {}
    for name in names:
        if os.path.exists(uri := f"{root}/{name}.lance"):
            lance.write_dataset(numbers(1000, 1), uri, mode="append")
            added[name] = numbers(1000, 1).to_pylist()
    return added


def with_rows(tables: Tables, added: Tables) -> Tables:
    """Return tables with more rows. A column that these rows lack is null."""
    return {name: rows + [dict.fromkeys(rows[0]) | row for row in added.get(name, [])] for name, rows in tables.items()}


def check_parts(root: str, case: Case) -> None:
    """Check that each table below a folder is as before or as after its change."""
    found = tables_below(root)
    assert set(found) >= set("abcst")
    for name, rows in found.items():
        whole = [before(name), case.conflicting.get(name)]
        assert rows in (*whole, after(name, case.edits[name]) if name in case.edits else None)


def check_after_kill(root: str, case: Case) -> str | None:
    """Check a folder after a kill, finish the group, and check it again. Returns the outcome."""
    check_parts(root, case)
    added = add(root, case.appended)
    settle(CommitLog(root, OPTIONS), wait=0)
    log = CommitLog(root, OPTIONS)
    assert log.state().is_finished
    outcome = log.outcome(1) if log.state().number else None
    assert tables_of(root) == with_rows(case.after() if outcome == PUBLISHED else case.before(), added)
    files = files_of(root)
    assert settle(log, wait=0) == log.state().number
    assert files_of(root) == files
    return outcome


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_group_is_whole_or_nothing_after_a_kill_at_any_step(tmp_path: Path, case: Case) -> None:
    template, root = str(tmp_path / "template"), str(tmp_path / "folder")
    make_folder(template, "abcstd")
    outcomes: list[str | None] = []
    while True:
        copy_folder(template, root)
        group = case.prepare(root)
        if not is_stopped(lambda group=group: commit_group(CommitLog(root, OPTIONS), group), len(outcomes) * STRIDE):
            break
        outcomes.append(check_after_kill(root, case))
    assert tables_of(root) == case.after()
    assert outcomes.count(None) * STRIDE >= 12
    assert outcomes.count(PUBLISHED) * STRIDE > 30
    assert set(outcomes) == {None, PUBLISHED}


@pytest.mark.parametrize("case", CONFLICTS.values(), ids=CONFLICTS)
def test_a_group_is_undone_after_a_kill_at_any_step(tmp_path: Path, case: Case) -> None:
    template, root = str(tmp_path / "template"), str(tmp_path / "folder")
    make_folder(template, "abcstd")
    kills = 0
    while True:
        copy_folder(template, root)
        log = CommitLog(root, OPTIONS)
        entry, staged = put(log, case.prepare(root))
        case.conflict(root)

        def work(log: CommitLog = log, entry: GroupEntry = entry, staged: Staged = staged) -> None:
            with pytest.raises(CommitConflictError, match="nothing was committed"):
                finish(log, entry, staged)

        if not is_stopped(work, kills * STRIDE):
            break
        kills += 1
        assert check_after_kill(root, case) == UNDO
        assert log.undone(1) == {}
        assert names_in_log(root) == [".end", ".json", ".undone"]
    assert tables_of(root) == case.before()
    assert not [path for path in files_of(root) if path.startswith(STAGED_GROUPS)]
    assert kills * STRIDE > 30
