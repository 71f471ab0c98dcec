"""Commits a merge: one Update combines the results of all its parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.commit.key_filter import KeyExistenceFilter, key_filter
from lance_duck.commit.operations import Update
from lance_duck.snapshot import Snapshot, derived
from lance_duck.verbs.merge.guard import InsertGuard
from lance_duck.verbs.merge.parts import MergePart
from lance_duck.verbs.merge.plan import MergePlan, repeated_key
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.find import rows_at
from lance_duck.verbs.rows.keys import KeyIndex
from lance_duck.verbs.rows.rows_moved import Offsets, RowDeletion
from lance_duck.wire.schema_write import primary_key

MOST_KEYS: Final = 1 << 24
"""Maximum number of inserted keys that are searched in newer versions. With more keys, any newer row is a conflict."""

_UNKNOWN: Final = 1 << 16
"""Number of keys in a key filter if the keys are unknown. This filter intersects every other filter."""


class MergeResult(TypedDict):
    """Number of rows that a merge inserted, updated and deleted."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


@dataclass(frozen=True)
class WrittenMerge:
    """A merge whose files are written.

    Attributes:
        operation: The operation to commit.
        affected: Offsets of moved or deleted rows, by fragment. None if rows change in place.
        guard: Searches newer versions for inserted keys. None if the merge does not insert rows.
        result: Row counts for the caller.
        is_conditional: Whether an action of the merge has a condition.
    """

    operation: Update
    affected: Mapping[int, NDArray[np.uint32]] | None
    guard: InsertGuard | None
    result: MergeResult
    is_conditional: bool = False


def joined_parts(
    snapshot: Snapshot,
    plan: MergePlan,
    columns: Collection[str],
    parts: Sequence[MergePart],
    delete: Callable[[Offsets], RowDeletion],
) -> WrittenMerge:
    """Combine the parts of a merge.

    Args:
        snapshot: The version to merge into.
        plan: The merge.
        columns: Column names of the source.
        parts: All parts.
        delete: Writes the deletion files for moved or deleted rows.

    Raises:
        InvalidInputError: A table row matches several source rows.
    """
    lost_rows, repeated = Offsets.united([rows for part in parts for rows in (part.updated, part.deleted)])
    if repeated is not None:
        raise repeated_key(_key_text(snapshot, plan, repeated))
    deletion = delete(lost_rows)
    num_inserted = sum(part.inserted for part in parts)
    keys = _inserted_keys(parts)
    fields = [field for field in snapshot.schema.fields if num_inserted or field.name in columns]
    derived.warn_of_computed(snapshot, columns)
    operation = Update(
        removed_fragment_ids=deletion.removed,
        updated_fragments=deletion.updated,
        new_fragments=[fragment for part in parts for fragment in part.fragments],
        fields_for_preserving_frag_bitmap=[field.id for top in fields for field in top.walk()],
        inserted_rows=_key_filter(snapshot, plan, keys) if num_inserted else None,
    )
    guard = None
    if num_inserted:
        guard = InsertGuard(snapshot, None if keys is None else KeyIndex(keys.columns, plan.on), plan.on)
    result: MergeResult = {
        "num_inserted_rows": num_inserted,
        "num_updated_rows": sum(part.updated.count for part in parts),
        "num_deleted_rows": sum(part.deleted.count for part in parts),
    }
    return WrittenMerge(operation, deletion.affected, guard, result, plan.is_conditional)


def commit_merge(
    draft: UncommittedFiles, merged: WrittenMerge, properties: Mapping[str, str] | None = None
) -> tuple[Snapshot, MergeResult]:
    """Commit a merge whose files are written. A conditional merge that changes no row returns the same version.

    Args:
        draft: The draft that recorded the files. It commits them.
        merged: The merge.
        properties: Properties of the transaction.

    Raises:
        RetryableError: Another change was committed first. The merge must run again, starting with the join.
    """
    if merged.is_conditional and not any(merged.result.values()):
        return draft.snapshot, merged.result
    after = draft.commit(merged.operation, affected=merged.affected, guard=merged.guard, properties=properties)
    return after, merged.result


def merge_newest(
    snapshot: Snapshot, attempt: Callable[[Snapshot], tuple[Snapshot, MergeResult]]
) -> tuple[Snapshot, MergeResult]:
    """Run a merge attempt. If it does not create a version, run it again until it has read the newest version."""
    after, result = attempt(snapshot)
    while after is snapshot and (newest := snapshot.checkout()) is not snapshot:
        snapshot = newest
        after, result = attempt(snapshot)
    return after, result


def _inserted_keys(parts: Sequence[MergePart]) -> pa.Table | None:
    """Return the keys of all inserted rows, or None if there are too many."""
    tables = [part.keys for part in parts if part.inserted]
    key_tables = [table for table in tables if table is not None]
    if len(tables) == 1:
        return tables[0]
    if not key_tables or len(key_tables) < len(tables) or sum(table.num_rows for table in key_tables) > MOST_KEYS:
        return None
    return pa.concat_tables(key_tables).combine_chunks()


def _key_filter(snapshot: Snapshot, plan: MergePlan, keys: pa.Table | None) -> KeyExistenceFilter | None:
    """Return a filter of inserted keys for writers that only read transactions. Returns None without a primary key."""
    fields = primary_key(snapshot.schema)
    names = [field.name for field in fields]
    if not fields or sorted(names) != sorted(plan.on):
        return None
    columns = (
        [pa.nulls(_UNKNOWN, field.storage_type) for field in fields] if keys is None else keys.select(names).columns
    )
    return key_filter([field.id for field in fields], columns)


def _key_text(snapshot: Snapshot, plan: MergePlan, address: int) -> str:
    (row,) = rows_at(snapshot, np.array([address], np.uint64), plan.on)
    return ", ".join(f"{name} = {row.column(name)[0].as_py()!r}" for name in plan.on)
