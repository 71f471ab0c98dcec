"""Creation and removal of indexes. Segments are written here or by other processes, and committed together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Final
from uuid import UUID, uuid4

from lance_duck.arguments import is_unicode
from lance_duck.commit import commit, run_again
from lance_duck.commit.operations import CreateIndex
from lance_duck.errors import IndexExistsError, InvalidInputError
from lance_duck.index.build import builds_by_row_id, empty_segment
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.index.inverted.settings import LIST_ELEMENT, granularity_of, is_by_element
from lance_duck.index.kind import IndexKind
from lance_duck.index.registry import kind_of, own_details
from lance_duck.index.segment_uuids import part_uuid
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import fragment_ids, segments_named
from lance_duck.verbs.indexes.kinds import IndexSpec, check_indexable
from lance_duck.verbs.indexes.rows import column_path, has_moved_rows
from lance_duck.verbs.indexes.segment_orders import Here, SegmentOrder, Workers
from lance_duck.verbs.indexes.staged_segments import MadeSegments
from lance_duck.wire.below_lists import listed_field
from lance_duck.wire.index import SYSTEM, IndexMetadata

_SUFFIX: Final = "_idx"
_ELEMENT_SUFFIX: Final = "_list_element_idx"


def create_index(
    snapshot: Snapshot,
    spec: IndexSpec,
    properties: Mapping[str, str] | None = None,
    workers: Workers | None = None,
) -> tuple[Snapshot, list[IndexMetadata]]:
    """Build an index of all rows and commit it.

    After a lost race, segments that are still valid are committed unchanged. If other processes write segments, only
    changed fragments are indexed again.

    Args:
        snapshot: Version to start from.
        spec: The index.
        properties: Properties of the transaction.
        workers: Processes that write the segments, or None to write one segment in this process.

    Returns:
        The new version, and the segments.

    Raises:
        UnknownColumnError, NotIndexableError: The column does not exist or cannot have this index.
        IndexExistsError: The name is taken. Nothing is built.
        CommitConflictError: A conflicting change was committed first, or all retries lost the race.
    """
    change = None if workers is None else uuid4()

    def attempt(now: Snapshot) -> tuple[Snapshot, list[IndexMetadata]]:
        path, name, old_segments = settled(now, spec)
        key = (name, now.schema.by_path(path).id)
        segments = staged.holding(now, key)
        if not segments or workers is not None:
            fragments = set(now.fragments.ids()) if spec.train else set()
            missing = sorted(fragments.difference(*map(fragment_ids, segments)))
            if segments and builds_by_row_id(now, spec.kind) and _have_moved_rows(now, missing):
                staged.forget(segments)  # readers that ignore a segment's coverage would find old values
                segments, missing = [], sorted(fragments)
            if missing or not segments:
                new_segments = build_segments(now, path, name, missing, spec, workers, change)
                segments += [staged.keep(now, key, segment) for segment in new_segments]
        return staged.commit(now, segments, old_segments, properties), segments

    with MadeSegments(snapshot, change) as staged:
        return run_again(snapshot, attempt)


def drop_index(snapshot: Snapshot, name: str, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Remove an index of any kind from the table. Its files are kept for older versions.

    Raises:
        IndexNotFoundError: The index does not exist.
    """
    return run_again(
        snapshot,
        lambda now: commit(now, CreateIndex((), tuple(segments_named(now, name))), properties=properties),
    )


def build_segments(
    snapshot: Snapshot,
    path: str,
    name: str,
    fragments: Iterable[int],
    spec: IndexSpec,
    workers: Workers | None = None,
    change: UUID | None = None,
) -> Iterator[IndexMetadata]:
    """Write the segments of an index lazily.

    Args:
        snapshot: The version.
        path: Dotted path of the column.
        name: Name of the index.
        fragments: Ids of the fragments. If empty, one segment without coverage is written in this process.
        spec: The index.
        workers: Processes that write the segments, or None to write one segment in this process.
        change: First half of the UUIDs of segments that workers write.
    """
    ids = sorted(set(fragments))
    uuid = None if change is None else part_uuid(change)
    if workers is None:
        uuid = free_uuid(snapshot, spec.uuid)
    if not ids and spec.untrained is not None:
        yield empty_segment(snapshot, path, spec.kind, spec.untrained, name=name, uuid=uuid)
        return
    if workers is None or not ids:
        workers, change = Here(spec.progress), None
    order = SegmentOrder(
        snapshot.version, path, name, spec.kind.type_url, (), change=change, uuid=uuid, details=own_details(spec.kind)
    )
    runs = workers.runs(snapshot, ids) or [()]
    for segment in workers.write(snapshot, [(replace(order, fragments=run), spec) for run in runs]):
        assert isinstance(segment, IndexMetadata)
        yield segment


def settled(snapshot: Snapshot, spec: IndexSpec) -> tuple[str, str, list[IndexMetadata]]:
    """Return the dotted path of a new index's column, the index name, and the segments that the index replaces.

    The default name is "{path}_idx", or "{path}_list_element_idx" for list elements. A number is appended if the name
    belongs to an index over a different column, of a different kind, or with different documents.

    Raises:
        UnknownColumnError, NotIndexableError: The column does not exist or cannot have this index.
        IndexExistsError: The name belongs to an index over a different column, or to an index that must not be
            replaced.
        InvalidInputError: The name is empty, reserved by the format, or not a valid string.
    """
    path = column_path(snapshot.schema, spec.column)
    check_indexable(snapshot, path, spec.kind)
    field_id = snapshot.schema.by_path(path).id
    segments = [s for s in snapshot.indices if s.name not in SYSTEM]
    name = spec.name
    if name is None:
        by_element = spec.kind is INVERTED and granularity_of(spec.parameters) == LIST_ELEMENT
        path_text = listed_field(snapshot.schema, snapshot.schema.by_path(path)).shown
        names = _numbered(f"{path_text}{_ELEMENT_SUFFIX if by_element else _SUFFIX}")
        name = next(n for n in names if _suits(segments, n, field_id, spec.kind, by_element))
    else:
        check_name(name)
    namesakes = [s for s in segments if s.name == name]
    if any(s.fields != (field_id,) for s in namesakes):
        raise IndexExistsError(
            f"index {name!r} already exists, on another column", where=snapshot.uri, remedy="choose another name"
        )
    if namesakes and not spec.replace:
        raise IndexExistsError(
            f"index {name!r} already exists", where=snapshot.uri, remedy="choose another name, or replace=True"
        )
    return path, name, namesakes


def check_name(name: Any) -> None:
    """Raise InvalidInputError for invalid index names."""
    if not isinstance(name, str) or not name or name in SYSTEM or not is_unicode(name):
        raise InvalidInputError(
            "invalid index name", expected="a non-empty string that is not reserved", found=repr(name)
        )


def free_uuid(snapshot: Snapshot, uuid: UUID | None) -> UUID | None:
    """Return the UUID, or raise InvalidInputError if a segment already uses it. Segment files never change."""
    if uuid is not None and any(s.uuid == uuid for s in snapshot.indices):
        raise InvalidInputError(f"an index segment already has uuid {uuid}", where=snapshot.uri)
    return uuid


def _have_moved_rows(snapshot: Snapshot, fragments: Iterable[int]) -> bool:
    return any(has_moved_rows(snapshot, snapshot.fragment(i)) for i in fragments)


def _numbered(name: str) -> Iterable[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(2))


def _suits(segments: Sequence[IndexMetadata], name: str, field_id: int, kind: IndexKind, by_element: bool) -> bool:
    """Return whether a name is free, or belongs to an index of the same column, kind and documents."""
    namesakes = [s for s in segments if s.name == name]
    return all(
        s.fields == (field_id,)
        and kind_of(s.details_type or "", s.details) == kind
        and (kind is not INVERTED or is_by_element(s.details) == by_element)
        for s in namesakes
    )
