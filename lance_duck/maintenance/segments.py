"""Index segments in a compaction: the fragments that they cover, and the fragments that must not be rewritten."""

from __future__ import annotations

from typing import Final

import numpy as np

from lance_duck.errors import LanceDuckError, UnsupportedError
from lance_duck.index.registry import kind_of, name_of
from lance_duck.index.reuse import reuse_of
from lance_duck.maintenance.options import CompactionOptions
from lance_duck.rows import fragments_in_bitmap
from lance_duck.rows.address_map import FragmentIds
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.overlays import without_overlaid
from lance_duck.wire.index import SYSTEM, IndexMetadata

# Kinds whose unreadable segments can be deferred, because pylance 14 rewrites them correctly after rows moved.
# Full-text and n-gram indexes would lose rows, so fragments under their unreadable segments are not rewritten.
_DEFERRED: Final = frozenset({"vectorindexdetails"})
_GRAPHS: Final = "HNSW"


def check_deferrable(snapshot: Snapshot, options: CompactionOptions) -> None:
    """Raise UnsupportedError if remapping is deferred for a table with stable row ids, which never need remapping."""
    if options.defer_index_remap and snapshot.has_stable_row_ids:
        raise UnsupportedError(
            "defer_index_remap is not supported for tables with stable row ids",
            where=snapshot.uri,
            remedy="leave it out: stable row ids do not need remapping",
        )


def kept_fragments(snapshot: Snapshot, options: CompactionOptions) -> set[int]:
    """Return the ids of fragments that must not be rewritten, because a segment over them cannot be remapped.

    This package does not support the kind of such segments. The set is empty if indexes are deferred, or not remapped.
    """
    if snapshot.has_stable_row_ids or options.defer_index_remap or not options.remap_indices:
        return set()
    ids: set[int] = set()
    for segment in snapshot.indices:
        if segment.name in SYSTEM or kind_of(segment.details_type or "", segment.details) or is_deferrable(segment):
            continue
        if segment.fragment_bitmap is None:
            return set(snapshot.fragments.ids())
        ids.update(covered_fragments(snapshot, segment).tolist())
    return ids


def covered_fragments(snapshot: Snapshot, segment: IndexMetadata) -> FragmentIds:
    """Return the ids of the fragments that a segment lists, even if they no longer exist. Empty if unknown.

    Fragments with an overlay that is newer than the segment are excluded.
    """
    if segment.fragment_bitmap is None:
        return np.empty(0, np.uint32)
    try:
        ids = fragments_in_bitmap(segment.fragment_bitmap, f"fragments of index {segment.name!r}")
        reuse = reuse_of(snapshot)
    except LanceDuckError:
        return np.empty(0, np.uint32)
    ids = ids if reuse is None else reuse.coverage(ids)
    fields = [field for field in snapshot.schema.walk() if field.id in segment.fields]
    return without_overlaid(
        snapshot, {each.id for field in fields for each in field.walk()}, segment.dataset_version, ids
    )


def is_deferrable(segment: IndexMetadata) -> bool:
    """Return whether a segment that cannot be rewritten here can be deferred to the fragment reuse index.

    Graph indexes cannot be deferred, because pylance 14 rejects graphs with missing rows.
    """
    if _GRAPHS in (name_of(segment.details_type or "", segment.details) or ""):
        return False
    return (segment.details_type or "").rpartition("/")[2].rpartition(".")[2].lower() in _DEFERRED
