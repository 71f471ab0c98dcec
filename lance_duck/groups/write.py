"""Commits a group of changes: stages them, adds an entry to the log, and finishes the entry."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol
from uuid import uuid4

from lance_duck import interrupts
from lance_duck.commit.committer import CommitAttempts
from lance_duck.commit.staging import StagedCommit, stage
from lance_duck.errors import AlreadyExistsError, CommitConflictError, LanceDuckError, StoreError, UnsupportedError
from lance_duck.groups.entry import FolderMove, GroupEntry, GroupTable
from lance_duck.groups.finish import GROUP_KEY, NUMBER_KEY, StagedTable, settle, staged_digest
from lance_duck.groups.log import CommitLog
from lance_duck.retry import RetryPolicy
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.store.base import normal_path
from lance_duck.version import __version__

_RETRIES: Final = 30


class TableChange(Protocol):
    """A change of one table whose files are written."""

    @property
    def base(self) -> Snapshot:
        """The version that the change starts from."""

    @property
    def follows_base_only(self) -> bool:
        """Whether only this process can rebase the change."""

    def attempts(self, properties: Mapping[str, str], transaction: str) -> CommitAttempts:
        """Return the change as attempts to commit it."""


class GroupNames(Protocol):
    """Changes of names that are committed with changes of tables.

    Attributes:
        moves: Folders of the root that change their names.
    """

    moves: Sequence[FolderMove]

    def check(self) -> None:
        """Check the changes before each attempt. Raises CommitConflictError."""

    def prepare(self) -> TableChange | None:
        """Return the change of the table of names for one attempt, or None."""

    def keep_files(self) -> None:
        """Keep the files of new tables, unless the commit is refused. Called before the entry is put."""


@dataclass(frozen=True)
class Group:
    """The changes of a group.

    Attributes:
        changes: Changes of tables.
        names: Changes of names, or None.
        properties: Properties of all transactions.
    """

    changes: Sequence[TableChange]
    names: GroupNames | None = None
    properties: Mapping[str, str] | None = None


def relative_folder(root: str, snapshot: Snapshot) -> str:
    """Return the folder of a table, relative to the root of a database.

    Raises:
        UnsupportedError: The table is in another folder.
    """
    start, path = (each.rstrip("/") for each in (root, snapshot.store.uri))
    if (local := local_path(start)) is not None:
        start, path = os.path.abspath(local), local_path(path) or path
    if not path.startswith(f"{start}/"):
        raise UnsupportedError(
            "a transaction changes tables of one folder",
            where=snapshot.uri,
            expected=f"a table below {root}",
            remedy="COMMIT the changes of the other tables first",
        )
    return normal_path(path.removeprefix(f"{start}/"), root)


def put_group(log: CommitLog, group: Group) -> tuple[GroupEntry, dict[str, StagedTable]] | None:
    """Stage the changes of a group and add its entry to the log. From then on, `finish` decides.

    Returns:
        The entry and the staged changes by folder. None if nothing changes.

    Raises:
        CommitConflictError: Another writer changed the same rows or names. Nothing was committed.
        StoreError: The store failed, and the entry does not exist.
    """

    def attempt(_: int) -> tuple[GroupEntry, dict[str, StagedTable]] | None:
        number = settle(log) + 1
        if group.names is not None:
            group.names.check()
        return _put(log, group, number)

    try:
        return RetryPolicy(_RETRIES).run(attempt, AlreadyExistsError)
    except AlreadyExistsError as error:
        raise CommitConflictError(
            "other transactions of several tables were faster in all attempts",
            where=log.root,
            remedy="nothing was committed: run the transaction again",
        ) from error


def _put(log: CommitLog, group: Group, number: int) -> tuple[GroupEntry, dict[str, StagedTable]] | None:
    moves = () if group.names is None else tuple(group.names.moves)
    names = None if group.names is None else group.names.prepare()
    changes = [*group.changes, *([] if names is None else [names])]
    if not changes and not moves:
        return None
    group_id = str(uuid4())
    properties = {**(group.properties or {}), GROUP_KEY: group_id, NUMBER_KEY: str(number)}
    tables: list[GroupTable] = []
    staged: dict[str, StagedTable] = {}
    files: dict[str, bytes] = {}
    try:
        for position, change in enumerate(sorted(changes, key=lambda each: not each.follows_base_only)):
            folder = relative_folder(log.root, change.base)
            attempts = change.attempts(properties, str(uuid4()))
            ready = stage(attempts, whole=change.follows_base_only)
            staged[folder] = StagedTable(ready, attempts.affected)
            tables.append(_staged_files(log, group_id, position, folder, ready, files))
        entry = GroupEntry(
            number=number,
            id=group_id,
            time=datetime.now(UTC).isoformat(timespec="milliseconds"),
            writer=f"lance_duck {__version__}",
            tables=tuple(tables),
            moves=moves,
        )
        if group.names is not None:
            group.names.keep_files()
        interrupts.check_last()
        _put_entry(log, entry, files)
    except BaseException as error:
        if not isinstance(error, StoreError) and not (tables and _is_put(log, number, group_id)):
            _remove(log, files, staged)
        raise
    return entry, staged


def _staged_files(
    log: CommitLog, group_id: str, position: int, folder: str, ready: StagedCommit, files: dict[str, bytes]
) -> GroupTable:
    """Add the staged files of a table to `files`, by path. Returns the table's part of the entry."""
    message = ready.transaction.SerializeToString()
    files[log.staged(group_id, position, "txn")] = message
    if ready.manifest is not None:
        files[log.staged(group_id, position, "manifest")] = ready.manifest
    if ready.base.base_paths:
        ready.base.store.sync()  # the put of the entry flushes files below the root only
    return GroupTable(
        folder=folder,
        base=ready.base.version,
        transaction=ready.transaction.uuid,
        undo=str(uuid4()),
        whole=ready.manifest is not None,
        xxh3=staged_digest(ready.base, message, ready.manifest),
    )


def _put_entry(log: CommitLog, entry: GroupEntry, files: Mapping[str, bytes]) -> None:
    try:
        log.put(entry, files)
    except (AlreadyExistsError, StoreError):
        if not _is_put(log, entry.number, entry.id):
            raise


def _is_put(log: CommitLog, number: int, group_id: str) -> bool:
    """Return whether an entry exists although its put failed, because a response was lost."""
    try:
        return log.read(number).id == group_id
    except LanceDuckError:
        return False


def _remove(log: CommitLog, paths: Iterable[str], staged: Mapping[str, StagedTable]) -> None:
    """Remove the staged files of a group that has no entry. Never raises."""
    with suppress(LanceDuckError):
        log.store.delete(paths)
    for table in staged.values():
        with suppress(LanceDuckError):
            table.staged.base.store.delete(table.staged.files)


def folder_moves(root: str, moved: Sequence[tuple[str, str | None]]) -> list[FolderMove]:
    """Combine successive moves of folders on a local disk into one move for each folder.

    Args:
        root: The folder of the database.
        moved: Paths before and after each move, in order. None removes the folder.

    Raises:
        UnsupportedError: The folder is on an object store.
        CommitConflictError: A folder does not exist.
    """
    start = local_path(root)
    if moved and start is None:
        raise UnsupportedError(
            "tables of main on an object store cannot be renamed or dropped together with other changes",
            where=root,
            remedy="COMMIT first, or keep the tables in another schema, where a name is a row",
        )
    now: dict[str, str] = {}
    final: dict[str, str | None] = {}
    for before, after in moved:
        source = now.pop(before, before)
        final[source] = after
        if after is not None:
            now[after] = source
    return [_folder_move(start or "", source, target) for source, target in final.items() if source != target]


def _folder_move(root: str, source: str, target: str | None) -> FolderMove:
    def relative(path: str) -> str:
        return posixpath.relpath(local_path(path) or path, root)

    try:
        inode = os.stat(local_path(source) or source).st_ino
    except OSError as error:
        raise CommitConflictError(
            "another program has removed the folder of a table",
            where=source,
            remedy="nothing was committed: run the transaction again",
        ) from error
    return FolderMove(inode, relative(source), None if target is None else relative(target))
