"""Index segments over rewritten fragments: remapped, deferred, or left uncovered.

rewritten   kinds whose entries can get new addresses: new files, and the segment covers the new fragments
deferred    the fragment reuse index says where rows went, and the segment covers the new fragments with its old files:
            where the user wants it so, and for vector segments that are not read here
uncovered   the fragments leave the segment, and are scanned

Segments that know rows by stable row id need none of it: they cover the new fragments as they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from lance_duck.commit import RewriteGroup, RewrittenIndex
from lance_duck.commit.index_coverage import by_row_id
from lance_duck.commit.manifest_builder import ManifestDraft
from lance_duck.errors import IndexWarning, LanceDuckError, StoreError, UnsupportedError
from lance_duck.index.build import discard_segment, merge_segments
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.reuse import reuse_of
from lance_duck.index.reuse_write import moved_group, reuse_after, reuse_group
from lance_duck.maintenance.options import CompactionOptions
from lance_duck.maintenance.segments import covered_fragments, is_deferrable
from lance_duck.rows.address_map import AddressMap, FragmentIds
from lance_duck.snapshot import Snapshot
from lance_duck.wire.index import FRAGMENT_REUSE, SYSTEM, IndexMetadata


@dataclass
class Followed:
    """What goes into the commit beside the fragments.

    Attributes:
        rewritten: Segments that cover the new fragments.
        written: Segments that were written for that.
        deferred: Groups that go into the fragment reuse index.
    """

    rewritten: list[RewrittenIndex] = field(default_factory=list)
    written: list[IndexMetadata] = field(default_factory=list)
    deferred: list[RewriteGroup] = field(default_factory=list)

    def discard(self, snapshot: Snapshot) -> None:
        """Remove what was written. Never raises."""
        for metadata in self.written:
            discard_segment(snapshot, metadata)


Follow = Callable[[Snapshot, Sequence[Segment], Sequence[RewriteGroup]], Sequence["Fate"]]
"""Writes segments anew, in any process, each as `written_anew` does."""


@dataclass(frozen=True)
class Fate:
    """What became of a segment that was to be written anew.

    Attributes:
        new: It; None: it was not written.
        broken: Why it is left uncovered.
    """

    new: IndexMetadata | None = None
    broken: str | None = None


def follow_indexes(
    snapshot: Snapshot, groups: Sequence[RewriteGroup], options: CompactionOptions, follow: Follow | None = None
) -> Followed:
    """Let index segments follow the rows of fragments that were written anew.

    A segment that is broken is left uncovered, with a warning.

    Args:
        snapshot: Version that the old fragments are of.
        groups: With the ids of the new fragments.
        options: Which way.
        follow: Writes segments; None: here, one after the other.

    Raises:
        StoreError: The disk or the service failed; nothing is left behind.
    """
    found = Followed()
    if not options.remap_indices:
        return found
    mine = [s for s in snapshot.indices if _is_concerned(snapshot, s, groups)]
    if options.defer_index_remap:
        found.rewritten += [_as_it_is(s) for s in mine]
        found.deferred += groups
        return found
    try:
        broken = _rewrite(snapshot, mine, groups, found, follow or _one_by_one)
    except BaseException:
        found.discard(snapshot)
        raise
    done = broken | {UUID(str(r.old_id)) for r in found.rewritten}
    deferred = [s for s in mine if s.uuid not in done and is_deferrable(s)]
    found.rewritten += [_as_it_is(s) for s in deferred]
    found.deferred += [
        g for g in groups if any(np.isin(_old(g), covered_fragments(snapshot, s)).any() for s in deferred)
    ]
    return found


def amend_reuse(
    read: Snapshot, followed: Followed
) -> Callable[[Snapshot, ManifestDraft, Callable[[str], None]], None] | None:
    """Return what puts the fragment reuse index of the next version in place; None where there is nothing to do.

    Args:
        read: Version that the old fragments are of.
        followed: What segments have done.
    """
    groups = [reuse_group(read, g.old_fragments, g.new_fragments) for g in followed.deferred]
    new = {metadata.uuid.bytes for metadata in followed.written}

    def amend(base: Snapshot, draft: ManifestDraft, written: Callable[[str], None]) -> None:
        try:
            reuse = reuse_of(base)
        except LanceDuckError:
            if groups:
                raise
            return  # what cannot be read stays
        if groups and (reuse is None or all(v.dataset_version < read.version for v in reuse.versions)):
            for segment in draft.segments:  # what was rewritten has nothing to follow, not even this compaction
                if segment.uuid.uuid in new:
                    segment.dataset_version = draft.manifest.version
        present = np.array([f.id for f in draft.manifest.fragments], np.uint32)
        entry = reuse_after(base, draft.segments, present, groups, written)
        draft.segments[:] = [s for s in draft.segments if s.name != FRAGMENT_REUSE]
        if entry is not None:
            draft.segments.append(entry)

    return amend if groups or any(i.name == FRAGMENT_REUSE for i in read.indices) else None


def written_anew(
    snapshot: Snapshot, segment: Segment, groups: Sequence[RewriteGroup], uuid: UUID | None = None
) -> Fate:
    """Write a segment with the new addresses of the rows of fragments that were written anew.

    Raises:
        StoreError: The disk or the service failed; nothing is left behind.
    """
    return _moved(snapshot, segment, _address_map(snapshot, groups), uuid)


def _rewrite(
    snapshot: Snapshot,
    mine: Sequence[IndexMetadata],
    groups: Sequence[RewriteGroup],
    found: Followed,
    follow: Follow,
) -> set[UUID]:
    """Write segments anew; returns those that are broken."""
    wanted = {s.uuid for s in mine}
    segments = [
        segment
        for segment in (s for index in catalog(snapshot) for s in index.segments)
        if segment.uuid in wanted
        and not segment.by_row_id
        and segment.kind.can_follow()
        # else it shares fragments with another segment, and only one of them answers for them
        and np.array_equal(segment.fragments, _present(snapshot, segment))
    ]
    broken = set()
    for segment, fate in zip(segments, follow(snapshot, segments, groups), strict=True):
        if fate.broken is not None:
            broken.add(segment.uuid)
            text = f"{segment} is not rewritten, what it covered is scanned: {fate.broken}"
            warnings.warn(text, IndexWarning, stacklevel=2)
        elif fate.new is not None:
            found.written.append(fate.new)
            found.rewritten.append(_in_place_of(segment.metadata, fate.new))
    return broken


def _one_by_one(snapshot: Snapshot, segments: Sequence[Segment], groups: Sequence[RewriteGroup]) -> list[Fate]:
    moved = _address_map(snapshot, groups)
    fates: list[Fate] = []
    try:
        for segment in segments:
            fates.append(_moved(snapshot, segment, moved))  # noqa: PERF401  those before a failure are removed
    except BaseException:
        for fate in fates:
            if fate.new is not None:
                discard_segment(snapshot, fate.new)
        raise
    return fates


def _address_map(snapshot: Snapshot, groups: Sequence[RewriteGroup]) -> AddressMap:
    return AddressMap([moved_group(snapshot, g.old_fragments, g.new_fragments) for g in groups])


def _moved(snapshot: Snapshot, segment: Segment, moved: AddressMap, uuid: UUID | None = None) -> Fate:
    covers = moved.coverage(segment.fragments).tolist()
    try:
        return Fate(merge_segments(snapshot, [segment], translate=moved.follow, covers=covers, uuid=uuid))
    except StoreError:
        raise
    except LanceDuckError as error:
        if isinstance(error, UnsupportedError) and is_deferrable(segment.metadata):
            return Fate()  # a layout that is not read
        return Fate(broken=str(error))


def _is_concerned(snapshot: Snapshot, segment: IndexMetadata, groups: Iterable[RewriteGroup]) -> bool:
    """Return whether a segment names, by address, all rows of some rewritten fragments."""
    if segment.name in SYSTEM or (snapshot.has_stable_row_ids and by_row_id(segment.proto)):
        return False
    fragments = covered_fragments(snapshot, segment)
    inside = [np.isin(_old(g), fragments) for g in groups]
    return any(i.any() for i in inside) and all(i.all() or not i.any() for i in inside)


def _present(snapshot: Snapshot, segment: Segment) -> FragmentIds:
    present = np.array(sorted(snapshot.fragments.ids()), np.uint32)
    return np.intersect1d(covered_fragments(snapshot, segment.metadata), present)


def _old(group: RewriteGroup) -> FragmentIds:
    return np.array([f.id for f in group.old_fragments], np.uint32)


def _as_it_is(segment: IndexMetadata) -> RewrittenIndex:
    return _in_place_of(segment, segment)


def _in_place_of(old: IndexMetadata, new: IndexMetadata) -> RewrittenIndex:
    return RewrittenIndex(old.uuid, new.uuid, new.details_type or "", new.details, new.version, new.files)
