"""Writes the fragment reuse index: see `index.reuse`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.reuse import FragmentIds, Reuse, ReuseVersion, reuse_entry, reuse_of
from lance_duck.rows import fragments_in_bitmap, roaring_bytes
from lance_duck.rows.address_map import MovedGroup, join_runs, live_runs
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import treemap
from lance_duck.snapshot import Snapshot
from lance_duck.wire import paths
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.index import FRAGMENT_REUSE, SYSTEM, index_to_proto
from lance_duck.wire.pb import index_pb2, table_pb2

_Version = index_pb2.FragmentReuseIndexDetails.Version
_Group = index_pb2.FragmentReuseIndexDetails.Group
_Digest = index_pb2.FragmentReuseIndexDetails.FragmentDigest

LARGEST_INLINE: Final = 204_800
_TYPE_URL: Final = "/lance.table.FragmentReuseIndexDetails"
_FILE: Final = "details.binpb"


def moved_group(
    snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment], order: NDArray[np.uint64] | None = None
) -> MovedGroup:
    """Return the map of a compaction, from old to new addresses of live rows.

    Args:
        snapshot: The table version that contains the old fragments.
        old: Old fragments, in the order in which their rows were rewritten.
        new: New fragments, which already have their ids.
        order: Old addresses of the rows in their new order. None if the rows keep their order.
    """
    ids, sizes = tuple(f.id for f in old), tuple((f.id, f.physical_rows) for f in new)
    if order is not None:
        begins = np.flatnonzero(np.append(True, order[1:] != order[:-1] + np.uint64(1)))
        return MovedGroup(ids, sizes, order[begins], np.diff(np.append(begins, len(order))))
    runs = join_runs(live_runs(f.id, snapshot.physical_rows(f), _deleted(snapshot, f)) for f in old)
    return MovedGroup(ids, sizes, *runs)


def reuse_group(snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment]) -> _Group:
    """Build the protobuf message for a group of rewritten fragments. The old fragments ascend by id."""
    return _Group(
        changed_row_addrs=surviving_rows(snapshot, old),
        old_fragments=[_digest(snapshot, f) for f in old],
        new_fragments=[_digest(snapshot, f) for f in new],
    )


def surviving_rows(snapshot: Snapshot, fragments: Sequence[Fragment]) -> bytes:
    """Return the live row addresses of some fragments as a serialized treemap."""
    rows = RowSet.of_ranges((f.id, 0, snapshot.physical_rows(f)) for f in fragments)
    for fragment in fragments:
        deleted = _deleted(snapshot, fragment)
        if len(deleted):
            rows -= RowSet.of(deleted.astype(np.uint64) | np.uint64(fragment.id << 32))
    return treemap(rows)


def reuse_after(
    snapshot: Snapshot,
    segments: Iterable[table_pb2.IndexMetadata],
    present: FragmentIds,
    groups: Sequence[_Group],
    report_file: Callable[[str], None],
) -> table_pb2.IndexMetadata | None:
    """Build the fragment reuse index entry for the next version. Writes its file if the entry is large.

    Compactions that all segments have applied are dropped.

    Args:
        snapshot: The current version, before the change.
        segments: Index segments of the next version.
        present: Ids of the fragments of the next version.
        groups: Groups of fragments that the next version rewrites, and that no segment has applied.
        report_file: Called with the path of the file, if one is written.

    Returns: The new entry, or the current one if nothing changes. None if no compactions remain.

    Raises:
        LanceDuckError: The current index cannot be read.
        StoreError: The file cannot be written.
    """
    before = reuse_entry(snapshot.indices)
    reuse = reuse_of(snapshot)
    needed = [] if reuse is None else needed_versions(reuse, segments, present)
    if before is not None and reuse is not None and len(needed) == len(reuse.versions) and not groups:
        return before.proto
    versions = [v.proto for v in needed]
    if groups:
        versions.append(_Version(dataset_version=snapshot.version, groups=groups))
    return _entry(snapshot, versions, report_file) if versions else None


def needed_versions(
    reuse: Reuse, segments: Iterable[table_pb2.IndexMetadata], present: FragmentIds
) -> list[ReuseVersion]:
    """Return the compactions that some segment may still have to apply.

    A segment may need a compaction if it covers an existing fragment, and one of two conditions is met: it was built on
    the compacted version or an earlier one, or it lists a fragment that the compaction rewrote.

    Args:
        reuse: All compactions.
        segments: Index segments.
        present: Ids of the fragments of the table.
    """
    living: list[tuple[int, FragmentIds]] = []
    for segment in segments:
        if segment.name in SYSTEM or not segment.fragment_bitmap:
            continue
        try:
            ids = fragments_in_bitmap(segment.fragment_bitmap, f"fragments of index {segment.name!r}")
        except CorruptError:
            continue
        if np.isin(reuse.coverage(ids), present).any():
            living.append((segment.dataset_version, ids))
    return [
        version
        for version in reuse.versions
        if any(built <= version.dataset_version or np.isin(version.moved.old, ids).any() for built, ids in living)
    ]


def _entry(
    snapshot: Snapshot, versions: Sequence[_Version], report_file: Callable[[str], None]
) -> table_pb2.IndexMetadata:
    uuid = uuid4()
    content = index_pb2.FragmentReuseIndexDetails.InlineContent(legacy_versions=versions)
    details = index_pb2.FragmentReuseIndexDetails()
    size = content.ByteSize()
    if size > LARGEST_INLINE:
        path = f"{paths.index_directory(uuid)}/{_FILE}"
        report_file(path)
        snapshot.store.put(path, content.SerializeToString())
        details.external.path, details.external.size = _FILE, size
    else:
        details.inline.CopyFrom(content)
    new = {f.id for v in versions for group in v.groups for f in group.new_fragments}
    bitmap = roaring_bytes(np.array(sorted(new), np.uint32))
    details_any = (_TYPE_URL, details.SerializeToString())
    proto = index_to_proto(uuid, FRAGMENT_REUSE, 0, snapshot.version, bitmap, details_any, 0, ())
    proto.ClearField("fields")
    return proto


def _deleted(snapshot: Snapshot, fragment: Fragment) -> NDArray[np.uint32]:
    vector = snapshot.deletion_vector(fragment)
    return np.empty(0, np.uint32) if vector is None else vector.deleted


def _digest(snapshot: Snapshot, fragment: Fragment) -> _Digest:
    physical = snapshot.physical_rows(fragment)
    return _Digest(id=fragment.id, physical_rows=physical, num_deleted_rows=physical - snapshot.num_rows(fragment))
