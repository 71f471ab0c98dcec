"""One state of all tables of a folder, for a statement or a transaction.

The state is the number of a finished entry of the commit log. A table is read at its newest version, unless a later
group changes it: then at the version before that change. The log is read after the table, so that no part of a later
group is missed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lance_duck.commit.staging import version_before
from lance_duck.errors import FormatError, NotFoundError, StoreError, warn_of_table
from lance_duck.groups.finish import settle
from lance_duck.groups.log import CommitLog
from lance_duck.groups.write import relative_folder
from lance_duck.snapshot import Snapshot

_T = TypeVar("_T")
_LISTINGS = 5


class ReadPoint:
    """The state of each commit log that a statement or a transaction reads."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def newest(self, log: CommitLog, find: Callable[[], _T], *, may_finish: bool) -> _T:
        """Return the newest version of a table, read after the state was chosen and before the log is read again.

        Args:
            log: The log of the table's folder.
            find: Opens the newest version.
            may_finish: Whether an unfinished group may be finished. Otherwise, the state before it is read.
        """
        newest = find()
        if log.root not in self._numbers:
            if log.state().number == 0:
                self._numbers[log.root] = 0
                return newest
            self._numbers[log.root] = settled(log, may_finish=may_finish)
            return find()
        return newest

    def version(self, log: CommitLog, newest: Snapshot) -> int | None:
        """Return the number of the version to read instead of the newest one, or None.

        Args:
            log: The log of the table's folder.
            newest: Result of `newest`.
        """
        number = self._numbers[log.root]
        if log.state().number == number:
            return None
        try:
            place = relative_folder(log.root, newest)
            changes = (entry.change_of(place) for entry in log.entries_after(number))
            change = next((change for change in changes if change is not None), None)
            return None if change is None else version_before(newest, change.base, (change.transaction, change.undo))
        except (FormatError, NotFoundError) as error:
            warn_of_table(f"{log.root}: changes of a commit of several tables may be visible in part: {error}")
            return None


def settled(log: CommitLog, *, may_finish: bool) -> int:
    """Return the number of the newest finished entry. An unfinished entry is finished first, if possible."""
    if not may_finish:
        state = log.state()
        if not state.is_finished:
            warn_of_table(f"{log.root}: a commit of several tables is not finished; the state before it is read")
        return state.finished
    try:
        return settle(log)
    except (StoreError, FormatError) as error:
        warn_of_table(
            f"{log.root}: a commit of several tables cannot be finished; the state before it is read: {error}"
        )
        return log.state().finished


def listed_once(log: CommitLog, listing: Callable[[], _T], *, may_finish: bool) -> _T:
    """Return a listing of the folder that contains the names of a group completely or not at all."""
    for _ in range(_LISTINGS):
        number = settled(log, may_finish=may_finish)
        found = listing()
        if log.state().number <= number + (not may_finish):
            break
    return found
