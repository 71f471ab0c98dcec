"""Groups of changes of several tables, while pylance changes the same tables between any two steps."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any

import lance
import pytest
from support.faults import Do, Faults, Plan
from unit.groups.group_tables import (
    EDITS,
    FIRST,
    OPTIONS,
    Rows,
    append,
    before,
    change_rows,
    group_of,
    make_folder,
    numbers,
    put,
)

from lance_duck.errors import CommitConflictError, NotFoundError, PartlyCommittedError, StoreError
from lance_duck.groups.finish import finish, settle
from lance_duck.groups.log import PARTLY, PUBLISHED, UNDONE, CommitLog

SEEDS = 1000 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 60
PUTS = 5
"""Puts of a group of three tables: its entry, one version for each table, and the end."""


@dataclass(frozen=True)
class Act:
    """A change by pylance.

    Attributes:
        run: Changes a table, given its path, its first id and the number of the act.
        effect: Returns the rows after the act.
        ends: Whether the table is gone, or another one, afterwards.
    """

    run: Callable[[str, int, int], object]
    effect: Callable[[Rows, int, int], Rows] = lambda rows, first, number: rows
    ends: bool = False


def set_value(rows: Rows, key: int, value: int) -> Rows:
    return [row | {"v": value if row["id"] == key else row["v"]} for row in rows]


def recreate(uri: str, first: int, number: int) -> None:
    """Create a table with as many versions in place of another one."""
    versions = lance.dataset(uri).version
    shutil.rmtree(uri)
    for each in range(versions):
        lance.write_dataset(numbers(2000 + each, 1), uri, mode="append" if each else "create")


ACTS: Mapping[str, Act] = {
    "append": Act(
        lambda uri, first, number: lance.write_dataset(numbers(1000 + number, 1), uri, mode="append"),
        lambda rows, first, number: [*rows, {"id": 1000 + number, "v": 0}],
    ),
    "update of a changed row": Act(
        lambda uri, first, number: lance.dataset(uri).update({"v": str(number)}, where=f"id = {first}"),
        lambda rows, first, number: set_value(rows, first, number),
    ),
    "update of another row": Act(
        lambda uri, first, number: lance.dataset(uri).update({"v": str(number)}, where=f"id = {first + 2}"),
        lambda rows, first, number: set_value(rows, first + 2, number),
    ),
    "deletion of a changed row": Act(
        lambda uri, first, number: lance.dataset(uri).delete(f"id = {first + 1}"),
        lambda rows, first, number: [row for row in rows if row["id"] != first + 1],
    ),
    "new column": Act(
        lambda uri, first, number: lance.dataset(uri).add_columns({f"x{number}": "id + 1"}),
        lambda rows, first, number: [row | {f"x{number}": row["id"] + 1} for row in rows],
    ),
    "overwrite": Act(
        lambda uri, first, number: lance.write_dataset(numbers(2000, 2), uri, mode="overwrite"),
        lambda rows, first, number: numbers(2000, 2).to_pylist(),
    ),
    "compaction": Act(lambda uri, first, number: lance.dataset(uri).optimize.compact_files()),
    "cleanup": Act(lambda uri, first, number: lance.dataset(uri).cleanup_old_versions(timedelta(0))),
    "drop": Act(lambda uri, first, number: shutil.rmtree(uri), ends=True),
    "drop and creation": Act(recreate, ends=True),
}


def edited(name: str, rows: Rows) -> Rows:
    """Return rows of a table after the change of the group."""
    first = FIRST[name]
    if EDITS[name] is append:
        return [*rows, {"id": first + 5, "v": 0}]
    if EDITS[name] is change_rows:
        changed = (first, first + 1, first + 3)
        return [row | {"v": row["v"] + (row["id"] in changed)} for row in rows if row["id"] != first + 4]
    return [row | {"v": row["v"] + (row["id"] == first + 4), "w": row["id"] * 2} for row in rows]


def rows_of(root: str, name: str) -> Rows | None:
    """Return the rows of a table without nulls, ordered by id, or None if it does not exist."""
    if not os.path.exists(uri := f"{root}/{name}.lance"):
        return None
    dataset = lance.dataset(uri)
    dataset.validate()
    return sorted_rows(dataset.to_table().to_pylist())


def sorted_rows(rows: Rows) -> Rows:
    """Return rows without nulls, ordered by id."""
    full = ({key: value for key, value in row.items() if value is not None} for row in rows)
    return sorted(full, key=itemgetter("id"))


class Foreign:
    """Acts of pylance on the tables of a folder, and the rows that they may lead to."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.names: list[str] = []
        self._start: dict[str, Rows | None] = {name: before(name) for name in EDITS}
        self._acts: dict[str, list[tuple[Act, int]]] = {name: [] for name in EDITS}
        self._ended: set[str] = set()

    def run(self, name: str, act: Act) -> None:
        """Change a table, if it exists."""
        if not os.path.exists(uri := f"{self.root}/{name}.lance"):
            return
        self.names.append(name)
        number = len(self.names) + 1
        act.run(uri, FIRST[name], number)
        self._acts[name].append((act, number))
        if act.ends:
            self._start[name], self._acts[name] = rows_of(self.root, name), []
            self._ended.add(name)

    def possible(self, name: str, is_in: bool, is_published: bool) -> list[Rows | None]:
        """Return the rows that a table may have, with the change of the group or without.

        The change of the group may have come before, between or after the acts. After a cleanup, a partly committed
        group may also list a table without the change.
        """
        rows, acts = self._start[name], self._acts[name]
        if rows is None or name in self._ended or not is_in:
            return [None if rows is None else self._apply(name, rows, acts)]
        places = range(len(acts) + 1)
        found = [self._apply(name, edited(name, self._apply(name, rows, acts[:at])), acts[at:]) for at in places]
        is_cleaned = any(act is ACTS["cleanup"] for act, _ in acts)
        return [*found, self._apply(name, rows, acts)] if is_cleaned and not is_published else found

    def _apply(self, name: str, rows: Rows, acts: Sequence[tuple[Act, int]]) -> Rows:
        for act, number in acts:
            rows = act.effect(rows, FIRST[name], number)
        return sorted_rows(rows)


def before_puts(act: Callable[[int], object]) -> Plan:
    """Return a plan that calls a function with the number of a put before this put."""
    puts = count()

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        if name == "link":
            act(next(puts))
        return do()

    return plan


def commit(root: str, foreign: Foreign, act: Callable[[int], object], *, is_helped: bool = False) -> str:
    """Commit a group, and call a function before each put. Check the tables, and return the outcome.

    Args:
        root: The folder.
        foreign: Acts on it.
        act: Called with the number of the put.
        is_helped: Whether another process finishes the group.
    """
    log, group, error = CommitLog(root, OPTIONS), group_of(root), None
    try:
        with Faults(before_puts(act)):
            entry, staged = put(log, group)
            if is_helped:
                settle(log, wait=0)
            finish(log, entry, None if is_helped else staged)
    except (CommitConflictError, PartlyCommittedError, NotFoundError, StoreError) as found:
        error = found
    if isinstance(error, StoreError):  # a table was dropped during a put
        settle(log, wait=0)
    outcome, names = outcome_of(CommitLog(root, OPTIONS))
    expected = {PUBLISHED: type(None), UNDONE: CommitConflictError, PARTLY: PartlyCommittedError}
    assert isinstance(error, (expected[outcome], NotFoundError, StoreError)), (outcome, error)
    for name in EDITS:
        assert rows_of(root, name) in foreign.possible(name, name in names, outcome == PUBLISHED), (outcome, name)
    assert outcome != PARTLY or len(set(foreign.names)) > 1
    return outcome


def outcome_of(log: CommitLog) -> tuple[str, set[str]]:
    """Return the outcome of a group, and the tables with its changes."""
    assert log.state().is_finished
    if log.state().number == 0:
        return UNDONE, set()
    if log.outcome(1) == PUBLISHED:
        assert log.undone(1) is None
        return PUBLISHED, set(EDITS)
    kept = log.undone(1)
    assert kept is not None
    return PARTLY if kept else UNDONE, {place.removesuffix(".lance") for place in kept}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_a_foreign_writer_between_two_steps_loses_nothing(tmp_path: Path, act: Act) -> None:
    outcomes = set()
    for name in EDITS:
        for at in range(PUTS):
            for is_helped in (False, True):
                root = str(tmp_path / f"{name} {at} {is_helped}")
                make_folder(root)
                foreign = Foreign(root)

                def run(now: int, foreign: Foreign = foreign, name: str = name, at: int = at) -> None:
                    if now == at:
                        foreign.run(name, act)

                outcomes.add(commit(root, foreign, run, is_helped=is_helped))
    assert PUBLISHED in outcomes


@pytest.mark.parametrize("seed", range(SEEDS))
def test_foreign_writers_at_random_steps_lose_nothing(tmp_path: Path, seed: int) -> None:
    rng, root = random.Random(seed), str(tmp_path)
    make_folder(root, enable_stable_row_ids=bool(seed % 2))
    foreign = Foreign(root)

    def run(now: int) -> None:
        while now < 12 and rng.random() < 0.4:
            foreign.run(rng.choice(list(EDITS)), rng.choice(list(ACTS.values())))

    commit(root, foreign, run, is_helped=rng.random() < 0.5)
