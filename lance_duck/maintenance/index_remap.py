"""Index segments over rewritten fragments: remapped, deferred, or left uncovered.

rewritten   new files with new addresses; the segment covers the new fragments. Only for kinds that support it
deferred    the fragment reuse index maps addresses, and the segment covers the new fragments with its old files:
            if the user requests it, or if this package cannot read a vector segment
rebuilt     a new segment from the new fragments, if rows were sorted and entries are row ranges
uncovered   the segment does not cover the new fragments, so they are scanned

Segments that refer to rows by stable row id are not remapped. They cover the new fragments unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, intersection_of
from lance_duck.commit import Rewrite, RewriteGroup, RewrittenIndex
from lance_duck.commit.committer import unpublished
from lance_duck.commit.index_coverage import by_row_id
from lance_duck.commit.manifest_draft import ManifestDraft
from lance_duck.errors import LanceDuckError, StoreError, UnsupportedError, warn_of_index
from lance_duck.index.build import discard_segment, merge_segments
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.files import INDEX_BLOCK_BYTES
from lance_duck.index.kind import ROW, VALUE
from lance_duck.index.reuse import reuse_of
from lance_duck.index.reuse_write import moved_group, reuse_after, reuse_group
from lance_duck.index.segment_uuids import part_uuid
from lance_duck.maintenance.options import CompactionOptions
from lance_duck.maintenance.segments import covered_fragments, is_deferrable
from lance_duck.rows.address_map import AddressMap, FragmentIds
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.wire.index import FRAGMENT_REUSE, SYSTEM, IndexMetadata

Addresses = NDArray[np.uint64]


@dataclass
class RemappedSegments:
    """The changes to index segments that a compaction commits.

    Attributes:
        rewritten: Segments that cover the new fragments.
        written: The rewritten segments that have new files.
        deferred: Groups that are added to the fragment reuse index.
    """

    rewritten: list[RewrittenIndex] = field(default_factory=list)
    written: list[IndexMetadata] = field(default_factory=list)
    deferred: list[RewriteGroup] = field(default_factory=list)

    def discard(self, snapshot: Snapshot) -> None:
        """Remove the new files. Never raises."""
        for metadata in self.written:
            discard_segment(snapshot, metadata)


@dataclass(frozen=True)
class RemapOutcome:
    """Outcome of a `RemapOrder`.

    Attributes:
        new: The new segment, or None if it was not written.
        broken: Reason why the segment cannot be read. None if it is readable.
    """

    new: IndexMetadata | None = None
    broken: str | None = None


@dataclass(frozen=True)
class RemapOrder:
    """A segment to rewrite because rows moved. It can be pickled.

    Attributes:
        version: Version of the table.
        segment: Uuid of the segment.
        groups: Groups whose rows moved.
        change: First half of the uuid of the new segment.
    """

    version: int
    segment: UUID
    groups: tuple[RewriteGroup, ...]
    change: UUID

    def write(self, snapshot: Snapshot) -> RemapOutcome:
        """Write the segment with the new addresses of the rows, and sync it to disk.

        Raises:
            StoreError: The disk or the service failed. No files are left.
        """
        segment = next(s for index in catalog(snapshot) for s in index.segments if s.uuid == self.segment)
        outcome = _remapped(snapshot, segment, _address_map(snapshot, self.groups, ()), part_uuid(self.change))
        snapshot.store.sync()
        return outcome


Follow = Callable[[Sequence[RemapOrder]], Sequence[RemapOutcome]]
"""Function that rewrites segments in this process or in other processes."""


def follow_indexes(
    snapshot: Snapshot,
    groups: Sequence[RewriteGroup],
    options: CompactionOptions,
    orders: Sequence[Addresses | None] = (),
    follow: Follow | None = None,
    change: UUID | None = None,
) -> RemappedSegments:
    """Update index segments after rows moved to new addresses in rewritten fragments.

    A corrupt segment loses the coverage of these fragments, with a warning.

    Args:
        snapshot: Version that contains the old fragments.
        groups: The groups, with the ids of the new fragments.
        options: How to treat indexes.
        orders: Old addresses of the rows of each group in their new order. None, or no list, if rows keep their order.
        follow: Rewrites segments. None rewrites them in this process, one after the other.
        change: First half of the UUIDs of segments that other processes write.

    Raises:
        StoreError: The disk or the service failed. No files are left.
        UnsupportedError: Rows were sorted, and this package cannot read a vector segment over them.
    """
    followed = RemappedSegments()
    if not options.remap_indices:
        return followed
    concerned = [s for s in snapshot.indices if _is_concerned(snapshot, s, groups)]
    if options.defer_index_remap:
        followed.rewritten += [_as_it_is(s) for s in concerned]
        followed.deferred += groups
        return followed
    segments = _remappable(snapshot, concerned)
    try:
        broken = _remap(segments, _outcomes(snapshot, segments, groups, orders, follow, change), followed)
        settled_ids = broken | {UUID(str(r.old_id)) for r in followed.rewritten}
        deferred = [s for s in concerned if s.uuid not in settled_ids and is_deferrable(s)]
        if deferred and options.order_by:
            raise _unsortable(snapshot, deferred)
    except BaseException:
        followed.discard(snapshot)
        raise
    followed.rewritten += [_as_it_is(s) for s in deferred]
    followed.deferred += [
        g for g in groups if any(np.isin(_old(g), covered_fragments(snapshot, s)).any() for s in deferred)
    ]
    return followed


def amend_reuse(
    read: Snapshot, followed: RemappedSegments
) -> Callable[[Snapshot, ManifestDraft, Callable[[str], None]], None] | None:
    """Return the `amend` of `commit` that updates the fragment reuse index, or None if no update is needed.

    Args:
        read: Version that contains the old fragments.
        followed: The remapped segments.
    """
    groups = [reuse_group(read, g.old_fragments, g.new_fragments) for g in followed.deferred]
    new = {metadata.uuid.bytes for metadata in followed.written}

    def amend(base: Snapshot, draft: ManifestDraft, report_file: Callable[[str], None]) -> None:
        try:
            reuse = reuse_of(base)
        except LanceDuckError:
            if groups:
                raise
            return  # an unreadable fragment reuse index is not changed
        if groups and (reuse is None or all(v.dataset_version < read.version for v in reuse.versions)):
            for segment in draft.segments:  # rewritten segments have current addresses and do not need a mapping
                if segment.uuid.uuid in new:
                    segment.dataset_version = draft.manifest.version
        present = np.array([f.id for f in draft.manifest.fragments], np.uint32)
        entry = reuse_after(base, draft.segments, present, groups, report_file)
        draft.segments[:] = [s for s in draft.segments if s.name != FRAGMENT_REUSE]
        if entry is not None:
            draft.segments.append(entry)

    return amend if groups or any(i.name == FRAGMENT_REUSE for i in read.indices) else None


def _remappable(snapshot: Snapshot, concerned: Iterable[IndexMetadata]) -> list[Segment]:
    uuids = {s.uuid for s in concerned}
    return [
        segment
        for segment in (s for index in catalog(snapshot) for s in index.segments)
        if segment.uuid in uuids
        and not segment.by_row_id
        and segment.kind.can_follow()
        # otherwise a different segment covers some of the fragments that this segment lists
        and np.array_equal(segment.fragments, _present(snapshot, segment))
    ]


def _outcomes(
    snapshot: Snapshot,
    segments: Sequence[Segment],
    groups: Sequence[RewriteGroup],
    orders: Sequence[Addresses | None],
    follow: Follow | None,
    change: UUID | None,
) -> Iterable[RemapOutcome]:
    """Return the outcomes of rewriting segments. In this process, they are rewritten lazily, one after the other."""
    if follow is None:
        if not segments:
            return ()
        is_sorted = any(order is not None for order in orders)
        address_map = _address_map(snapshot, groups, orders)
        return (
            _rebuilt(snapshot, segment, groups)
            if is_sorted and segment.kind.rows_by == "address"
            else _remapped(snapshot, segment, address_map)
            for segment in segments
        )
    assert change is not None
    tasks = [RemapOrder(snapshot.version, segment.uuid, tuple(groups), change) for segment in segments]
    return follow(tasks) if tasks else ()


def _remap(segments: Sequence[Segment], outcomes: Iterable[RemapOutcome], followed: RemappedSegments) -> set[UUID]:
    """Add rewritten segments to `followed`. Returns the UUIDs of corrupt segments."""
    broken = set()
    for segment, outcome in zip(segments, outcomes, strict=True):
        if outcome.broken is not None:
            broken.add(segment.uuid)
            warn_of_index(f"{segment} cannot be rewritten, so its rows are scanned: {outcome.broken}")
        elif outcome.new is not None:
            followed.written.append(outcome.new)
            followed.rewritten.append(_in_place_of(segment.metadata, outcome.new))
    return broken


def _address_map(snapshot: Snapshot, groups: Sequence[RewriteGroup], orders: Sequence[Addresses | None]) -> AddressMap:
    return AddressMap(
        [
            moved_group(snapshot, g.old_fragments, g.new_fragments, order)
            for g, order in zip(groups, orders or [None] * len(groups), strict=True)
        ]
    )


def _rebuilt(snapshot: Snapshot, segment: Segment, groups: Sequence[RewriteGroup]) -> RemapOutcome:
    """Write a segment whose entries are row ranges, which would overlap after rows were sorted, from the new rows."""
    inside = [group for group in groups if np.isin(_old(group), segment.fragments).any()]
    after = unpublished(snapshot, Rewrite(tuple(groups)))
    new = [fragment.id for group in inside for fragment in group.new_fragments]
    old = np.concatenate([_old(group) for group in inside])
    rest = replace(segment, fragments=difference_of(segment.fragments, old))
    try:
        return RemapOutcome(merge_segments(after, [rest], _values(after, segment, new), new))
    except StoreError:
        raise
    except LanceDuckError as error:
        return RemapOutcome(broken=str(error))


def _values(snapshot: Snapshot, segment: Segment, fragments: Sequence[int]) -> pa.RecordBatchReader:
    """Return the rows of `merge_segments`: values and addresses."""
    type_ = segment.type.value_type if pa.types.is_dictionary(segment.type) else segment.type
    schema = pa.schema([pa.field(VALUE, type_), pa.field(ROW, pa.uint64(), nullable=False)])
    options = ScanOptions(
        columns=[segment.path, ROW_ADDRESS], fragments=sorted(fragments), batch_size_bytes=INDEX_BLOCK_BYTES
    )
    table = TableScan(snapshot)

    def batches() -> Iterator[pa.RecordBatch]:
        with table.reader(table.plan(options), options) as reader:
            for batch in reader:
                values = batch.column(0)
                yield pa.RecordBatch.from_arrays(
                    [values if values.type == type_ else values.cast(type_), batch.column(1)], schema=schema
                )

    return pa.RecordBatchReader.from_batches(schema, batches())


def _unsortable(snapshot: Snapshot, segments: Sequence[IndexMetadata]) -> UnsupportedError:
    return UnsupportedError(
        "rows cannot be sorted, because an index of another writer cannot follow them",
        where=snapshot.uri,
        found=", ".join(sorted({segment.name for segment in segments})),
        remedy="drop the index and create it again, or pass remap_indices=False",
    )


def _remapped(snapshot: Snapshot, segment: Segment, address_map: AddressMap, uuid: UUID | None = None) -> RemapOutcome:
    covers = address_map.coverage(segment.fragments).tolist()
    try:
        return RemapOutcome(merge_segments(snapshot, [segment], translate=address_map.follow, covers=covers, uuid=uuid))
    except StoreError:
        raise
    except LanceDuckError as error:
        if isinstance(error, UnsupportedError) and is_deferrable(segment.metadata):
            return RemapOutcome()  # the layout cannot be read
        return RemapOutcome(broken=str(error))


def _is_concerned(snapshot: Snapshot, segment: IndexMetadata, groups: Iterable[RewriteGroup]) -> bool:
    """Return whether a segment refers to all rows of some rewritten fragments by address."""
    if segment.name in SYSTEM or (snapshot.has_stable_row_ids and by_row_id(segment.proto)):
        return False
    fragments = covered_fragments(snapshot, segment)
    inside = [np.isin(_old(g), fragments) for g in groups]
    return any(i.any() for i in inside) and all(i.all() or not i.any() for i in inside)


def _present(snapshot: Snapshot, segment: Segment) -> FragmentIds:
    present = np.array(sorted(snapshot.fragments.ids()), np.uint32)
    return intersection_of(covered_fragments(snapshot, segment.metadata), present)


def _old(group: RewriteGroup) -> FragmentIds:
    return np.array([f.id for f in group.old_fragments], np.uint32)


def _as_it_is(segment: IndexMetadata) -> RewrittenIndex:
    return _in_place_of(segment, segment)


def _in_place_of(old: IndexMetadata, new: IndexMetadata) -> RewrittenIndex:
    return RewrittenIndex(old.uuid, new.uuid, new.details_type or "", new.details, new.version, new.files)
