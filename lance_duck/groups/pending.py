"""Commits the pending changes of tables: of one table as one version, of several tables as a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from lance_duck.commit import REFUSALS, same_table
from lance_duck.errors import CommitConflictError, NotFoundError, StoreError
from lance_duck.groups.entry import GroupEntry
from lance_duck.groups.finish import StagedTable, finish
from lance_duck.groups.log import CommitLog
from lance_duck.groups.write import Group, GroupNames, put_group, relative_folder
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.pending_changes import PendingChanges, PreparedChange, commit_prepared
from lance_duck.verbs.rows.draft import UncommittedFiles


def commit_alone(pending: PendingChanges, properties: Mapping[str, str] | None) -> Snapshot:
    """Commit the changes of one table. They are discarded if the commit is refused."""
    try:
        return pending.commit(properties)
    except REFUSALS:
        pending.discard()
        raise


def commit_together(
    log: CommitLog,
    tables: Sequence[PendingChanges],
    names: GroupNames | None = None,
    properties: Mapping[str, str] | None = None,
) -> list[Snapshot]:
    """Commit changes of tables of one folder, and of names: all of them, or none.

    Args:
        log: The commit log of the folder.
        tables: The changes of each table. They are discarded if the commit is refused.
        names: The changes of names, or None.
        properties: Properties of all transactions.

    Returns:
        The new version of each table, or its base version if nothing changed.

    Raises:
        CommitConflictError: Other writers changed the same rows or names. Nothing was committed.
        PartlyCommittedError: Some tables have the changes, and others do not.
        StoreError: The store failed. If the entry of the log exists, the next process that opens the folder publishes
            the changes.
    """
    put = None
    versions: Mapping[str, Snapshot] = {}
    prepared: dict[str, tuple[PreparedChange, UncommittedFiles]] = {}
    folders = [relative_folder(log.root, table.base) for table in tables]
    try:
        with ExitStack() as stack:
            for folder, table in zip(folders, tables, strict=True):
                stack.enter_context(same_table(table.base))
                files = stack.enter_context(UncommittedFiles(table.base))
                if (change := table.prepare(files)) is not None:
                    prepared[folder] = change, files
            if names is not None or len(prepared) > 1:
                for _, files in prepared.values():
                    files.commit_elsewhere()
                put = put_group(log, Group([change for change, _ in prepared.values()], names, properties))
            else:
                versions = {
                    folder: commit_prepared(change, files, properties) for folder, (change, files) in prepared.items()
                }
    except (*REFUSALS, NotFoundError) as error:
        for table in tables:
            table.discard()
        if isinstance(error, NotFoundError):
            raise CommitConflictError(
                "nothing was committed, because another writer has dropped a table",
                where=error.where,
                found=error.what,
                remedy="run the transaction again",
            ) from error
        raise
    if put is not None:
        versions = _published(log, *put)
        log.remove_old()
    for folder, table in zip(folders, tables, strict=True):
        table.keep(prepared[folder][0] if folder in prepared else None)
    return [versions.get(folder, table.base) for folder, table in zip(folders, tables, strict=True)]


def _published(log: CommitLog, entry: GroupEntry, staged: Mapping[str, StagedTable]) -> Mapping[str, Snapshot]:
    """Finish a new entry: see `finish`."""
    try:
        return finish(log, entry, staged)
    except StoreError as error:
        raise StoreError(
            f"the commit is decided, but not finished: {error.what}",
            where=error.where,
            expected=error.expected,
            found=error.found,
            remedy="do not repeat it: the next statement on the folder publishes all changes, or none after a conflict",
        ) from error
