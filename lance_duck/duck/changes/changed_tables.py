"""Changes of tables that are committed together: in transactions, `executemany` and COPY FROM DATABASE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.changes.target import dataset_of
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.errors import UnsupportedError
from lance_duck.groups.log import CommitLog
from lance_duck.groups.pending import commit_alone, commit_together
from lance_duck.groups.write import GroupNames
from lance_duck.namespaces import DirectoryNamespace
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.pending_changes import PendingChanges


@dataclass(frozen=True)
class ChangedTable:
    """A table with changes that are not committed yet.

    Attributes:
        handle: The table.
        name: Its unqualified name.
        pending: The changes.
    """

    handle: TableHandle
    name: str
    pending: PendingChanges

    @property
    def dataset(self) -> LanceDataset:
        """The version in memory."""
        return dataset_of(self.pending.current)


class TransactionBlock:
    """Changes of tables of one folder that are not committed yet.

    Attributes:
        properties: Transaction properties to store with the commit.
    """

    def __init__(self, catalog: TableCatalog) -> None:
        self.properties: Mapping[str, str] | None = None
        self._catalog = catalog
        self._changed: dict[str, ChangedTable] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no table was changed."""
        return not self._changed

    def begin(self, handle: TableHandle, name: str, base: Snapshot) -> PendingChanges:
        """Start collecting changes of a table."""
        changed = self._changed[handle.place] = ChangedTable(handle, name, PendingChanges(base))
        return changed.pending

    def changed(self, handle: TableHandle) -> ChangedTable | None:
        """Return the changes of a table, or None."""
        return self._changed.get(handle.place)

    def changes_of(self, handle: TableHandle, name: str) -> PendingChanges:
        """Return the pending changes of a table. They are based on the version that the transaction reads.

        Raises:
            UnsupportedError: A table or name of a different folder was changed before.
        """
        found = self.changed(handle)
        if found is not None:
            return found.pending
        base = handle.current().handle.base
        log = self.log()
        other = None if log is None else self._log_of(handle, name, base)
        if log is not None and other is not None and log.store.uri != other.store.uri:
            raise UnsupportedError(
                "a transaction changes tables of one folder",
                where=name,
                expected=f"a table of {log.root}",
                found=f"a table of {other.root}",
                remedy="COMMIT first, then change the other table in a new transaction",
            )
        return self.begin(handle, name, base)

    def log(self) -> CommitLog | None:
        """Return the commit log of the folder of the earlier changes. Returns None before the first change.

        Raises:
            UnsupportedError: A REST service provides the table.
        """
        first = next(iter(self._changed.values()), None)
        return None if first is None else self._log_of(first.handle, first.name, first.pending.base)

    def _log_of(self, handle: TableHandle, name: str, base: Snapshot) -> CommitLog:
        """Return the commit log of the folder of a table.

        Raises:
            UnsupportedError: A REST service provides the table.
        """
        home = self._catalog.home(handle)
        folder = None if home is None else home.folder
        if folder is None:
            parent = base.store.uri.rstrip("/").rpartition("/")[0]
            return CommitLog(parent, handle.storage_options)
        if not isinstance(folder.namespace, DirectoryNamespace):
            raise UnsupportedError(
                "a transaction changes only one table of a REST service",
                where=name,
                remedy="COMMIT this change first, then change the other table in a new transaction",
            )
        return folder.namespace.log

    def commit(self) -> None:
        """Commit all changes: of one table as one version, of several tables as a group.

        Raises:
            CommitConflictError: Other writers changed the same rows. All changes are lost.
            PartlyCommittedError: See `groups.pending.commit_together`.
        """
        if self._changed:
            self.commit_with_names(None, None)

    def commit_with_names(self, names: GroupNames | None, log: CommitLog | None) -> None:
        """Commit all changes, together with changes of names. See `commit`.

        Args:
            names: The changes of names, or None.
            log: The commit log. None uses that of the tables.
        """
        log = log or (self.log() if len(self._changed) > 1 else None)
        changed, self._changed = list(self._changed.values()), {}
        pending = [table.pending for table in changed]
        if log is None:
            after = [commit_alone(pending[0], self.properties)]
        else:
            after = commit_together(log, pending, names, self.properties)
        for table, version in zip(changed, after, strict=True):
            if version is not table.pending.base:
                table.handle.move_to(version)

    def discard(self) -> None:
        """Discard all changes."""
        for each in self._changed.values():
            each.pending.discard()
        self._changed.clear()

    def is_new(self, handle: TableHandle) -> bool:
        """Return whether the transaction has created a table. Such a table has a version for each statement."""
        return False

    def show_columns(self, handle: TableHandle) -> None:
        """Show the columns and comments of a changed table, after its schema changed."""
