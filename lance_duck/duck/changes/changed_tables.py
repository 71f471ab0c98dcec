"""Changes of tables that are committed together: in transactions, `executemany` and COPY FROM DATABASE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from lance_duck.commit import REFUSALS, same_table
from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.changes.target import dataset_of
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.errors import UnsupportedError
from lance_duck.groups.finish import finish
from lance_duck.groups.log import CommitLog
from lance_duck.groups.write import Group, GroupNames, place_of, put_group
from lance_duck.namespaces import DirectoryNamespace
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.pending_changes import PendingChanges, PreparedChange, commit_prepared
from lance_duck.verbs.rows.draft import UncommittedFiles


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
            UnsupportedError: A table of a different folder was changed before.
        """
        found = self.changed(handle)
        if found is not None:
            return found.pending
        base = handle.current().handle.base
        if self._changed:
            place_of(self._log_of(next(iter(self._changed.values()))).root, base)
        return self.begin(handle, name, base)

    def _log_of(self, first: ChangedTable) -> CommitLog:
        """Return the commit log of the folder of a table.

        Raises:
            UnsupportedError: A REST service provides the table.
        """
        home = self._catalog.home(first.handle)
        folder = None if home is None else home.folder
        if folder is None:
            parent = first.pending.base.store.uri.rstrip("/").rpartition("/")[0]
            return CommitLog(parent, first.handle.storage_options)
        if not isinstance(folder.namespace, DirectoryNamespace):
            raise UnsupportedError(
                "a transaction changes only one table of a REST service",
                where=first.name,
                remedy="COMMIT this change first, then change the other table in a new transaction",
            )
        return folder.namespace.log

    def commit(self) -> None:
        """Commit all changes: of one table as one version, of several tables as a group.

        Raises:
            CommitConflictError: Other writers changed the same rows. All changes are lost.
            PartlyCommittedError: See `groups.finish.finish`.
        """
        if self._changed:
            self.commit_with_names(None, None)

    def commit_with_names(self, names: GroupNames | None, log: CommitLog | None) -> None:
        """Commit all changes, together with changes of names. See `commit`.

        Args:
            names: The changes of names, or None.
            log: The commit log. None uses that of the tables.
        """
        changed, self._changed = list(self._changed.values()), {}
        try:
            if len(changed) == 1 and names is None:
                after = changed[0].pending.commit(self.properties)
                if after is not changed[0].pending.base:
                    changed[0].handle.move_to(after)
            else:
                _commit_together(log or self._log_of(changed[0]), changed, names, self.properties)
        except REFUSALS:
            for each in changed:
                each.pending.discard()
            raise

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


def _commit_together(
    log: CommitLog, changed: Sequence[ChangedTable], names: GroupNames | None, properties: Mapping[str, str] | None
) -> None:
    """Commit changes of several tables and names as a group."""
    put = None
    versions: Mapping[str, Snapshot] = {}
    with ExitStack() as stack:
        prepared: list[tuple[ChangedTable, PreparedChange, UncommittedFiles]] = []
        for table in changed:
            stack.enter_context(same_table(table.pending.base))
            files = stack.enter_context(UncommittedFiles(table.pending.base))
            change = table.pending.prepare(files)
            if change is not None:
                prepared.append((table, change, files))
        if names is not None or len(prepared) > 1:
            for _, _, files in prepared:
                files.commit_elsewhere()
            put = put_group(log, Group([change for _, change, _ in prepared], names, properties))
        for table, change, files in prepared if put is None else ():
            versions = {place_of(log.root, table.pending.base): commit_prepared(change, files, properties)}
    if put is not None:
        versions = finish(log, *put)
        log.remove_old()
    for table, change, _ in prepared:
        table.pending.keep(change)
        after = versions.get(place_of(log.root, table.pending.base))
        if after is not None:
            table.handle.move_to(after)
