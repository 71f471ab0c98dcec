"""Index segments that a change has written but not committed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from uuid import UUID

import numpy as np

from lance_duck.commit import REFUSALS, commit
from lance_duck.commit.index_coverage import family
from lance_duck.commit.operations import CreateIndex
from lance_duck.errors import (
    InvalidInputError,
    NotFoundError,
    RetryableError,
)
from lance_duck.index.build import discard_segment
from lance_duck.index.segment_uuids import sweep_parts
from lance_duck.rows import roaring_bytes
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import fragment_ids
from lance_duck.wire import flags
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.index import IndexMetadata, revised


@dataclass(frozen=True)
class _MadeSegment:
    snapshot: Snapshot
    key: Hashable
    segment: IndexMetadata


class MadeSegments:
    """Segments kept for the next attempt of a change after a lost race. A context manager.

    Uncommitted segments are deleted on exit, unless the outcome of the commit is unknown.

    Args:
        snapshot: Version that is changed.
        change: First half of the UUIDs of segments that other processes write. Segments with this half that were never
            kept are always deleted, because abandoned attempts left them behind.

    Raises:
        UnsupportedError: The table has an unknown feature flag and must not be written.
    """

    def __init__(self, snapshot: Snapshot, change: UUID | None = None) -> None:
        flags.check_writable(snapshot.manifest.writer_flags, snapshot.uri)
        self._snapshot = snapshot
        self._change = change
        self._made: dict[UUID, _MadeSegment] = {}
        self._committing = False
        self._committed: set[object] = set()

    def keep(self, snapshot: Snapshot, key: Hashable, segment: IndexMetadata) -> IndexMetadata:
        """Keep a written segment and return it.

        Args:
            snapshot: Version that it was built from.
            key: Key of everything else that the segment depends on.
            segment: The segment, not committed yet.
        """
        self._made[segment.uuid] = _MadeSegment(snapshot, key, segment)
        return segment

    def holding(self, snapshot: Snapshot, key: Hashable) -> list[IndexMetadata]:
        """Return the segments of a key that are still valid for all their fragments. Others are dropped."""
        segments = []
        for staged in [staged for staged in self._made.values() if staged.key == key]:
            now = narrowed(staged.segment, staged.snapshot, snapshot)
            if len(fragment_ids(staged.segment)) == len(fragment_ids(now)):
                segments.append(staged.segment)
            else:
                self.forget([staged.segment])
        return segments

    def forget(self, segments: Iterable[IndexMetadata]) -> None:
        """Delete segments that are no longer needed."""
        for segment in segments:
            staged = self._made.pop(segment.uuid)
            discard_segment(staged.snapshot, staged.segment)

    def commit(
        self,
        snapshot: Snapshot,
        segments: Sequence[IndexMetadata],
        removed: Sequence[IndexMetadata],
        properties: Mapping[str, str] | None,
    ) -> Snapshot:
        """Commit segments that replace others. Raises the errors of `commit`."""
        self._committing = True
        try:
            after = commit(snapshot, CreateIndex(tuple(segments), tuple(removed)), properties=properties)
        except RetryableError:
            self._committing = False
            raise
        self._committed = {segment.uuid for segment in segments}
        return after

    def __enter__(self) -> MadeSegments:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._change is not None:
            sweep_parts(self._snapshot, self._change, self._made)
        if error is not None and self._committing and not isinstance(error, REFUSALS):
            return
        for staged in self._made.values():
            if staged.segment.uuid not in self._committed:
                discard_segment(staged.snapshot, staged.segment)


def narrowed(segment: IndexMetadata, built_on: Snapshot, now: Snapshot) -> IndexMetadata:
    """Return an uncommitted segment whose coverage excludes all fragments with changed values.

    Args:
        segment: The segment.
        built_on: Version that it was built from.
        now: Version that it will be part of.
    """
    fragments = fragment_ids(segment)
    fields = family(segment.fields, now.manifest.proto.fields)
    before, after = _files(built_on, fragments, fields), _files(now, fragments, fields)
    unchanged = [i for i in sorted(fragments) if i in before and i in after and before[i] == after[i]]
    if len(unchanged) == len(fragments):
        return segment
    return revised(segment, fragment_bitmap=roaring_bytes(np.array(unchanged, np.uint32)))


def built_version(segment: IndexMetadata, snapshot: Snapshot) -> Snapshot:
    """Return the version that a segment was built from.

    Raises:
        InvalidInputError: The version was cleaned up, so the segment's validity is unknown.
    """
    try:
        return snapshot.checkout(segment.dataset_version)
    except NotFoundError as error:
        raise InvalidInputError(
            f"index segment {segment.uuid} was built on version {segment.dataset_version}, which no longer exists",
            where=snapshot.uri,
            remedy="build the segment again",
        ) from error


def _files(snapshot: Snapshot, ids: set[int], fields: set[int]) -> dict[int, set[tuple[int, str]]]:
    present = ids.intersection(snapshot.fragments.ids())
    return {i: _files_of(snapshot.fragment(i), fields) for i in present}


def _files_of(fragment: Fragment, fields: set[int]) -> set[tuple[int, str]]:
    return {(i, file.path) for file in fragment.all_files for i in file.fields if i in fields}
