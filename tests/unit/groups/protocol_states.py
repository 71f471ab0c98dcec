"""The states of the model of the commit log: see `protocol_model`. Everything is a tuple.

The model knows nothing of files: a version is one mark, a group is a number.

    change    the change of a group
    fence     no change: the group was taken back before its change came
    undo      the content of an earlier version: the change of the group was taken back
    foreign   a version of a program that knows nothing of groups
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

CHANGE, FENCE, UNDO, FOREIGN = "change", "fence", "undo", "foreign"
PUBLISHED, TAKEN_BACK = 1, 2
HELPER, READER, WATCHER = -1, -2, -3
"""Processes without a group. A watcher is a reader that cannot write."""
_ROLES = {HELPER: "helper", READER: "reader", WATCHER: "watcher"}


class Mark(NamedTuple):
    """A version.

    Attributes:
        kind: See the module.
        who: The group, or the number of a foreign version.
        against: Bits of the groups that a foreign version conflicts with.
        disputed: Bits of the groups for which some processes see a conflict, and others see none.
        restored: The version whose content an undo has.
    """

    kind: str
    who: int
    against: int = 0
    disputed: int = 0
    restored: int = 0


Chain: TypeAlias = tuple[Mark, ...]
Tables: TypeAlias = tuple[Chain, ...]


class Entry(NamedTuple):
    """An entry of the log. `end` has a bit for each outcome in `.end`.

    `kept` has the tables whose change stayed, and `~table` if nobody can tell. It is None without `.undone`.
    """

    group: int
    bases: tuple[int, ...]
    end: int = 0
    kept: tuple[int, ...] | None = None


Log: TypeAlias = tuple[Entry, ...]


class Process(NamedTuple):
    """What a process does next: `step` is the name of a method of `Model`.

    `group` is the group that a writer still has to enter, or HELPER, READER or WATCHER. `at` is the position of a table
    in the group. `target` is the version to put, or the version that was read. `seen` collects bases, kept tables or
    versions that were read. `there` has the newest versions when a reader began.
    """

    step: str
    group: int
    entry: int = -1
    at: int = 0
    target: int = 0
    seen: tuple[int, ...] = ()
    there: tuple[int, ...] = ()


class State(NamedTuple):
    """Everything there is. `oldest` has the oldest version of each table that was not removed.

    The last fields count what may still happen.
    """

    tables: Tables
    log: Log
    processes: tuple[Process, ...]
    oldest: tuple[int, ...]
    foreign: int
    crashes: int
    lost: int
    cleanups: int


class Move(NamedTuple):
    """A step of one process: what it does next, or None if it ends, and what the step leaves.

    `is_settled`: the step changes nothing for others, and others cannot change its result. `is_lost`: the put
    succeeded, but its answer was lost, and the repeated put finds the name taken.
    """

    process: Process | None
    tables: Tables
    log: Log
    is_settled: bool = False
    is_lost: bool = False


class Cause(NamedTuple):
    """What leads to a state: a step, a crash, a foreign version of a table, or a cleanup."""

    kind: str
    process: Process | None = None
    table: int = 0

    def __str__(self) -> str:
        if self.process is None:
            return f"{self.kind} {self.table}"
        _, group, entry, at, target, seen, _ = self.process
        who = _ROLES.get(group, f"writer {group}")
        return f"{who}: {self.kind}, entry {entry}, table {at}, version {target}, seen {seen}"


@dataclass(frozen=True)
class Rules:
    """The rules that protect the guarantees. A test switches one of them off to show what it is for."""

    conditional_put: bool = True
    """A put of a version fails if the version exists."""
    fences: bool = True
    """A table whose change never came gets a fence."""
    fences_end: bool = True
    """A helper that reads a fence goes back to `.end`."""
    guard: bool = True
    """`.end` is read before a put onto versions that are newer than the base."""
    one_end: bool = True
    """Both outcomes have the same file."""
    finish_first: bool = True
    """A writer or reader finishes the newest entry first."""
    stage_after_finish: bool = True
    """A writer whose number is taken stages its changes again."""
    own_entry: bool = True
    """A writer whose number is taken reads whether the entry is its own."""
    table_before_log: bool = True
    """A reader reads a table before it looks at the log again."""
    first_entry: bool = True
    """A reader takes the base of the first newer entry with the table, not of the last one."""
    undo_newest_only: bool = True
    """A change that others have built on stays."""
    before_group: bool = True
    """A reader reads the version before the group's first mark, not the group's base."""
    gaps: bool = True
    """A helper that misses removed versions reads `.end`, and decides nothing else from what is left."""


@dataclass(frozen=True)
class Setup:
    """Who takes part, and what may happen to them.

    Attributes:
        groups: For each writer, the tables of its group, in order.
        strict: The tables whose change may only follow its base.
        tables: The number of tables.
        helpers: Processes that only finish the newest entry.
        readers: Processes that finish the newest entry, and then read all tables.
        watchers: Processes that read all tables without finishing anything.
        foreign: The most foreign versions. Each may come at any time, on any table.
        conflicts: The values of `Mark.against` of foreign versions.
        disputes: The values of `Mark.disputed` of foreign versions.
        crashes: How many processes may stop for ever, at any step. A new helper comes after each of them.
        lost: How many puts may succeed without the process learning it.
        cleanups: How often all versions but the newest may be removed.
        cleans_unfinished: Whether they may be removed before every entry is finished.
        every_order: Whether settled steps are also taken late.
    """

    groups: tuple[tuple[int, ...], ...] = ((0, 1),)
    strict: frozenset[int] = frozenset({0})
    tables: int = 2
    helpers: int = 0
    readers: int = 0
    watchers: int = 0
    foreign: int = 0
    conflicts: tuple[int, ...] = (0, 1)
    disputes: tuple[int, ...] = (0,)
    crashes: int = 0
    lost: int = 0
    cleanups: int = 0
    cleans_unfinished: bool = False
    every_order: bool = False
    rules: Rules = field(default_factory=Rules)


class BrokenError(Exception):
    """A guarantee does not hold. `trace` has the steps that lead there."""

    def __init__(self, guarantee: str, trace: tuple[str, ...] = ()) -> None:
        super().__init__("\n".join((guarantee, *trace)))
        self.guarantee = guarantee
        self.trace = trace


def content(chain: Chain) -> frozenset[tuple[str, int]]:
    """Return the changes that the newest version of a chain contains."""
    found: frozenset[tuple[str, int]] = frozenset()
    for mark in chain:
        if mark.kind == UNDO:
            found = content(chain[: mark.restored])
        elif mark.kind != FENCE:
            found |= {(mark.kind, mark.who)}
    return found


def foreign_in(chain: Chain) -> set[tuple[str, int]]:
    """Return the foreign versions of a chain."""
    return {(mark.kind, mark.who) for mark in chain if mark.kind == FOREIGN}


def is_of(mark: Mark, group: int) -> bool:
    """Return whether a group has put a version."""
    return mark.kind != FOREIGN and mark.who == group
