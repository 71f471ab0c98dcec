"""One state of all tables of a folder, for a statement or a transaction.

The state is the number of a finished entry of the commit log. A table is read at its newest version, unless a later
group changes it: then at the version before that change. The log is read after the table, so that no part of a later
group is missed.

A statement lists the names of the folder first. Its state is that of the names, so that a name never refers to a table
of another state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from lance_duck.commit.staging import version_before
from lance_duck.errors import FormatError, NotFoundError, RetryableError, StoreError, warn_of_table
from lance_duck.groups.finish import settle
from lance_duck.groups.log import CommitLog
from lance_duck.groups.write import relative_folder
from lance_duck.snapshot import Snapshot

NAMES_CHANGED: Final = "another commit has replaced or renamed the table"
_T = TypeVar("_T")
_LISTINGS = 5


class ReadPoint:
    """The state of each commit log that a statement or a transaction reads.

    The first table is read without a look at the log if the folder had none when its names were listed. Statements that
    read one table then cost nothing more.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._first: dict[str, Snapshot] = {}

    def version(self, log: CommitLog, find: Callable[[], Snapshot], listed: int | None = None) -> int | None:
        """Find the newest version of a table. Return the version to read instead, or None.

        Args:
            log: The log of the table's folder.
            find: Opens the newest version. Called again after an unfinished group was finished.
            listed: The state of which the statement has listed the names. None if it did not list names.

        Raises:
            RetryableError: Another group has moved the folder of the table since.
        """
        if log.root not in self._numbers and log.may_exist and log.root not in self._first:
            self._numbers[log.root] = settled(log) if listed is None else listed
        newest = find()
        if log.root not in self._numbers:
            if self._first.setdefault(log.root, newest) is newest:
                return None
            if log.state().number == 0:
                self._numbers[log.root] = 0
                return None
            number = settled(log)
            self._numbers[log.root] = _number_in(log, number, self._first[log.root])
            newest = find()
        number = self._numbers[log.root]
        if log.state().number == number:
            return None
        try:
            folder = relative_folder(log.root, newest)
            entries = [*log.entries_after(number)]
            if any(folder in (move.source, move.target) for entry in entries for move in entry.moves):
                raise RetryableError(NAMES_CHANGED, where=newest.uri, remedy="run the transaction again")
            changes = (entry.change_of(folder) for entry in entries)
            change = next((change for change in changes if change is not None), None)
            return None if change is None else version_before(newest, change.base, (change.transaction, change.undo))
        except (FormatError, NotFoundError) as error:
            warn_of_table(f"{log.root}: changes of a commit of several tables may be visible in part: {error}")
            return None


def _number_in(log: CommitLog, newest: int, snapshot: Snapshot) -> int:
    """Return the number of the newest group of which a version contains a change. 0 if it contains none."""
    folder = relative_folder(log.root, snapshot)
    for number in range(newest, 0, -1):
        change = log.read(number).change_of(folder)
        if change is not None and version_before(snapshot, change.base, (change.transaction,)) is not None:
            return number
    return 0


def settled(log: CommitLog) -> int:
    """Return the number of the newest finished entry. An unfinished entry is finished first, if possible."""
    if not log.may_finish:
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


def listed_once(log: CommitLog, listing: Callable[[], _T]) -> tuple[_T, int]:
    """Return a listing of the folder that contains the names of a group completely or not at all, and its state."""
    for _ in range(_LISTINGS):
        existed = log.may_exist
        number = settled(log) if existed else 0
        found = listing()
        is_new = log.may_exist and not existed
        if not log.may_exist or (not is_new and log.state().number <= number + (not log.may_finish)):
            break
    return found, number
