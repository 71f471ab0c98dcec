"""One attempt of a merge: find the rows, write them, commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from lance_duck.commit.key_filter import KeyExistenceFilter, key_filter
from lance_duck.commit.operations import REWRITE_COLUMNS, Update
from lance_duck.scan.blobs.copies import kept_blobs
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.merge.columns import check_columns, rewrite_columns
from lance_duck.verbs.merge.guard import InsertGuard
from lance_duck.verbs.merge.match import Matches, match_rows
from lance_duck.verbs.merge.plan import MergePlan
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.merge.write import in_order, new_rows
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.rows_moved import delete_addresses, moved_rows
from lance_duck.wire.schema_write import primary_key
from lance_duck.write.files import write_fragments
from lance_duck.write.options import WriteOptions


class MergeResult(TypedDict):
    """Rows that a merge inserted, updated and deleted."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


@dataclass(frozen=True)
class Merged:
    """A merge whose files are written.

    Attributes:
        operation: What is to be committed.
        affected: By fragment, the rows that leave their places; None when rows change in place.
        guard: Looks for inserted keys in newer versions; None when none is inserted.
        result: What the caller gets.
    """

    operation: Update
    affected: Mapping[int, NDArray[np.uint32]] | None
    guard: Callable[[Snapshot], None] | None
    result: MergeResult


def write_merge(
    snapshot: Snapshot, plan: MergePlan, source: MergeSource, options: WriteOptions, draft: UncommittedFiles
) -> Merged:
    """Find and write the rows of a merge.

    Raises:
        InvalidInputError: See `match_rows` and `new_rows`.
    """
    source.fit(snapshot.schema)
    stable, in_place = snapshot.has_stable_row_ids, plan.write_mode == REWRITE_COLUMNS
    if in_place:
        check_columns(plan, source)
    matches = in_order(match_rows(snapshot, plan, source), by_address=stable or not source.is_whole)
    if in_place:
        update = rewrite_columns(snapshot, plan, source, matches, options, draft)
        return Merged(update, None, None, _result(matches))
    if any(field.blob_version for top in (*source.missing, *source.partial) for field in top.walk()):
        options = replace(options, blobs=kept_blobs(snapshot))
    fragments = write_fragments(snapshot.store, snapshot.schema, new_rows(snapshot, source, matches), options)
    draft.note_fragments(fragments)
    deleted = delete_addresses(snapshot, matches.gone, draft)
    if stable:
        fragments = list(moved_rows(fragments, matches.row_ids, matches.created_at))
    changed = snapshot.schema if len(matches.inserted) else source.schema
    operation = Update(
        removed_fragment_ids=deleted.removed,
        updated_fragments=deleted.updated,
        new_fragments=fragments,
        fields_for_preserving_frag_bitmap=[field.id for field in changed.walk()],
        inserted_rows=_inserted_keys(snapshot, plan, source, matches),
    )
    return Merged(operation, deleted.affected, _guard(snapshot, plan, source, matches), _result(matches))


def _guard(
    snapshot: Snapshot, plan: MergePlan, source: MergeSource, matches: Matches
) -> Callable[[Snapshot], None] | None:
    if not len(matches.inserted):
        return None
    return InsertGuard(snapshot, source.keys_of(matches.inserted), plan.on)


def _inserted_keys(
    snapshot: Snapshot, plan: MergePlan, source: MergeSource, matches: Matches
) -> KeyExistenceFilter | None:
    """Return inserted keys, for writers that look at the transaction alone; only of merges by the primary key."""
    keys = primary_key(snapshot.schema)
    names = [field.name for field in keys]
    if not len(matches.inserted) or not keys or sorted(names) != sorted(plan.on):
        return None
    return key_filter([field.id for field in keys], source.rows(matches.inserted).select(names).columns)


def _result(matches: Matches) -> MergeResult:
    return {
        "num_inserted_rows": len(matches.inserted),
        "num_updated_rows": len(matches.updated),
        "num_deleted_rows": len(matches.deleted),
    }
