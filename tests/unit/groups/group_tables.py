"""Folders of small tables, groups of changes of them, and children that stop at a step.

a.lance   the group appends a row
b.lance   it changes three rows and deletes one: deletion files
c.lance   it adds a column and changes a row: a whole manifest
s.lance   swaps its folder with t.lance
d.lance   is dropped
n.lance   is created
"""

from __future__ import annotations

import os
import shutil
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from support.faults import Do, Faults, Plan

import lance_duck as ld
from lance_duck.groups.entry import FolderMove, GroupEntry
from lance_duck.groups.finish import StagedTable, finish
from lance_duck.groups.log import CommitLog
from lance_duck.groups.write import Group, folder_moves, put_group
from lance_duck.scan.table_scan import TableScan
from lance_duck.verbs.pending_changes import PendingChanges, PreparedChange
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.wire.paths import GROUP_COMMITS, STAGED_GROUPS

OPTIONS: Final = {"fsync": "false"}
KILLED: Final = 9
SECONDS: Final = 60
"""Time limit of a child process."""
Edit = Callable[[ld.LanceDataset], object]
Rows = list[dict[str, Any]]

FIRST: Final = {"a": 0, "b": 10, "c": 20, "s": 30, "t": 40, "d": 50, "n": 60, "m": 70}
"""The smallest id of each table. Each has five rows."""


def numbers(first: int, count: int = 5) -> pa.Table:
    """Return rows with ids from `first`, and the value 0."""
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "v": pa.array([0] * count, pa.int64())})


def write_table(root: str, name: str, first: int, **options: Any) -> None:
    """Write a table of two fragments."""
    uri = f"{root}/{name}.lance"
    ld.write_dataset(numbers(first), uri, max_rows_per_file=3, storage_options=OPTIONS, **options)


def make_folder(root: str, names: Sequence[str] = "abc", **options: Any) -> CommitLog:
    """Write tables into a folder. Returns its commit log."""
    for name in names:
        write_table(root, name, FIRST[name], **options)
    return CommitLog(root, OPTIONS)


def append(dataset: ld.LanceDataset) -> None:
    """Append one row."""
    dataset.insert(numbers(dataset.to_table()["id"][0].as_py() + 5, 1))


def update(dataset: ld.LanceDataset) -> None:
    """Change three rows of two fragments."""
    first = dataset.to_table()["id"][0].as_py()
    dataset.update({"v": "v + 1"}, where=f"id IN ({first}, {first + 1}, {first + 3})")


def change_rows(dataset: ld.LanceDataset) -> None:
    """Change three rows of two fragments, and delete a row."""
    last = dataset.to_table()["id"][-1].as_py()
    update(dataset)
    dataset.delete(f"id = {last}")


def delete_fragment(dataset: ld.LanceDataset) -> None:
    """Delete all rows of the first fragment."""
    first = dataset.to_table()["id"][0].as_py()
    dataset.delete(f"id < {first + 3}")


def alter(dataset: ld.LanceDataset) -> None:
    """Add a column and change a row."""
    last = dataset.to_table()["id"][-1].as_py()
    dataset.add_columns({"w": "id * 2"})
    dataset.update({"v": "v + 1"}, where=f"id = {last}")


EDITS: Final[Mapping[str, Edit]] = {"a": append, "b": change_rows, "c": alter}


def prepare(root: str, name: str, edit: Edit, options: Mapping[str, str] = OPTIONS) -> PreparedChange:
    """Run changes of a table and write their files."""
    base = ld.dataset(f"{root}/{name}.lance", storage_options=dict(options)).handle.snapshot
    pending = PendingChanges(base)
    edit(ld.LanceDataset(base.uri, table=TableScan(pending.collecting())))
    with UncommittedFiles(base) as draft:
        change = pending.prepare(draft)
    assert change is not None
    pending.keep(change)
    return change


@dataclass(frozen=True)
class Names:
    """Moves of folders: see `GroupNames`."""

    moves: Sequence[FolderMove]

    def check(self) -> None:
        """Check nothing."""

    def prepare(self) -> None:
        """Change no table of names."""

    def keep_files(self) -> None:
        """Keep all files."""


def group_of(
    root: str,
    edits: Mapping[str, Edit] = EDITS,
    moves: Sequence[FolderMove] = (),
    options: Mapping[str, str] = OPTIONS,
) -> Group:
    """Prepare a group of changes of tables."""
    changes = [prepare(root, name, edit, options) for name, edit in edits.items()]
    return Group(changes, Names(moves) if moves else None)


def put(log: CommitLog, group: Group) -> tuple[GroupEntry, dict[str, StagedTable]]:
    """Put the entry of a group that changes something: see `put_group`."""
    found = put_group(log, group)
    assert found is not None
    return found


def commit_group(log: CommitLog, group: Group) -> None:
    """Commit a group."""
    finish(log, *put(log, group))
    log.remove_old()


def swap(root: str, one: str = "s", other: str = "t") -> list[FolderMove]:
    """Return the moves that swap two tables, drop the table d, and create the table n."""
    new = f"{root}/{STAGED_GROUPS}/n.lance"
    write_table(f"{root}/{STAGED_GROUPS}", "n", FIRST["n"])
    places = {name: f"{root}/{name}.lance" for name in (one, other, "d", "n")}
    renames = [(places[one], f"{root}/x"), (places[other], places[one]), (f"{root}/x", places[other])]
    return folder_moves(root, [*renames, (places["d"], None), (new, places["n"])])


def rows_of(root: str, name: str) -> Rows:
    """Return the rows of a table, ordered by id."""
    return ld.dataset(f"{root}/{name}.lance", storage_options=OPTIONS).to_table().sort_by("id").to_pylist()


def before(name: str) -> Rows:
    """Return the rows of a table before its change."""
    return numbers(FIRST[name]).to_pylist()


def after(name: str, edit: Edit) -> Rows:
    """Return the rows of a table after its change."""
    rows, first = before(name), FIRST[name]
    if edit is append:
        return [*rows, {"id": first + 5, "v": 0}]
    if edit is delete_fragment:
        return rows[3:]
    if edit is alter:
        return [row | {"v": int(row["id"] == first + 4), "w": row["id"] * 2} for row in rows]
    changed = [row | {"v": int(row["id"] - first in (0, 1, 3))} for row in rows]
    return changed[:-1] if edit is change_rows else changed


def stop_at(at: int) -> Plan:
    """Return a plan that ends the process before step `at`: see `support.faults`. Flushes do not count as steps."""
    left = at

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        nonlocal left
        if name != "fsync":
            left -= 1
        if left < 0:
            os._exit(KILLED)
        return do()

    return plan


def forked(work: Callable[[], object]) -> int:
    """Run some work in a forked child. Returns its process id. The child exits with 0 if the work is done."""
    if child := os.fork():
        return child
    try:
        signal.alarm(SECONDS)
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def exit_code(child: int) -> int:
    """Wait for a child. Returns its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def is_stopped(work: Callable[[], object], at: int) -> bool:
    """Run some work in a child that ends before step `at`. Returns False if the work has fewer steps."""

    def steps() -> None:
        with Faults(stop_at(at)):
            work()

    code = exit_code(forked(steps))
    assert code in (0, KILLED)
    return code == KILLED


def files_of(root: str) -> dict[str, tuple[int, int]]:
    """Return size and time of all files of a folder."""
    found = (path for path in Path(root).rglob("*") if path.is_file())
    return {str(path.relative_to(root)): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


def copy_folder(source: str, target: str) -> str:
    """Replace a folder by a copy of another folder."""
    shutil.rmtree(target, ignore_errors=True)
    return str(shutil.copytree(source, target))


def names_in_log(root: str) -> list[str]:
    """Return the kinds of the files in the log, newest entry first."""
    return [path.suffix for path in sorted(Path(root, GROUP_COMMITS).glob("*")) if "#" not in path.name]
