"""Fragment bitmaps of index segments after a change to the table.

The bitmap of a segment lists the fragments whose rows the segment contains. If the bitmap is missing, the coverage is
unknown, and stays unknown. A fragment is removed from the bitmap if its values changed in place or it was rewritten.
The segment's entries are then outdated, and queries scan the rows instead. Fragments that no longer exist may remain
listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from typing import TypeAlias

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, union_of
from lance_duck.errors import InvalidInputError
from lance_duck.rows import fragments_in_bitmap, roaring_bytes
from lance_duck.wire.index import FRAGMENT_REUSE as FRAGMENT_REUSE
from lance_duck.wire.index import SYSTEM as SYSTEM
from lance_duck.wire.pb import file_pb2, index_pb2, table_pb2, transaction_pb2

Segments: TypeAlias = list[table_pb2.IndexMetadata]
Ids: TypeAlias = NDArray[np.uint32]
Rewrite: TypeAlias = transaction_pb2.Transaction.Rewrite

# Index kinds that store stable row ids. Zone maps, Bloom filters and other kinds store row addresses. The kinds in
# _BY_VERSION store row ids in version 0, and row addresses from version 1 on.
_BY_ROW_ID = (
    "BitmapIndexDetails",
    "LabelListIndexDetails",
    "InvertedIndexDetails",
    "VectorIndexDetails",
    "RTreeIndexDetails",
)
_JSON = "JsonIndexDetails"
_BY_VERSION = ("BTreeIndexDetails", "NGramIndexDetails")


def bitmap_fragments(segment: table_pb2.IndexMetadata) -> Ids | None:
    """Return the ascending ids of the fragments that a segment covers, or None if they are unknown.

    Raises:
        CorruptError: The segment's bitmap is corrupt.
    """
    if not segment.fragment_bitmap:
        return None
    return fragments_in_bitmap(segment.fragment_bitmap, f"fragments of index {segment.name!r}")


def family(field_ids: Iterable[int], fields: Iterable[file_pb2.Field]) -> set[int]:
    """Return the ids of fields and of all their ancestors and descendants. A changed value of one changes the others.

    Args:
        field_ids: Ids of fields. The result also contains ids that are missing from the schema.
        fields: The schema, parents first.
    """
    roots = set(field_ids)
    parents = {f.id: f.parent_id for f in fields}
    result = set(roots)
    for field_id, parent in parents.items():
        if parent in result:
            result.add(field_id)
    for field_id in roots:
        above = parents.get(field_id, -1)
        while above in parents:
            result.add(above)
            above = parents[above]
    return result


def withdraw(segments: Segments, fragment_ids: Iterable[int], fields: Set[int] | None = None) -> None:
    """Remove fragments from the bitmaps of segments over some fields, or of all segments if `fields` is None."""
    withdrawn = np.fromiter(fragment_ids, np.uint32)
    for segment in segments:
        if segment.name in SYSTEM or (fields is not None and fields.isdisjoint(segment.fields)):
            continue
        _change(segment, lambda ids: difference_of(ids, withdrawn))


def withdraw_overlaid(
    segments: Segments, fragments: Iterable[table_pb2.DataFragment], fields: Sequence[file_pb2.Field]
) -> None:
    """Remove fragments from the bitmaps of segments that are older than an overlay of the indexed fields.

    Readers detect this themselves only while the overlay exists and its rows do not move.
    """
    for fragment in fragments:
        for overlay in fragment.overlays:
            older = [s for s in segments if s.dataset_version < overlay.committed_version]
            withdraw(older, [fragment.id], family(overlay.data_file.fields, fields))


def extend_to_moved(segments: Segments, new_ids: Sequence[int], source_ids: Sequence[int], field_ids: Set[int]) -> None:
    """Extend the coverage of segments with stable row ids to the fragments that rows moved to.

    Args:
        segments: The segments, changed in place.
        new_ids: Ids of fragments that contain only moved rows.
        source_ids: Ids of the fragments that contained these rows before. Segments that do not cover all of these
            fragments are skipped.
        field_ids: Fields whose values changed during the move. Segments on these fields are skipped.
    """
    new = np.array(new_ids, np.uint32)
    sources = np.array(source_ids, np.uint32)
    for segment in segments:
        if not by_row_id(segment) or not field_ids.isdisjoint(segment.fields):
            continue
        _change(segment, lambda ids: union_of(ids, new) if np.isin(sources, ids).all() else ids)


def by_row_id(segment: table_pb2.IndexMetadata) -> bool:
    """Return whether a segment stores stable row ids. Returns False for unknown index kinds."""
    kind = segment.index_details.type_url.rpartition(".")[2]
    if kind == _JSON:
        kind = _json_target(segment.index_details.value).rpartition(".")[2]
    if kind in _BY_VERSION:
        return segment.index_version == 0
    return kind in _BY_ROW_ID


def _json_target(details: bytes) -> str:
    """Return the type URL of the kind whose files a JSON index has, or "" if the details are damaged."""
    try:
        return index_pb2.JsonIndexDetails.FromString(details).target_details.type_url
    except DecodeError:
        return ""


def rewrite(segments: Segments, operation: Rewrite, *, stable: bool) -> None:
    """Update segments after fragments were rewritten.

    Segments that were rewritten with the fragments, and segments with stable row ids, then cover the new fragments. The
    old fragments are removed from all other segments. If the operation lists a segment as its own replacement, a
    fragment reuse index translates its addresses.

    Raises:
        InvalidInputError: A segment that would cover the new fragments covers only part of a rewritten group.
    """
    renewed = {i.old_id.uuid: i for i in operation.rewritten_indices}
    if len(renewed) != len(operation.rewritten_indices):
        raise InvalidInputError("an index segment is rewritten twice", where="Rewrite")
    pairs = [_group_ids(g) for g in operation.groups]
    for segment in segments:
        if segment.name in SYSTEM:
            continue
        new = renewed.get(segment.uuid.uuid)
        follows = new is not None or (stable and by_row_id(segment))
        _change(segment, partial(_translated, pairs, segment.name, follows))
        if new is not None:
            _renew(segment, new)


def date(segments: Segments, operation: Rewrite, read_version: int) -> None:
    """Set the version of rewritten segments to a version that includes all changes in the fragment reuse index.

    If the table does not have a fragment reuse index, segments keep the version that they were built on.

    Args:
        segments: The segments after `rewrite`, changed in place.
        operation: The rewrite.
        read_version: Version that the rewrite is based on.
    """
    if all(s.name != FRAGMENT_REUSE for s in segments):
        return
    new_ids = {i.new_id.uuid for i in operation.rewritten_indices if i.new_id != i.old_id}
    for segment in segments:
        if segment.uuid.uuid in new_ids:
            segment.dataset_version = max(segment.dataset_version, read_version)


def retain(segments: Segments, fields: Set[int], fragment_ids: Callable[[], Ids]) -> Segments:
    """Return the segments that are still needed.

    Segments on dropped fields are removed. If an index has several segments, segments that do not cover any fragment
    are removed. At least one segment is always kept to record the index.

    Args:
        segments: Segments of a version.
        fields: Field ids of the version.
        fragment_ids: Returns the fragment ids of the version.
    """
    retained = [s for s in segments if s.name in SYSTEM or fields >= set(s.fields)]
    names: dict[str, Segments] = {}
    for segment in retained:
        if segment.name not in SYSTEM:
            names.setdefault(segment.name, []).append(segment)
    unused: set[bytes] = set()
    for group in (g for g in names.values() if len(g) > 1):
        unused |= _useless(group, fragment_ids())
    return [s for s in retained if s.uuid.uuid not in unused]


def _useless(group: Segments, present: Ids) -> set[bytes]:
    coverages = [bitmap_fragments(s) for s in group]
    empty = [s for s, ids in zip(group, coverages, strict=True) if ids is not None and not np.isin(ids, present).any()]
    if len(empty) == len(group):
        oldest = min(empty, key=lambda s: s.dataset_version)
        empty = [s for s in empty if s is not oldest]
    return {s.uuid.uuid for s in empty}


def _change(segment: table_pb2.IndexMetadata, change: Callable[[Ids], Ids]) -> None:
    before = bitmap_fragments(segment)
    if before is None:
        return
    after = change(before)
    if not np.array_equal(after, before):
        segment.fragment_bitmap = roaring_bytes(after.astype(np.uint32))


def _group_ids(group: Rewrite.RewriteGroup) -> tuple[Ids, Ids]:
    old = np.array([f.id for f in group.old_fragments], np.uint32)
    return old, np.array([f.id for f in group.new_fragments], np.uint32)


def _translated(pairs: Sequence[tuple[Ids, Ids]], name: str, follows: bool, ids: Ids) -> Ids:
    result = ids
    for old, new in pairs:
        inside = np.isin(old, ids)
        if not inside.any():
            continue
        result = difference_of(result, old)
        if not follows:
            continue
        if not inside.all():
            raise InvalidInputError(
                f"index {name!r} covers only some of the fragments that are rewritten together",
                where="Rewrite",
                expected="all or none",
                found=f"{old[inside].tolist()} of {old.tolist()}",
            )
        result = union_of(result, new)
    return result


def _renew(segment: table_pb2.IndexMetadata, new: Rewrite.RewrittenIndex) -> None:
    if new.new_id == new.old_id:
        return
    segment.ClearField("base_id")
    segment.uuid.uuid = new.new_id.uuid
    if new.HasField("new_index_details") and new.new_index_details.type_url:
        segment.index_details.CopyFrom(new.new_index_details)
    segment.index_version = new.new_index_version
    segment.ClearField("files")
    segment.files.extend(new.new_index_files)
