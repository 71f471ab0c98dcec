"""Writing the fragment reuse index: see `index.reuse`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.reuse import Reuse, ReuseVersion, reuse_of
from lance_duck.rows import roaring_bytes, roaring_values
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
_MOST_IDS: Final = 1 << 32


def moved_group(snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment]) -> MovedGroup:
    """Say where the live rows of fragments went.

    Args:
        snapshot: Version that the old fragments are of.
        old: In the order in which their rows were written anew.
        new: With their ids.
    """
    runs = join_runs(live_runs(f.id, snapshot.physical_rows(f), _deleted(snapshot, f)) for f in old)
    return MovedGroup(tuple(f.id for f in old), tuple((f.id, f.physical_rows) for f in new), *runs)


def reuse_group(snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment]) -> _Group:
    """Build the message that says where the live rows of fragments went; the old fragments ascend."""
    rows = RowSet.of_ranges((f.id, 0, snapshot.physical_rows(f)) for f in old)
    for fragment in old:
        deleted = _deleted(snapshot, fragment)
        if len(deleted):
            rows -= RowSet.of(deleted.astype(np.uint64) | np.uint64(fragment.id << 32))
    return _Group(
        changed_row_addrs=treemap(rows),
        old_fragments=[_digest(snapshot, f) for f in old],
        new_fragments=[_digest(snapshot, f) for f in new],
    )


def extended_reuse(
    snapshot: Snapshot, groups: Iterable[_Group], written: Callable[[str], None]
) -> table_pb2.IndexMetadata:
    """Build the entry of a fragment reuse index with one more version; a large one writes its file.

    Versions that no segment needs any more are left out.

    Args:
        snapshot: Version that the compaction is put on top of.
        groups: What it moved.
        written: Is told the path of the file, if there is one.

    Raises:
        LanceDuckError: The index that is there cannot be read.
        StoreError: The file cannot be written.
    """
    kept = needed_versions(snapshot, reuse_of(snapshot))
    versions = [*(v.proto for v in kept), _Version(dataset_version=snapshot.version, groups=groups)]
    return _entry(snapshot, versions, written)


def trimmed_reuse(
    snapshot: Snapshot, written: Callable[[str], None] = lambda _: None
) -> tuple[table_pb2.IndexMetadata | None, bool]:
    """Build the entry of the fragment reuse index without the versions that no segment needs any more.

    Returns:
        The entry, None where no version is left; and whether anything was left out: else there is nothing to commit.
    """
    reuse = reuse_of(snapshot)
    if reuse is None:
        return None, False
    kept = needed_versions(snapshot, reuse)
    if len(kept) == len(reuse.versions):
        return None, False
    return (_entry(snapshot, [v.proto for v in kept], written) if kept else None), True


def needed_versions(snapshot: Snapshot, reuse: Reuse | None) -> list[ReuseVersion]:
    """Return the versions that a segment may still have to follow.

    That is one that still answers for a fragment, and was built on that version or before, or lists a fragment that it
    moved.
    """
    if reuse is None or not reuse.versions:
        return []
    present = np.array(sorted(snapshot.fragments.ids()), np.uint32)
    living: list[tuple[int, NDArray[np.uint32]]] = []
    for segment in snapshot.indices:
        if segment.name in SYSTEM or segment.fragment_bitmap is None:
            continue
        try:
            ids = roaring_values(segment.fragment_bitmap, f"fragments of index {segment.name!r}", _MOST_IDS)
        except CorruptError:
            continue
        if np.isin(reuse.coverage(ids), present).any():
            living.append((segment.dataset_version, ids))
    return [
        version
        for version in reuse.versions
        if any(built <= version.dataset_version or np.isin(version.moved.old, ids).any() for built, ids in living)
    ]


def _entry(snapshot: Snapshot, versions: Sequence[_Version], written: Callable[[str], None]) -> table_pb2.IndexMetadata:
    uuid = uuid4()
    content = index_pb2.FragmentReuseIndexDetails.InlineContent(legacy_versions=versions)
    details = index_pb2.FragmentReuseIndexDetails()
    size = content.ByteSize()
    if size > LARGEST_INLINE:
        path = f"{paths.index_directory(uuid)}/{_FILE}"
        written(path)
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
