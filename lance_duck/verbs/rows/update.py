"""Update: deletes matching rows and rewrites them with new values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.commit.operations import Update
from lance_duck.errors import UnsupportedError
from lance_duck.scan.blobs.copies import kept_blobs
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.projection import CREATED_AT, ROW_ADDRESS, ROW_ID
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, derived
from lance_duck.verbs.rows.assignments import Assignments
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.find import find_rows, joined_batches
from lance_duck.verbs.rows.rows_moved import RowDeletion, delete_addresses, moved_rows
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema import Field
from lance_duck.write.files import write_new_fragments
from lance_duck.write.options import Jsonb, WriteOptions


def update_rows(
    snapshot: Snapshot,
    updates: Mapping[str, str],
    where: FilterLike | None,
    data_storage_version: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> tuple[Snapshot, int]:
    """Update rows and commit.

    Args:
        snapshot: The version to start from.
        updates: SQL expressions by column.
        where: Row condition. None updates all rows.
        data_storage_version: Version of the new data files. None is the table's version.
        properties: Properties of the transaction.

    Returns:
        The new version, and the number of updated rows.

    Raises:
        InvalidInputError: The condition is invalid, or a value cannot be computed or does not fit.
        RetryableError: Another change was committed first.
    """
    options = WriteOptions(data_storage_version=data_storage_version, committed_here=True)
    with UncommittedFiles(snapshot) as draft:
        update = write_update(snapshot, updates, where, options, draft)
        return commit_update(snapshot, updates, update, draft, properties)


@dataclass(frozen=True)
class WrittenUpdate:
    """Updated rows that are written but not committed.

    Attributes:
        fragments: New fragments with the rows.
        deleted: Deletion of the rows from their old fragments.
    """

    fragments: tuple[Fragment, ...]
    deleted: RowDeletion

    @classmethod
    def joined(cls, parts: Sequence[WrittenUpdate]) -> WrittenUpdate:
        """Combine several updates of disjoint fragments."""
        fragments = tuple(fragment for part in parts for fragment in part.fragments)
        return cls(fragments, RowDeletion.joined(part.deleted for part in parts))


def write_update(
    snapshot: Snapshot,
    updates: Mapping[str, str],
    where: FilterLike | None,
    options: WriteOptions,
    draft: UncommittedFiles,
    fragments: Sequence[int] | None = None,
) -> WrittenUpdate:
    """Find the rows of an update and rewrite them.

    Args:
        snapshot: The version that is changed.
        updates: SQL expressions by column.
        where: Row condition. None updates all rows.
        options: Write options. Blobs are rewritten unchanged.
        draft: Records the files, and deletes them if the change fails.
        fragments: Ids of the fragments to search. Defaults to all.

    Raises:
        InvalidInputError: The condition is invalid, or a value cannot be computed or does not fit.
    """
    assignments = Assignments(snapshot.schema, updates)
    assignments.over(TableScan(snapshot))
    version = options.data_storage_version or snapshot.data_storage_version
    options = replace(options, data_storage_version=version, blobs=kept_blobs(snapshot), jsonb=Jsonb.TRUSTED)
    derived.warn_of_computed(snapshot, updates)
    rows = _UpdateStream(snapshot, assignments, where, fragments)
    new_fragments = write_new_fragments(snapshot.store, snapshot.schema, rows.updated(), options)
    draft.note_fragments(new_fragments)
    deletion = delete_addresses(snapshot, joined(rows.addresses, np.uint64), draft)
    if snapshot.has_stable_row_ids:
        return WrittenUpdate(
            moved_rows(new_fragments, joined(rows.ids, np.uint64), joined(rows.created, np.uint64)), deletion
        )
    return WrittenUpdate(tuple(new_fragments), deletion)


def commit_update(
    snapshot: Snapshot,
    updates: Mapping[str, str],
    update: WrittenUpdate,
    draft: UncommittedFiles,
    properties: Mapping[str, str] | None = None,
) -> tuple[Snapshot, int]:
    """Commit an update whose rows are written.

    Returns:
        The new version, and the number of updated rows.

    Raises:
        RetryableError: Another change was committed first.
    """
    deletion = update.deleted
    fields = [field for field in snapshot.schema.fields if field.name in updates]
    operation = Update(
        removed_fragment_ids=deletion.removed,
        updated_fragments=deletion.updated,
        new_fragments=update.fragments,
        fields_for_preserving_frag_bitmap=[field.id for top in fields for field in top.walk()],
    )
    return draft.commit(operation, affected=deletion.affected, properties=properties), deletion.count


class _UpdateStream:
    """Stream of the rows to update. Their old addresses are available when it ends."""

    def __init__(
        self,
        snapshot: Snapshot,
        assignments: Assignments,
        where: FilterLike | None,
        fragments: Sequence[int] | None,
    ) -> None:
        self.addresses: list[NDArray[np.uint64]] = []
        self.ids: list[NDArray[np.uint64]] = []
        self.created: list[NDArray[np.uint64]] = []
        self._assignments = assignments
        self._names = snapshot.schema.names
        self._fields = [field for field in snapshot.schema.fields if field.name in assignments.reads]
        self._hidden = [ROW_ADDRESS, *([ROW_ID, CREATED_AT] if snapshot.has_stable_row_ids else [])]
        unchanged = [name for name in self._names if name not in assignments.names]
        columns = list(dict.fromkeys([*unchanged, *assignments.reads, *self._hidden]))
        self._reader = find_rows(snapshot, where, columns, fragments, {*unchanged}.difference(assignments.reads))

    def updated(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows with their new values."""
        for batch in joined_batches(self._reader):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name, values in zip(self._hidden, (self.addresses, self.ids, self.created), strict=False):
                values.append(columns[name].to_numpy())
            columns |= self._assignments.values(readable_columns(self._fields, columns), batch.num_rows)
            yield from pa.table({name: columns[name] for name in self._names}).to_batches()


def readable_columns(fields: Sequence[Field], columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return columns in the form that expressions read. Blobs are bytes.

    Raises:
        UnsupportedError: A blob is a reference to an external file.
    """
    blobs = {field.name for field in fields if field.blob_version == 2}
    return {name: blob_bytes(column, name) if name in blobs else column for name, column in columns.items()}


def blob_bytes(column: pa.StructArray, name: str) -> pa.Array:
    """Return the bytes of the blobs in a column, which has the form that writers accept.

    Raises:
        UnsupportedError: A blob is a reference to an external file.
    """
    if column.field("uri").null_count < len(column):
        raise UnsupportedError("update cannot read blobs in external files", where=f"column {name!r}")
    return column.field("data")
