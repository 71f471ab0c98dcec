"""The commit loop: check newer versions for conflicts, rebase, publish. A lost race repeats the loop.

A commit writes these files in order: deletion files of the rebase; _transactions/{read version}-{uuid}.txn, a bare
message that the manifest repeats; and the manifest. The manifest makes the version visible: see `wire.manifest` and
`publish`.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import numpy as np

from lance_duck.arrow.distinct import intersection_of
from lance_duck.commit.conflicts import MAKE_AGAIN, check_conflict, who
from lance_duck.commit.counted import CountedCommit, note_lost_race
from lance_duck.commit.footprint import Footprint
from lance_duck.commit.index_coverage import FRAGMENT_REUSE, SYSTEM, Segments, bitmap_fragments
from lance_duck.commit.manifest_builder import build_manifest
from lance_duck.commit.manifest_draft import ManifestDraft
from lance_duck.commit.messages import set_operation
from lance_duck.commit.operations import (
    Append,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    Restore,
    Update,
)
from lance_duck.commit.races import newest_of_same_table
from lance_duck.commit.rebase import Affected, rebase
from lance_duck.commit.row_lineage import recall_created_at
from lance_duck.commit.version_files import dictionaries_of, manifest_bytes, publish
from lance_duck.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    RetryableError,
    StoreError,
    UnsupportedError,
)
from lance_duck.index.reuse import reuse_of
from lance_duck.retry import RetryPolicy
from lance_duck.rows import roaring_bytes
from lance_duck.snapshot import Snapshot, derived, mem_wal, versions
from lance_duck.snapshot.seen_versions import version_directory
from lance_duck.snapshot.turns import own_turn
from lance_duck.snapshot.with_log import refuse_change
from lance_duck.wire import flags, paths
from lance_duck.wire.index import MEM_WAL
from lance_duck.wire.manifest import Manifest, added_ids
from lance_duck.wire.manifest_write import manifest_file, stamp_writer
from lance_duck.wire.paths import ManifestName
from lance_duck.wire.pb import table_pb2, transaction_pb2

DEFAULT_RETRIES: Final = 20
_CHANGES_VALUES: Final = (Append, Update, Delete, Overwrite, Merge, Project, DataReplacement, DataOverlay, Restore)
Guard = Callable[[Snapshot], None]
Amend = Callable[[Snapshot, ManifestDraft, Callable[[str], None]], None]


def commit(
    snapshot: Snapshot,
    operation: Operation,
    *,
    affected: Affected | None = None,
    guard: Guard | None = None,
    amend: Amend | None = None,
    properties: Mapping[str, str] | None = None,
    retries: int = DEFAULT_RETRIES,
    timeout: float | None = None,
    detached: bool = False,
    transaction_uuid: str | None = None,
) -> Snapshot:
    """Commit a change as the next version of its branch.

    Args:
        snapshot: Version that the change is based on.
        operation: The change. All files that it names are already written.
        affected: Offsets of the rows that it deletes or changes, by fragment. Concurrent deletions of other rows in the
            same fragments are merged. None if unknown.
        guard: If a newer version exists, called with the newest version before the change is rebased onto it. It
            raises RetryableError to reject the change.
        amend: Called with the version that the change is applied to, with the draft of the next version, and with a
            function that records the path of each file that `amend` writes. It may modify the draft.
        properties: Key-value pairs of strings, stored in the transaction.
        retries: Maximum number of retries after lost races. 0 commits only on top of `snapshot`.
        timeout: Time limit for retries, in seconds.
        detached: Whether to create a detached version on top of `snapshot`. It is never the latest version.
        transaction_uuid: UUID of the transaction. None generates one.

    Returns:
        The new version. It is not read back from disk. If `snapshot` collects operations, it is in memory only.

    Raises:
        RetryableError: A concurrent change conflicts, or all retries lost the race. The message names the other change.
            The caller may repeat the change from the newest version.
        IncompatibleError: The change cannot be applied to newer versions, or a new table replaced this one.
        UnsupportedError: The table requires writer features that are unknown here.
        InvalidInputError: The operation is invalid for the table.
        StoreError: The disk or the service failed, and the version does not exist. On an object store, the version may
            still appear. Only a cleanup may then delete its files.
    """
    refuse_change(snapshot)
    if snapshot.collect is not None:
        if amend is not None or properties or detached:
            raise UnsupportedError(
                "one change of a transaction has no commit message, properties or conditions of its own",
                where=snapshot.uri,
                remedy="pass the message to the transaction",
            )
        return snapshot.collect(operation, guard is not None)
    if retries < 0:
        raise InvalidInputError("retries", expected="at least 0", found=retries)
    attempts = CommitAttempts(snapshot, new_transaction(snapshot.version, operation, properties, transaction_uuid))
    attempts.affected, attempts.guard, attempts.may_rebase = affected, guard, retries > 0
    attempts.amend = amend
    _warn_of_log(snapshot, operation)
    if isinstance(operation, _CHANGES_VALUES):
        derived.warn_of_view(snapshot, operation.name)
    if paths.is_detached(snapshot.version) and not detached:
        raise InvalidInputError(
            "a detached version cannot be followed by another", where=snapshot.uri, remedy="pass detached=True"
        )
    with CountedCommit(operation.name, snapshot.uri):
        return attempts.detached() if detached else _published(operation, attempts, RetryPolicy(retries, timeout))


def _published(operation: Operation, attempts: CommitAttempts, policy: RetryPolicy) -> Snapshot:
    """Return the new version, or raise the error of the last attempt."""
    try:
        return policy.run(attempts.attempt, AlreadyExistsError)
    except AlreadyExistsError as error:
        return attempts.own_or(
            RetryableError(
                f"{operation.name} lost {attempts.races} races to other writers",
                where=attempts.newest.uri,
                remedy="run it again, or allow more retries",
            ),
            error,
        )
    except CommitConflictError:
        attempts.clean_up()
        raise


def _warn_of_log(snapshot: Snapshot, operation: Operation) -> None:
    """Warn that a change does not affect rows in the write-ahead log, or that it removes the log."""
    if isinstance(operation, CreateIndex):
        if any(segment.name == MEM_WAL for segment in operation.removed_indices):
            mem_wal.warn_of_waiting_rows(snapshot, "removal of the log", removes=True)
    elif isinstance(operation, Update) and operation.compacted_sstables:
        return
    elif isinstance(operation, Overwrite | Update | Delete | DataReplacement | DataOverlay):
        mem_wal.warn_of_waiting_rows(snapshot, operation.name, removes=isinstance(operation, Overwrite))
    elif isinstance(operation, Restore) and mem_wal.has_log(snapshot):
        removes = not mem_wal.has_log(snapshot.checkout(operation.version))
        mem_wal.warn_of_waiting_rows(snapshot, operation.name, removes=removes)


def new_transaction(
    read_version: int, operation: Operation, properties: Mapping[str, str] | None, name: str | None = None
) -> transaction_pb2.Transaction:
    """Build the transaction of an operation, with a unique name."""
    transaction = transaction_pb2.Transaction(
        read_version=read_version, uuid=name or str(uuid.uuid4()), transaction_properties=dict(properties or {})
    )
    set_operation(transaction, operation)
    return transaction


def draft_of(snapshot: Snapshot) -> ManifestDraft:
    """Return the stored manifest and index segments of a version as a draft. Do not modify it.

    The bitmaps of the segments list the fragments that now contain their rows.
    """
    return ManifestDraft(snapshot.manifest.proto, _segments_of(snapshot))


def _short_draft_of(snapshot: Snapshot) -> ManifestDraft | None:
    """Return the draft for an append, with `fragment_bytes`. None if it needs to know all fragments."""
    short, names = snapshot.manifest.shortened, [segment.name for segment in snapshot.indices]
    if short is None or short.fragment_bytes is None or len(set(names)) < len(names):
        return None  # segments of an index are removed with their fragments
    return ManifestDraft(short.head, _segments_of(snapshot), (short.fragment_bytes,))


def _segments_of(snapshot: Snapshot) -> Segments:
    segments = [segment.proto for segment in snapshot.indices]
    if any(s.name == FRAGMENT_REUSE for s in segments):
        segments = _remapped_segments(snapshot, segments)
    return segments


def _remapped_segments(snapshot: Snapshot, segments: Sequence[table_pb2.IndexMetadata]) -> Segments:
    """Return segments whose bitmaps list the fragments that now contain their rows, by the fragment reuse index.

    If the fragment reuse index cannot be read, fragments that no longer exist are permanently removed from the bitmaps.
    """
    try:
        reuse = reuse_of(snapshot)
    except LanceDuckError:
        reuse = None
    present = np.array(sorted(snapshot.fragments.ids()), np.uint32)
    result = []
    for segment in segments:
        ids = None if segment.name in SYSTEM else bitmap_fragments(segment)
        if ids is not None:
            now = intersection_of(ids, present) if reuse is None else reuse.coverage(ids)
            if not np.array_equal(ids, now):
                copied = table_pb2.IndexMetadata()
                copied.CopyFrom(segment)
                copied.fragment_bitmap = roaring_bytes(now)
                segment = copied
        result.append(segment)
    return result


def unpublished(snapshot: Snapshot, operation: Operation) -> Snapshot:
    """Return the version that an operation produces, in memory only. No manifest is written.

    The version has an unused detached version number.

    Args:
        snapshot: The previous version, which may itself be in memory only.
        operation: The change. All files that it names are already written.

    Raises:
        InvalidInputError: The operation is invalid for the table.
    """
    transaction = new_transaction(snapshot.version, operation, None)
    if transaction.HasField("update") and snapshot.has_stable_row_ids:
        recall_created_at(transaction, snapshot)
    version = paths.detached_version(secrets.randbits(63))
    draft = build_manifest(draft_of(snapshot), transaction, version)
    stamp_writer(draft.manifest, max(datetime.now(UTC), snapshot.timestamp))
    values = dictionaries_of(draft, snapshot.sharing_files, snapshot)
    data = manifest_file(draft.manifest, transaction, draft.segments, dictionaries=values)
    after = snapshot.sharing_files(Manifest(f"{snapshot.store.uri} (not committed)", len(data), draft.manifest, data))
    after.base = snapshot.base or snapshot
    return after


class CommitAttempts:
    """The attempts to commit one change.

    Args:
        snapshot: Version that the change is based on.
        transaction: The change. `commit` describes the other attributes.
    """

    affected: Affected | None = None
    guard: Guard | None = None
    amend: Amend | None = None
    may_rebase = True
    races = 0

    def __init__(self, snapshot: Snapshot, transaction: transaction_pb2.Transaction) -> None:
        flags.check_writable(snapshot.manifest.writer_flags, snapshot.uri)
        self._read = snapshot
        self.newest = snapshot
        self._transaction = transaction
        self._overtook: list[tuple[int, Footprint]] = []
        self.written: list[str] = []
        if transaction.HasField("update") and snapshot.has_stable_row_ids:
            recall_created_at(transaction, snapshot)

    def attempt(self, number: int) -> Snapshot:
        """Try once to publish a version. Raises AlreadyExistsError if another commit came first."""
        self.races = number + 1
        if number:
            note_lost_race(self._read.uri)
        with own_turn(self._read.store):
            name, own = self.catch_up()
            if own is not None:
                return own
            stale = list(self.written)
            transaction = self.rebased()
            try:
                name = ManifestName(self.newest.version + 1, name.naming)
                after = self._publish(transaction, name, late=True)
                if (directory := version_directory(after.store)) is not None:
                    directory.note_published(name)
            except StoreError as error:
                return self.own_or(error)
        try:
            self.newest.store.sync()  # flushes only the name, after the lock is released
        except StoreError as error:
            return self.own_or(error)
        with suppress(LanceDuckError):
            self._read.store.delete(stale)
        return after

    def detached(self) -> Snapshot:
        """Create a detached version."""
        newest_of_same_table(self._read)
        version = paths.detached_version(secrets.randbits(63))
        return self._publish(self._transaction, ManifestName(version, 0))

    def own_or(self, error: LanceDuckError, cause: LanceDuckError | None = None) -> Snapshot:
        """Return the version of this change if it was committed but the response was lost. Otherwise, raise `error`."""
        own = None
        try:
            own = self.catch_up()[1]
        except StoreError as unknown:
            raise error if isinstance(error, StoreError) else unknown from cause
        except LanceDuckError:
            pass
        if own is not None:
            return own
        if isinstance(error, RetryableError):
            self.clean_up()
            lost = RetryableError(error.what, where=error.where, found=self._winner(), remedy=error.remedy)
            raise lost from cause
        raise error

    def clean_up(self) -> None:
        """Delete the files of an abandoned change."""
        file = paths.transaction_name(self._transaction.read_version, self._transaction.uuid)
        with suppress(LanceDuckError):
            self._read.store.delete([*self.written, paths.transaction_file(file)])

    def catch_up(self) -> tuple[ManifestName, Snapshot | None]:
        """Read concurrent commits. Returns the name of the newest version, and the version of this change, if any."""
        store = self._read.store
        latest = newest_of_same_table(self.newest)
        ours = Footprint(self._transaction, has_affected_rows=self.affected is not None)
        base = self.newest.version
        for version in range(base + 1, latest.version + 1):
            newer, theirs = self._load(ManifestName(version, latest.naming))
            if theirs is not None and theirs.transaction.uuid == self._transaction.uuid:
                return latest, newer
            if not self.may_rebase:
                raise RetryableError(
                    f"Commit conflict for version {base + 1}: {ours.kind} may only follow version {base}",
                    where=store.uri,
                    found=f"version {latest.version}",
                    remedy=MAKE_AGAIN,
                )
            check_conflict(ours, theirs, version, store.uri)
            if newer is not None and theirs is not None:
                self._overtook.append((version, theirs))
                flags.check_writable(newer.manifest.writer_flags, store.uri)
                self.newest = newer
        if latest.version > base and self.guard is not None:
            self.guard(self.newest)
        return latest, None

    def _load(self, name: ManifestName) -> tuple[Snapshot | None, Footprint | None]:
        store = self._read.store
        try:
            manifest = versions.load_version(store, name.version)
        except NotFoundError:
            return None, None
        newer = self._read.followed_by(manifest)
        transaction = newer.transaction()
        return newer, None if transaction is None else Footprint(transaction.proto)

    def rebased(self) -> transaction_pb2.Transaction:
        """Return the change as it applies to the newest version. Writes deletion files."""
        if self.newest is self._read:
            return self._transaction
        moved = {i for _, theirs in self._overtook if theirs.moves_rows for i in theirs.touched}
        written = self.written.append
        return rebase(self._transaction, self._read, self.newest, self.affected, written, self._winner, moved)

    def _winner(self, fragment_id: int | None = None) -> str | None:
        """Describe the transaction that came first. For a fragment, describe the last one that changed it."""
        for version, theirs in reversed(self._overtook):
            if fragment_id is None or fragment_id in theirs.touched:
                return who(theirs, version)
        return None

    def _publish(self, transaction: transaction_pb2.Transaction, name: ManifestName, *, late: bool = False) -> Snapshot:
        base, lock = self.newest, self._read.location.commit_lock
        draft = self.build(transaction, name)
        values = dictionaries_of(draft, base.sharing_files, base)
        manifest = publish(base.store, draft, transaction, name, base.timestamp, values, lock, late=late)
        after = base.followed_by(manifest)
        if transaction.HasField("append") and self.amend is None:
            after.fragments.follow(base.fragments, added_ids(base.manifest, manifest))
        return after

    def build(self, transaction: transaction_pb2.Transaction, name: ManifestName) -> ManifestDraft:
        """Build the version after the newest one."""
        base = self.newest
        restored = None
        if transaction.HasField("restore"):
            old = base.checkout(transaction.restore.version)
            flags.check_writable(old.manifest.writer_flags, base.uri)
            old.fragments.check_ids()
            restored = draft_of(old)
        if restored is None and transaction.WhichOneof("operation") != "overwrite":
            base.fragments.check_ids()
        short = _short_draft_of(base) if transaction.HasField("append") and self.amend is None else None
        draft = build_manifest(short or draft_of(base), transaction, name.version, restored)
        if self.amend is not None:
            self.amend(base, draft, self.written.append)
        return draft


def manifest_of_next(attempts: CommitAttempts, transaction: transaction_pb2.Transaction, naming: int) -> bytes:
    """Return the manifest file of the version that a change makes after the newest version, without writing it."""
    base = attempts.newest
    draft = attempts.build(transaction, ManifestName(base.version + 1, naming))
    values = dictionaries_of(draft, base.sharing_files, base)
    return manifest_bytes(base.store, draft, transaction, base.timestamp, values)[0]
