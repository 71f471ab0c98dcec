"""Repair: commits versions without unreadable rows and index segments, and renames list items.

Imported only when a repair runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lance_duck.commit import commit
from lance_duck.commit.operations import CreateIndex, Delete, Project
from lance_duck.rows import DeletionVector
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.rows_moved import delete_offsets
from lance_duck.wire.files.overlay import Overlay
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.index import IndexMetadata
from lance_duck.wire.schema_write import with_item_names
from lance_duck.write.deletions import write_deletions

Rows = Mapping[int, NDArray[np.uint32]]


def repair(
    snapshot: Snapshot,
    rows: Rows,
    restored: Collection[int],
    segments: Sequence[IndexMetadata],
    overlays: Mapping[int, Sequence[Overlay]],
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """Commit a version without damaged index segments, then one without lost rows. Skips empty steps.

    Args:
        snapshot: The newest version.
        rows: Ascending offsets of live rows to remove, by fragment.
        restored: Ids of fragments whose deletion file is lost. All rows of these fragments are restored, except those
            in `rows`.
        segments: Index segments to remove.
        overlays: Overlays to remove, by fragment. The rows that they cover are deleted or listed in `rows`.
        properties: Properties of the transactions.

    Returns:
        The last version.

    Raises:
        RetryableError: Another change was committed first.
    """
    if segments:
        snapshot = commit(snapshot, CreateIndex((), tuple(segments)), properties=properties)
    if not rows and not restored and not overlays:
        return snapshot
    with UncommittedFiles(snapshot) as draft:
        others = {number: offsets for number, offsets in rows.items() if number not in restored}
        deletion = delete_offsets(snapshot, others, draft)
        fragments, empty_ids = list(deletion.updated), list(deletion.removed)
        for number in restored:
            fragment = replace(snapshot.fragment(number), deletion_file=None)
            lost = rows.get(number)
            if lost is not None and len(lost) >= fragment.physical_rows:
                empty_ids.append(number)
                continue
            if lost is not None and len(lost):
                file = write_deletions(snapshot.store, number, snapshot.version, DeletionVector(lost))
                draft.note(file.path(number))
                fragment = replace(fragment, deletion_file=file)
            fragments.append(fragment)
        ids = {fragment.id for fragment in fragments}.union(empty_ids)
        fragments += [snapshot.fragment(number) for number in overlays if number not in ids]
        fragments = [_without(fragment, overlays.get(fragment.id, ())) for fragment in fragments]
        operation = Delete(fragments, empty_ids, "rows that cannot be read")
        return draft.commit(operation, affected=deletion.affected, properties=properties)


def rename_items(snapshot: Snapshot) -> Snapshot:
    """Commit a version in which list items with DuckDB's names are named "item". Data files and indexes stay.

    Raises:
        RetryableError: Another change was committed first.
    """
    schema = with_item_names(snapshot.schema)
    return snapshot if schema == snapshot.schema else commit(snapshot, Project(schema, preserves_nullability=True))


def _without(fragment: Fragment, overlays: Sequence[Overlay]) -> Fragment:
    return replace(fragment, overlays=tuple(o for o in fragment.overlays if o not in overlays))
