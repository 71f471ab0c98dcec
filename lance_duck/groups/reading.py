"""One state of all tables of a folder, for a statement or a transaction.

The state is the number of a finished entry of the commit log. A table is read at its newest version, unless a later
group changes it: then at the version before that change. The log is read after the table, so that no part of a later
group is missed. A table cannot be read if a later group renames or drops it, because its name is then another table.

A statement lists the names of the folder first. Its state is that of the names, so that a name never refers to a table
of another state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from lance_duck.commit.staging import version_before
from lance_duck.errors import FormatError, NotFoundError, RetryableError, StoreError, warn_of_table
from lance_duck.groups.entry import GroupEntry
from lance_duck.groups.finish import settle
from lance_duck.groups.log import CommitLog
from lance_duck.groups.moves import have_begun
from lance_duck.groups.write import relative_folder
from lance_duck.snapshot import Snapshot

NAMES: Final = "__manifest"
"""The table of names: see `namespaces.listing`."""
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

    def begin(self, log: CommitLog) -> None:
        """Choose the state of a folder now, before its names are looked up."""
        if log.root not in self._numbers:
            self._numbers[log.root] = settled_state(log)

    def check_names(self, log: CommitLog, *, moves: bool) -> None:
        """Check that the names that were looked up after `begin` are those of the state.

        Args:
            log: The log.
            moves: Whether folders must keep their names, too. `version` checks the folder of a table.

        Raises:
            RetryableError: A later group changes names.
        """
        number = self._numbers[log.root]
        if log.state().number == number:
            return
        for entry in log.entries_after(number):
            if (moves and entry.moves) or entry.change_of(NAMES) is not None:
                raise RetryableError(
                    "another writer changed names after the transaction began",
                    where=log.root,
                    remedy="run the transaction again",
                )

    def version(self, log: CommitLog, find: Callable[[], Snapshot], listed: int | None = None) -> int | None:
        """Find the newest version of a table. Return the version to read instead, or None.

        Args:
            log: The log of the table's folder.
            find: Opens the newest version. Called again after an unfinished group was finished.
            listed: The state of which the statement has listed the names. None if it did not list names.

        Raises:
            RetryableError: A later group renames or drops the table, or another table has got its name.
        """
        if log.root not in self._numbers and log.may_exist and log.root not in self._first:
            self._numbers[log.root] = settled_state(log) if listed is None else listed
        newest = find()
        if log.root not in self._numbers:
            if self._first.setdefault(log.root, newest) is newest:
                return None
            if log.state().number == 0:
                self._numbers[log.root] = 0
                return None
            number = settled_state(log)
            self._numbers[log.root] = _number_in(log, number, self._first[log.root])
            newest = find()
        number = self._numbers[log.root]
        if log.state().number == number:
            return None
        try:
            folder = relative_folder(log.root, newest)
            entries = list(log.entries_after(number))
            _check_moves(log, entries, folder)
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
        entry = log.read(number)
        _check_moves(log, [entry], folder)
        change = entry.change_of(folder)
        if change is not None and version_before(snapshot, change.base, (change.transaction,)) is not None:
            return number
    return 0


def _check_moves(log: CommitLog, entries: Iterable[GroupEntry], folder: str) -> None:
    """Raise an error if groups move the folder of a table, or another folder to its place.

    The table was opened before. The moves of a group that never ends are no obstacle if they have not begun.
    """
    for entry in entries:
        names = [name for move in entry.moves for name in (move.source, move.target) if name is not None]
        if not any(f"{folder}/".startswith(f"{name}/") for name in names):
            continue
        if have_begun(log, entry) or log.outcome(entry.number) is not None:
            raise RetryableError(
                "another writer renamed or dropped tables after the transaction began",
                where=f"{log.root}/{folder}",
                remedy="run the transaction again",
            )


def settled_state(log: CommitLog) -> int:
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
        number = settled_state(log) if existed else 0
        found = listing()
        is_new = log.may_exist and not existed
        if not log.may_exist or (not is_new and log.state().number <= number + (not log.may_finish)):
            break
    return found, number
