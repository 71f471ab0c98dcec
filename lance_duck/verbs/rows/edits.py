"""Row edits by address: deletions, new values and insertions, all in one version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.commit.operations import Append, Delete, Operation, Update
from lance_duck.encoding.arrow.gather import as_batches, combined, take_rows
from lance_duck.scan.blobs.copies import kept_blobs
from lance_duck.scan.projection import CREATED_AT, ROW_ADDRESS, ROW_ID
from lance_duck.snapshot import Snapshot, derived
from lance_duck.verbs.costs import ROWS_AT_ONCE
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.find import rows_at
from lance_duck.verbs.rows.rows_moved import RowDeletion, delete_addresses, moved_rows
from lance_duck.wire.fragment import Fragment
from lance_duck.write.files import write_new_fragments
from lance_duck.write.options import WriteOptions

NO_ROWS: Final = np.empty(0, np.uint64)
Addresses = NDArray[np.uint64]


@dataclass(frozen=True)
class RowEdits:
    """Row edits of a table version.

    Attributes:
        deleted: Distinct addresses of rows to delete; uint64.
        updated: Distinct addresses of rows to update; uint64. Disjoint from `deleted`.
        values: New values by column, in the order of `updated`. All other columns keep their values.
        old_values: Known values of other columns, in the same order. They are not read from the table.
        inserted: New rows. Missing columns are null.
        guard: Function that takes the version that the edits start from and returns a guard. The guard rejects newer
            versions that contain keys of the new rows. None if keys are not checked.
    """

    deleted: Addresses = field(default_factory=NO_ROWS.copy)
    updated: Addresses = field(default_factory=NO_ROWS.copy)
    values: pa.Table | None = None
    old_values: pa.Table | None = None
    inserted: pa.Table | None = None
    guard: Callable[[Snapshot], Callable[[Snapshot], None]] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the edits are empty."""
        return not (len(self.deleted) or len(self.updated) or (self.inserted is not None and self.inserted.num_rows))


@dataclass(frozen=True)
class WrittenEdits:
    """Edits whose files are written but not committed.

    Attributes:
        operation: The operation to commit.
        affected: Offsets of moved or deleted rows, by fragment.
    """

    operation: Operation
    affected: Mapping[int, NDArray[np.uint32]]


def edit_rows(
    snapshot: Snapshot,
    edits: RowEdits,
    predicate: str = "",
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """Write the edits of a version and commit them.

    Args:
        snapshot: The version that the addresses refer to.
        edits: The edits.
        predicate: The user's condition, as SQL. Stored with a delete.
        properties: Properties of the transaction.

    Raises:
        InvalidInputError: Values do not fit their columns.
        RetryableError: Another change was committed first.
    """
    with UncommittedFiles(snapshot) as draft:
        result = write_edits(snapshot, edits, draft, predicate)
        guard = None if edits.guard is None else edits.guard(snapshot)
        return draft.commit(result.operation, affected=result.affected, properties=properties, guard=guard)


def write_edits(snapshot: Snapshot, edits: RowEdits, draft: UncommittedFiles, predicate: str = "") -> WrittenEdits:
    """Write the files of edits. See `edit_rows`."""
    if derived.computed_columns(snapshot.schema):
        tables = [table for table in (edits.values, edits.inserted) if table is not None]
        derived.warn_of_computed(snapshot, {n for t in tables for n in t.column_names if t[n].null_count < len(t)})
    rows = _MovedRows(snapshot, edits)
    fragments: Sequence[Fragment] = ()
    if len(edits.updated) or edits.inserted is not None:
        options = WriteOptions(
            data_storage_version=snapshot.data_storage_version, committed_here=True, blobs=kept_blobs(snapshot)
        )
        files = write_new_fragments(snapshot.store, snapshot.schema, rows.batches(), options)
        draft.note_fragments(files)
        fragments = rows.numbered(files)
    deletion = delete_addresses(snapshot, np.concatenate([edits.deleted, edits.updated]), draft)
    return WrittenEdits(_operation(snapshot, edits, fragments, deletion, predicate), deletion.affected)


def _operation(
    snapshot: Snapshot, edits: RowEdits, fragments: Sequence[Fragment], deletion: RowDeletion, predicate: str
) -> Operation:
    if not fragments:
        return Delete(deletion.updated, deletion.removed, predicate)
    if not deletion.count:
        return Append(tuple(fragments))
    names = snapshot.schema.names if edits.inserted is not None or edits.values is None else edits.values.column_names
    fields = [top for top in snapshot.schema.fields if top.name in names]
    return Update(
        removed_fragment_ids=deletion.removed,
        updated_fragments=deletion.updated,
        new_fragments=tuple(fragments),
        fields_for_preserving_frag_bitmap=[below.id for top in fields for below in top.walk()],
    )


class _MovedRows:
    """The rows that edits write: updated rows in address order, then inserted rows."""

    def __init__(self, snapshot: Snapshot, edits: RowEdits) -> None:
        self._snapshot = snapshot
        self._order = np.argsort(edits.updated, kind="stable")
        self._addresses = edits.updated[self._order]
        self._edits = edits
        self._lineage = [ROW_ID, CREATED_AT] if snapshot.has_stable_row_ids else []
        self._ids: list[NDArray[np.uint64]] = [NO_ROWS]
        self._created: list[NDArray[np.uint64]] = [NO_ROWS]

    def batches(self) -> Iterator[pa.RecordBatch]:
        if len(self._addresses):
            yield from self._updated()
        if self._edits.inserted is not None:
            yield from self._edits.inserted.to_batches()

    def numbered(self, fragments: Sequence[Fragment]) -> Sequence[Fragment]:
        """Return the fragments of these rows, with the stable row ids of moved rows."""
        if not self._lineage:
            return fragments
        return moved_rows(fragments, np.concatenate(self._ids), np.concatenate(self._created))

    def _updated(self) -> Iterator[pa.RecordBatch]:
        values = self._known()
        names = self._snapshot.schema.names
        others = [name for name in names if name not in values.column_names]
        if not others and not self._lineage:
            yield from values.select(names).to_batches(max_chunksize=ROWS_AT_ONCE)
            return
        start = 0
        for batch in rows_at(self._snapshot, self._addresses, [*others, *self._lineage, ROW_ADDRESS]):
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            for name, numbers in zip(self._lineage, (self._ids, self._created), strict=False):
                numbers.append(columns[name].to_numpy())
            piece = values.slice(start, batch.num_rows)
            start += batch.num_rows
            columns |= dict(zip(values.column_names, piece.columns, strict=True))
            yield from as_batches(pa.table({name: columns[name] for name in names}))

    def _known(self) -> pa.Table:
        """Return the new values and the known old values in one table, in address order."""
        values, old_values = self._edits.values, self._edits.old_values
        assert values is not None
        for name, column in () if old_values is None else zip(old_values.column_names, old_values.columns, strict=True):
            if name not in values.column_names:
                values = values.append_column(name, column)
        if not bool(np.all(self._order[1:] > self._order[:-1])):
            values = take_rows(values, self._order)
        return combined(values)
