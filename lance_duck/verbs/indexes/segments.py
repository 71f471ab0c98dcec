"""Index segments that any process builds separately, and that are committed together as one index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from lance_duck.commit import run_again
from lance_duck.errors import IndexExistsError, InvalidInputError, UnsupportedError
from lance_duck.index.build import merge_segments
from lance_duck.index.catalog import Segment, field_path, names_rows_by_id
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.index.inverted.settings import settings_in
from lance_duck.index.registry import kind_of
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.create import build_segments, check_name, settled
from lance_duck.verbs.indexes.describe import fragment_ids
from lance_duck.verbs.indexes.kinds import IndexSpec, check_indexable
from lance_duck.verbs.indexes.rows import checked_fragments, column_path
from lance_duck.verbs.indexes.segment_parts import completed
from lance_duck.verbs.indexes.staged_segments import MadeSegments, built_version, narrowed
from lance_duck.verbs.public.lance_operation import Index
from lance_duck.verbs.public.operation_convert import index_metadata, shown_index
from lance_duck.wire.index import IndexMetadata, revised


def create_uncommitted(snapshot: Snapshot, spec: IndexSpec, fragments: Iterable[int] | None) -> Index:
    """Write a segment for some fragments.

    Raises:
        InvalidInputError: No fragments are given, or one does not exist.
    """
    if fragments is None:
        raise InvalidInputError("fragment_ids are missing", where="create_index_uncommitted")
    path, name, _ = settled(snapshot, spec)
    present = checked_fragments(snapshot, fragments)
    (segment,) = build_segments(snapshot, path, name, present if spec.train else [], spec)
    return shown_index(segment)


def merge_uncommitted(snapshot: Snapshot, entries: Sequence[Index]) -> Index:
    """Merge several uncommitted segments into a new segment. The files of the merged segments are kept.

    Fragments whose values changed since a segment was built are excluded.

    Raises:
        InvalidInputError: No segments are given, one is given twice, or they belong to different indexes.
        LanceDuckError: A segment is corrupt.
    """
    given = _metadata(entries)
    segments = [_usable(snapshot, revised(segment, name=given[0].name)) for segment in given]
    _check_disjoint([s.metadata for s in segments])
    return shown_index(merge_segments(snapshot, segments))


def commit_segments(
    snapshot: Snapshot,
    name: str,
    column: str,
    entries: Sequence[Index],
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """Commit segments as one index.

    Existing segments of the index are kept, except segments that the new ones cover entirely. Fragments whose values
    changed since a segment was built are removed from its coverage.

    Raises:
        InvalidInputError: No segments are given, one is given twice, or they belong to different indexes.
        IndexExistsError: The index is over a different column, or an existing segment covers more fragments than the
            new segments.
    """
    segments = [completed(snapshot, segment) for segment in _metadata(entries)]

    def attempt(now: Snapshot) -> Snapshot:
        path = column_path(now.schema, column)
        field_id = now.schema.by_path(path).id
        for segment in segments:
            if segment.fields != (field_id,):
                raise InvalidInputError(
                    f"index segment {segment.uuid} does not cover column {column!r}",
                    expected=f"field {field_id}",
                    found=list(segment.fields),
                )
        new_segments = [revised(narrowed(s, built_version(s, now), now), name=name) for s in segments]
        _check_disjoint(new_segments)
        old_segments = _replaced(now, name, field_id, new_segments)
        others = [s for s in now.indices if s.name == name and s not in old_segments]
        _check_unmixed(now, new_segments, others)
        _check_alike(now, [*new_segments, *others])
        return staged.commit(now, new_segments, old_segments, properties)

    check_name(name)
    with MadeSegments(snapshot) as staged:
        return run_again(snapshot, attempt)


def _replaced(now: Snapshot, name: str, field_id: int, fitting: Sequence[IndexMetadata]) -> list[IndexMetadata]:
    """Return the existing segments that the new ones cover entirely."""
    coverage = set().union(*map(fragment_ids, fitting))
    present = now.fragments.id_set
    old_segments = []
    for old in (s for s in now.indices if s.name == name):
        if old.fields != (field_id,):
            raise IndexExistsError(f"index {name!r} already exists, on another column", where=now.uri)
        rest = fragment_ids(old) & present - coverage
        if not rest:
            old_segments.append(old)
        elif fragment_ids(old) & coverage:
            raise IndexExistsError(
                f"segment {old.uuid} of index {name!r} covers more than the new segments",
                where=now.uri,
                found=f"fragments {sorted(rest)}",
            )
    return old_segments


def _metadata(indexes: Sequence[Index]) -> list[IndexMetadata]:
    segments = [index_metadata(segment) for segment in indexes]
    if not segments:
        raise InvalidInputError("the list of index segments is empty")
    uuids = [segment.uuid for segment in segments]
    for uuid in uuids:
        if uuids.count(uuid) > 1:
            raise InvalidInputError(f"index segment {uuid} is given twice")
    return segments


def _usable(snapshot: Snapshot, index: IndexMetadata) -> Segment:
    """Return an uncommitted segment with the metadata that a commit would store."""
    kind = kind_of(index.details_type or "", index.details)
    if kind is None or index.version not in kind.versions or len(index.fields) != 1:
        raise UnsupportedError(
            f"index segment {index.uuid} cannot be merged", found=f"{index.details_type}, version {index.version}"
        )
    metadata = narrowed(index, built_version(index, snapshot), snapshot)
    path = field_path(snapshot.schema, metadata.fields[0])
    if path is None:
        raise InvalidInputError(f"index segment {index.uuid} covers field {index.fields[0]}, which does not exist")
    check_indexable(snapshot, path, kind)
    field = snapshot.schema.by_id(metadata.fields[0])
    fragments = np.array(sorted(fragment_ids(metadata)), np.uint32)
    by_row_id = names_rows_by_id(kind, metadata.version, snapshot)
    return Segment(metadata, kind, field, path, field.storage_type, fragments, by_row_id)


def _check_disjoint(segments: Sequence[IndexMetadata]) -> None:
    fragments: set[int] = set()
    for segment in segments:
        ids = fragment_ids(segment)
        if not fragments.isdisjoint(ids):
            raise InvalidInputError(
                f"index segment {segment.uuid} overlaps the fragments of another segment", found=sorted(fragments & ids)
            )
        fragments |= ids


def _check_unmixed(now: Snapshot, segments: Sequence[IndexMetadata], others: Sequence[IndexMetadata]) -> None:
    """Reject segments that identify rows in different ways, because pylance 14 cannot read the index."""
    by_row_id: dict[bool, IndexMetadata] = {}
    for segment in (*segments, *others):
        kind = kind_of(segment.details_type or "", segment.details)
        if kind is not None:
            by_row_id[names_rows_by_id(kind, segment.version, now)] = segment
    if len(by_row_id) > 1:
        raise InvalidInputError(
            f"index segment {by_row_id[True].uuid} stores stable row ids, and {by_row_id[False].uuid} "
            "stores row addresses",
            where=now.uri,
            expected="segments that all store row ids or all store row addresses",
            remedy="merge them with merge_existing_index_segments, or build them again",
        )


def _check_alike(now: Snapshot, segments: Sequence[IndexMetadata]) -> None:
    """Reject full-text segments with different parameters, because pylance 14 cannot read the index."""
    texts = [s for s in segments if kind_of(s.details_type or "", s.details) is INVERTED]
    for segment in texts[1:]:
        if settings_in(segment.details) != settings_in(texts[0].details):
            raise InvalidInputError(
                f"index segments {texts[0].uuid} and {segment.uuid} were made with different parameters",
                where=now.uri,
                expected="segments with the same full-text parameters",
                remedy="build them again with the same parameters",
            )
