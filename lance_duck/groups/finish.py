"""Finishes a group: publishes all its changes, or takes all of them back.

The writer and any number of helpers may run this at the same time, and each may stop at any step: every step is a put
if absent, and is recognized afterwards by the UUID of its transaction. Changes that may conflict come first. Folders
are moved last, under a lock: see `moves`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn

from lance_duck.checksums.digests import digest
from lance_duck.commit.rebase import Affected
from lance_duck.commit.staging import StagedCommit, publish_staged, take_back, version_of
from lance_duck.errors import (
    CommitConflictError,
    CorruptError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    PartlyCommittedError,
    RetryableError,
)
from lance_duck.groups.affected import affected_rows, check_files
from lance_duck.groups.entry import GroupEntry, GroupTable
from lance_duck.groups.log import PUBLISHED, UNDO, CommitLog, LogState
from lance_duck.groups.moves import have_begun, move_all, move_back, turn
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.store import join_uri, local_path, remove_empty_folders
from lance_duck.verbs.writing.schema_compat import check_still_fits
from lance_duck.wire.manifest import parse_message
from lance_duck.wire.paths import STAGED_GROUPS
from lance_duck.wire.pb import transaction_pb2

WAIT: Final = 1.0
"""Seconds that others leave a writer to finish its group."""
_POLL: Final = 0.005
GROUP_KEY: Final = "lance_duck.group"
NUMBER_KEY: Final = "lance_duck.commit"


class GroupEnded(RetryableError):  # noqa: N818
    """Another process has decided how the group ends."""


@dataclass(frozen=True)
class StagedTable:
    """A staged change of a table, and the rows that it deletes or changes."""

    staged: StagedCommit
    affected: Affected | None


def settle(log: CommitLog, *, wait: float = WAIT) -> int:
    """Finish the newest entry if its writer does not. Returns the number of the newest entry.

    Args:
        log: The log.
        wait: Seconds that the writer has left.

    Raises:
        StoreError: The store failed.
        FormatError: The entry, or a table that it changes, cannot be read.
    """
    state = awaited(log, wait=wait)
    if not state.is_finished:
        with suppress(CommitConflictError, PartlyCommittedError):  # for the writer
            finish(log, log.read(state.number))
    return state.number


def awaited(log: CommitLog, *, wait: float = WAIT) -> LogState:
    """Wait until the newest entry is finished, or the time is over. Returns the newest entry.

    Args:
        log: The log.
        wait: Seconds that the writer has left.
    """
    state = log.state()
    end = time.monotonic() + wait
    while not state.is_finished and time.monotonic() < end:
        time.sleep(_POLL)
        state = log.state()
    return state


def finish(log: CommitLog, entry: GroupEntry, staged: Mapping[str, StagedTable] | None = None) -> dict[str, Snapshot]:
    """Publish or take back the changes of an entry, whichever is decided. May be called again and concurrently.

    Args:
        log: The log.
        entry: Its newest entry.
        staged: The staged changes by folder, if the caller has them in memory.

    Returns:
        The new versions by folder. Tables that another process has moved may be missing.

    Raises:
        CommitConflictError: The group was taken back, because another writer changed the same rows or names.
        PartlyCommittedError: It was taken back, but other writers have built on some of its versions.
        StoreError: The store failed. The group is finished later.
    """
    if log.outcome(entry.number) == UNDO:
        _undo(log, entry)
    published: dict[str, Snapshot] | None = None
    try:
        with turn(log, entry):
            if entry.moves and log.outcome(entry.number) is not None:
                raise GroupEnded("the group has ended", where=log.root)
            if not have_begun(log, entry):
                published = _publish(log, entry, staged or {})
            move_all(log, entry)
        reason = ""
    except GroupEnded:
        reason = "ended"
    except (CommitConflictError, NotFoundError, CorruptError, InvalidInputError) as error:
        reason = _without_remedy(error)
    decided = log.end(entry.number, UNDO, reason=reason) if reason else log.end(entry.number, PUBLISHED)
    if decided == UNDO:
        _undo(log, entry)
    _clean(log, entry)
    return _versions(log, entry) if published is None else published


def _publish(log: CommitLog, entry: GroupEntry, staged: Mapping[str, StagedTable]) -> dict[str, Snapshot]:
    published = {}

    def guard(newest: Snapshot) -> None:
        if log.outcome(entry.number) is not None:
            raise GroupEnded("the group has ended", where=newest.uri)

    for number, table in enumerate(entry.tables):
        change = staged.get(table.folder)
        if change is None:
            done = _done(log, table)
            if done is not None:
                published[table.folder] = done
                continue
            change = staged_table(log, entry, number)
        base = change.staged.base

        def check(newest: Snapshot, base: Snapshot = base) -> None:
            guard(newest)
            check_still_fits(base.schema, newest)

        published[table.folder] = publish_staged(change.staged, change.affected, check)
    return published


def _done(log: CommitLog, table: GroupTable) -> Snapshot | None:
    """Return the version with a change that is published already. Its base may have been removed since."""
    newest = newest_of(log, table)
    version = version_of(newest, table.base, table.transaction)
    return None if version is None else newest.checkout(version)


def staged_table(log: CommitLog, entry: GroupEntry, number: int) -> StagedTable:
    """Read a staged change.

    Raises:
        NotFoundError: The table or a staged file does not exist any more.
        CorruptError: A staged file is damaged, or another table replaced the table.
    """
    table = entry.tables[number]
    base = base_of(log, table)
    path = log.staged(entry.id, number, "txn")
    data = log.store.get(path)
    manifest = log.store.get(log.staged(entry.id, number, "manifest")) if table.whole else None
    where = f"{log.root}: {table.folder}"
    if staged_digest(base, data, manifest) != table.xxh3:
        raise CorruptError("a staged change is damaged, or another table replaced its table", where=where)
    transaction = parse_message(data, transaction_pb2.Transaction.FromString, path)
    is_known = transaction.WhichOneof("operation") is not None
    if not is_known or (transaction.uuid, transaction.read_version) != (table.transaction, base.version):
        raise CorruptError("a staged change does not match its entry", where=where)
    check_files(base, transaction)
    staged = StagedCommit(base, transaction, manifest)
    return StagedTable(staged, None if table.whole else affected_rows(base, transaction))


def staged_digest(base: Snapshot, transaction: bytes, manifest: bytes | None) -> str:
    """Return the digest of the staged files of a table, and of the name of the transaction that made `base`."""
    made_by = f"{base.manifest.transaction_name} {base.timestamp.isoformat()}".encode()
    return f"{digest(made_by + transaction + (manifest or b'')):016x}"


def base_of(log: CommitLog, table: GroupTable) -> Snapshot:
    """Open the version that a staged change follows. Raises NotFoundError."""
    return open_snapshot(join_uri(log.root, table.folder), table.base, storage_options=log.storage_options)


def newest_of(log: CommitLog, table: GroupTable) -> Snapshot:
    """Open the newest version of a table. Raises NotFoundError."""
    return open_snapshot(join_uri(log.root, table.folder), storage_options=log.storage_options)


def _undo(log: CommitLog, entry: GroupEntry) -> NoReturn:
    kept = log.undone(entry.number)
    if kept is None:
        move_back(log, entry)
        kept = {}
        for table in reversed(entry.tables):
            with suppress(NotFoundError):  # the table was dropped, and its change with it
                newest, properties = newest_of(log, table), properties_of(entry)
                version = take_back(newest, table.base, table.transaction, table.undo, properties)
                if version is not None:
                    kept[table.folder] = version
        log.put_undone(entry.number, kept)
        kept = log.undone(entry.number) or {}
    _clean(log, entry)
    raise _refusal(log, entry, kept)


def properties_of(entry: GroupEntry) -> dict[str, str]:
    """Return the properties of all transactions of a group."""
    return {GROUP_KEY: entry.id, NUMBER_KEY: str(entry.number)}


def _refusal(log: CommitLog, entry: GroupEntry, kept: Mapping[str, int]) -> CommitConflictError | PartlyCommittedError:
    reason = log.reason(entry.number)
    if not kept:
        return CommitConflictError(
            "nothing was committed, because another writer came first",
            where=log.root,
            found=reason,
            remedy="run the transaction again",
        )
    undone = [table.folder for table in entry.tables if table.folder not in kept]
    names = ", ".join(f"{folder} (version {version or 'unknown'})" for folder, version in sorted(kept.items()))
    return PartlyCommittedError(
        "the transaction is committed only in part, because other writers have built on its versions",
        where=log.root,
        found=f"in: {names}; not in: {', '.join(undone)}; {reason}",
        remedy="repeat the changes of the other tables, or undo these with new changes",
    )


def _without_remedy(error: LanceDuckError) -> str:
    """Return the message of an error of one table. Its remedy does not apply to a group."""
    return str(LanceDuckError(error.what, where=error.where, expected=error.expected, found=error.found))


def _versions(log: CommitLog, entry: GroupEntry) -> dict[str, Snapshot]:
    """Return the newest versions of the tables that another process has published, except tables that are moved."""
    found = {}
    for table in entry.tables:
        if any(f"{table.folder}/".startswith(f"{move.source}/") for move in entry.moves):
            continue
        with suppress(NotFoundError):
            found[table.folder] = newest_of(log, table)
    return found


def _clean(log: CommitLog, entry: GroupEntry) -> None:
    """Remove the staged files of a finished group, and new tables that it did not create. Never raises."""
    new = [move.source for move in entry.moves if move.source.startswith(f"{STAGED_GROUPS}/")]
    for folder in (f"{STAGED_GROUPS}/{entry.id}", *new):
        with suppress(LanceDuckError, OSError):
            log.store.delete([each.path for each in log.store.walk(folder)])
            if (path := local_path(join_uri(log.root, folder))) is not None:
                remove_empty_folders(path)
