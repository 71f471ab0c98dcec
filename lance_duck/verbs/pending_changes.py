"""Changes of one table that are made one after the other and committed atomically.

Each change creates a version in memory. Its files are on disk. The commit combines all changes. If columns do not
change, it deletes removed rows of the base version and adds the written fragments. A written fragment is rewritten
before the commit if a later change deleted some of its rows, or if it contains both moved and new rows. `altered_table`
combines changes of columns with others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.commit import same_table
from lance_duck.commit.committer import (
    DEFAULT_RETRIES,
    Amend,
    CommitAttempts,
    Guard,
    new_transaction,
    unpublished,
)
from lance_duck.commit.operations import Append, Delete, Merge, Operation, Update
from lance_duck.commit.rebase import Affected
from lance_duck.errors import InvalidInputError, LanceDuckError, RetryableError
from lance_duck.scan.blobs.copies import kept_blobs
from lance_duck.scan.projection import CREATED_AT, ROW_ID
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.altered_table import (
    amend_metadata,
    check_collectable,
    folded_columns,
    is_schema_change,
    joined_metadata,
    new_files,
)
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.find import rows_at
from lance_duck.verbs.rows.rows_moved import RowDeletion, delete_offsets, moved_rows
from lance_duck.verbs.writing.schema_compat import check_still_fits
from lance_duck.wire import flags
from lance_duck.wire.fragment import Fragment
from lance_duck.write.files import discard_fragments, write_new_fragments
from lance_duck.write.options import WriteOptions

UInt64s = NDArray[np.uint64]
_ROWS: Final = (Append, Delete, Update)
_NO_ROWS: Final = np.empty(0, np.uint64)


@dataclass(frozen=True)
class PreparedChange:
    """All changes of a table as one operation, whose files are written.

    Attributes:
        base: The version that the changes start from.
        operation: See `commit.committer.commit`, also for the following attributes.
        amend: Changes the manifest as well.
        properties: More properties of the transaction.
        retries: 0 if no other version may come between.
        affected: The rows that are deleted or changed.
        guard: Checks newer versions.
        has_guards: Whether `guard` checks more than the columns.
    """

    base: Snapshot
    operation: Operation
    amend: Amend | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    retries: int = DEFAULT_RETRIES
    affected: Affected | None = None
    guard: Guard | None = None
    has_guards: bool = False

    @property
    def follows_base_only(self) -> bool:
        """Whether only this process can rebase the operation."""
        return self.retries == 0 or self.amend is not None or self.has_guards or not isinstance(self.operation, _ROWS)

    def attempts(self, properties: Mapping[str, str], transaction: str) -> CommitAttempts:
        """Return the operation as attempts to commit it: see `commit.staging.stage`."""
        message = new_transaction(self.base.version, self.operation, {**self.properties, **properties}, transaction)
        attempts = CommitAttempts(self.base, message)
        attempts.affected, attempts.guard, attempts.amend = self.affected, self.guard, self.amend
        attempts.may_rebase = self.retries > 0
        return attempts


def commit_prepared(change: PreparedChange, draft: UncommittedFiles, properties: Mapping[str, str] | None) -> Snapshot:
    """Commit a prepared change as one version: see `PendingChanges.commit`."""
    try:
        return draft.commit(
            change.operation,
            affected=change.affected,
            guard=change.guard,
            amend=change.amend,
            properties={**(properties or {}), **change.properties},
            retries=change.retries,
        )
    except RetryableError as error:
        if change.retries:
            raise
        raise overtaken(change, error) from error


def overtaken(change: PreparedChange, error: RetryableError) -> RetryableError:
    """Return the error for a change that may only follow its base version."""
    return RetryableError(
        "another writer changed a table that the transaction altered",
        where=error.where,
        expected=f"version {change.base.version} as the newest version",
        found=error.found,
        remedy="nothing was committed: run the transaction again",
    )


class PendingChanges:
    """Uncommitted changes to the rows, columns and metadata of one table.

    Args:
        base: The version that the changes start from.

    Attributes:
        base: The version that the changes start from.
        current: The version that the changes produce, in memory.
    """

    def __init__(self, base: Snapshot) -> None:
        self.base = self.current = base
        self._fragments: list[Fragment] = []
        self._deletions: set[str] = set()
        self._guards: list[Callable[[Snapshot], None]] = []
        self._operations: list[Operation] = []
        self._follows_base_only = False
        self._is_closed = False

    @property
    def alters(self) -> bool:
        """Whether columns change."""
        return any(map(is_schema_change, self._operations))

    def collecting(self) -> Snapshot:
        """Return the version that the changes produce. Operations committed on it become further changes."""
        snapshot = self.current.sharing_files(self.current.manifest)
        snapshot.base, snapshot.collect = self.base, partial(self._collect, self.current)
        return snapshot

    def _collect(self, expected: Snapshot, operation: Operation, is_guarded: bool) -> Snapshot:
        if self._is_closed:
            raise InvalidInputError(
                "the table was dropped in its transaction, or the transaction ended", where=self.base.uri
            )
        if expected is not self.current:
            raise InvalidInputError(
                "another dataset has changed this table in the same transaction",
                where=self.base.uri,
                remedy="open the table again in the transaction, and use one dataset in one thread",
            )
        flags.check_writable(self.base.manifest.writer_flags, self.base.uri)
        check_collectable(operation)
        if isinstance(operation, Merge):
            self._fragments += new_files(self.current, operation.fragments)
        self._follows_base_only |= is_guarded
        self.apply(operation)
        return self.collecting()

    def apply(
        self, operation: Operation, guard: Callable[[Snapshot], Callable[[Snapshot], None]] | None = None
    ) -> None:
        """Apply a change on top of the previous ones.

        Args:
            operation: The change. Its files are already written.
            guard: See `RowEdits`.
        """
        if guard is not None and not self.alters:
            self._guards.append(guard(self.base))
        ids = self.current.fragments.id_set
        self.current = unpublished(self.current, operation)
        self._operations.append(operation)
        self._fragments += [fragment for fragment in self.current.fragments if fragment.id not in ids]
        self._deletions |= _deletion_files(self.current)

    def discard(self) -> None:
        """Delete all files of the changes. Never raises. Later changes raise InvalidInputError."""
        self._is_closed = True
        self._discard_but(())

    def commit(self, properties: Mapping[str, str] | None = None) -> Snapshot:
        """Commit all changes as one version, on top of concurrent commits.

        Returns:
            The new version, or the base version if nothing changed.

        Raises:
            CommitConflictError: Another writer changed the same rows, or dropped and recreated the table. If both
                columns and rows change, any version of another writer is a conflict. All changes are discarded.
        """
        with same_table(self.base), UncommittedFiles(self.base) as draft:
            change = self.prepare(draft)
            after = self.base if change is None else commit_prepared(change, draft, properties)
        self.keep(change)
        return after

    def prepare(self, draft: UncommittedFiles) -> PreparedChange | None:
        """Combine all changes into one operation, and write its files. Returns None if nothing changes.

        Args:
            draft: Records the files that are written.
        """
        if self.alters:
            folded = folded_columns(self.base, self.current, self._operations, draft)
            return PreparedChange(self.base, **vars(folded))
        metadata = joined_metadata(self._operations)
        fragments = self._added(draft)
        deletion = delete_offsets(self.base, self._affected(), draft)
        operation = _folded(self.base, fragments, deletion)
        if operation is None:
            return None if metadata is None else PreparedChange(self.base, metadata, guard=self._guard)
        draft.note_fragments(fragments)
        return PreparedChange(
            self.base,
            operation,
            amend=None if metadata is None else amend_metadata(self.base, metadata),
            retries=0 if self._follows_base_only else DEFAULT_RETRIES,
            affected=deletion.affected,
            guard=self._guard,
            has_guards=bool(self._guards),
        )

    def keep(self, change: PreparedChange | None) -> None:
        """Delete the files of the changes that a committed operation does not contain."""
        operation = None if change is None else change.operation
        if isinstance(operation, Merge):
            kept: Sequence[Fragment] = operation.fragments
        elif isinstance(operation, Append):
            kept = operation.fragments
        else:
            kept = operation.new_fragments if isinstance(operation, Update) else ()
        self._deletions -= {
            path for each in kept if each.deletion_file is not None for path in [each.deletion_file.path(each.id)]
        }
        self._discard_but(kept)

    def _guard(self, newest: Snapshot) -> None:
        check_still_fits(self.base.schema, newest)
        for guard in self._guards:
            guard(newest)

    def _affected(self) -> dict[int, NDArray[np.uint32]]:
        """Return the offsets of removed rows, by fragment of the base version."""
        now = {fragment.id: fragment for fragment in self.current.fragments}
        affected = {}
        for fragment in self.base.fragments:
            after = now.get(fragment.id)
            if after is not None and after.deletion_file == fragment.deletion_file:
                continue
            live = _live_offsets(self.base, fragment)
            if after is not None and (vector := self.current.deletion_vector(after)) is not None:
                live = live[vector.contains(live)]
            affected[fragment.id] = live.astype(np.uint32)
        return affected

    def _added(self, draft: UncommittedFiles) -> list[Fragment]:
        """Return the new fragments. Fragments with deleted rows, or with both moved and new rows, are rewritten."""
        ids = self.base.fragments.id_set
        new = [fragment for fragment in self.current.fragments if fragment.id not in ids]
        ready = [(fragment, self._ready(fragment)) for fragment in new]
        mixed = [fragment for fragment, as_committed in ready if as_committed is None]
        rows = _LiveRows(self.current, mixed, self.base.manifest.next_row_id)
        fragments: list[Fragment] = []
        if mixed:
            options = WriteOptions(
                data_storage_version=self.base.data_storage_version, committed_here=True, blobs=kept_blobs(self.base)
            )
            fragments = write_new_fragments(self.base.store, self.base.schema, rows.batches(), options)
            draft.note_fragments(fragments)
        return [*(as_committed for _, as_committed in ready if as_committed is not None), *rows.numbered(fragments)]

    def _ready(self, fragment: Fragment) -> Fragment | None:
        """Return a fragment ready to commit, or None if its rows have to be rewritten."""
        if fragment.deletion_file is not None:
            return None
        ids = self.current.row_ids(fragment)
        is_old = np.zeros(1, np.bool_) if ids is None else ids.slice(0, len(ids)) < self.base.manifest.next_row_id
        if bool(is_old.all()):
            return replace(fragment, last_updated_at=None)
        return None if bool(is_old.any()) else replace(fragment, row_ids=None, created_at=None, last_updated_at=None)

    def _discard_but(self, committed: Sequence[Fragment]) -> None:
        paths = {file.path for fragment in committed for file in fragment.files}
        unused = [f for f in self._fragments if not any(file.path in paths for file in f.files)]
        discard_fragments(self.base.store, unused)
        with suppress(LanceDuckError):
            self.base.store.delete(sorted(self._deletions - _deletion_files(self.base)))


def _folded(base: Snapshot, fragments: Sequence[Fragment], deletion: RowDeletion) -> Operation | None:
    """Return the operation that combines all changes, or None if they cancel out."""
    if not fragments:
        return Delete(deletion.updated, deletion.removed) if deletion.affected else None
    if not deletion.affected:
        return Append(tuple(fragments))
    return Update(
        removed_fragment_ids=deletion.removed,
        updated_fragments=deletion.updated,
        new_fragments=tuple(fragments),
        fields_for_preserving_frag_bitmap=[field.id for field in base.schema.walk()],
    )


def _deletion_files(snapshot: Snapshot) -> set[str]:
    files = ((fragment.deletion_file, fragment.id) for fragment in snapshot.fragments)
    return {file.path(fragment_id) for file, fragment_id in files if file is not None}


def _live_offsets(snapshot: Snapshot, fragment: Fragment) -> NDArray[np.int64]:
    rows = snapshot.physical_rows(fragment)
    vector = snapshot.deletion_vector(fragment)
    return np.arange(rows, dtype=np.int64) if vector is None else vector.live_offsets(0, rows)


class _LiveRows:
    """Live rows of some fragments. Rows that moved from the base version precede new rows."""

    def __init__(self, snapshot: Snapshot, fragments: Sequence[Fragment], first_new: int) -> None:
        self._snapshot = snapshot
        self._ids: list[UInt64s] = []
        self._created: list[UInt64s] = []
        old, new = [_NO_ROWS], [_NO_ROWS]
        for fragment in fragments:
            live = _live_offsets(snapshot, fragment)
            addresses = live.astype(np.uint64) | np.uint64(fragment.id << 32)
            ids = snapshot.row_ids(fragment)
            is_old = np.zeros(len(addresses), np.bool_) if ids is None else ids.slice(0, len(ids))[live] < first_new
            old.append(addresses[is_old])
            new.append(addresses[~is_old])
        self._old, self._new = np.concatenate(old), np.concatenate(new)

    def batches(self) -> Iterator[pa.RecordBatch]:
        names = self._snapshot.schema.names
        for batch in rows_at(self._snapshot, self._old, [*names, ROW_ID, CREATED_AT]) if len(self._old) else ():
            self._ids.append(batch.column(ROW_ID).to_numpy())
            self._created.append(batch.column(CREATED_AT).to_numpy())
            yield batch.select(names)
        if len(self._new):
            yield from rows_at(self._snapshot, self._new, names)

    def numbered(self, fragments: Sequence[Fragment]) -> Sequence[Fragment]:
        """Return the fragments of these rows, with the stable row ids of moved rows."""
        if not self._ids:
            return fragments
        return moved_rows(fragments, np.concatenate(self._ids), np.concatenate(self._created))
