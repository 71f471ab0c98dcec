"""Bringing indexes up to date: rows that no segment covers get one, and segments become fewer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from lance_duck.commit import run_again
from lance_duck.errors import (
    FormatError,
    IndexWarning,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    UnsupportedError,
)
from lance_duck.index.build import build_segment, builds_by_row_id, merge_segments
from lance_duck.index.catalog import ColumnIndex, Segment, catalog
from lance_duck.index.kind import BuildOptions, IndexKind
from lance_duck.index.registry import kind_of
from lance_duck.index.search import open_index
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.storage.details import parameters_in, parameters_of
from lance_duck.index.vector.training.imbalance import is_outgrown
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.create import rows_of
from lance_duck.verbs.indexes.describe import segments_named
from lance_duck.verbs.indexes.kinds import Progress
from lance_duck.verbs.indexes.rows import index_rows
from lance_duck.verbs.indexes.staged_segments import MadeSegments
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.index import SYSTEM, IndexMetadata

_SMALL: Final = 1 << 18
_SMALL_VECTORS: Final = 1 << 14
_RATIO: Final = 4
_TAKEN_OVER: Final = -2
_PARAMETERS: Final = ("rows_per_zone", "number_of_items", "probability")


@dataclass(frozen=True)
class OptimizeOptions:
    """How to optimize; see `DatasetOptimizer.optimize_indices`.

    Attributes:
        merge: Number of the newest segments to merge; None: those that are small beside the new rows.
        names: Of indexes; None: all.
        retrain: Build each index anew, of all rows.
        progress: Called with the rows that are taken in, and all that are to be.
    """

    merge: int | None = None
    names: Sequence[str] | None = None
    retrain: bool = False
    progress: Progress | None = None

    def __post_init__(self) -> None:
        number = self.merge
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
            raise InvalidInputError("num_indices_to_merge", expected="a number that is not negative", found=number)


@dataclass(frozen=True)
class Job:
    """What becomes of one index.

    Attributes:
        merged: Segments whose entries go into the new one; none: it is built of rows alone.
        model: Segment that the new one is made like, where it is built of rows alone; None: it is trained anew.
        removed: Segments whose place it takes.
        fragments: Ids of fragments whose rows are read.
    """

    name: str
    path: str
    kind: IndexKind
    merged: tuple[Segment, ...]
    removed: tuple[IndexMetadata, ...]
    fragments: tuple[int, ...]
    model: Segment | None = None


def optimize_indices(
    snapshot: Snapshot, options: OptimizeOptions, properties: Mapping[str, str] | None = None
) -> Snapshot:
    """Bring indexes up to date as one change; where nothing is to be done there is no new version.

    An index with a segment that is broken, or that is not known, is left alone with an IndexWarning; `retrain` replaces
    broken ones.

    Raises:
        IndexNotFoundError: There is no index of a name.
        CommitConflictError: Other changes came first, time and again, or one that this change cannot follow.
    """

    def attempt(now: Snapshot) -> Snapshot:
        jobs = plan_jobs(now, options)
        told = _Told(options.progress, sum(rows_of(now, job.fragments) for job in jobs))
        segments: list[IndexMetadata] = []
        removed: list[IndexMetadata] = []
        for job in jobs:
            segment = _made(now, job, told, made)
            if segment is not None:
                segments.append(segment)
                removed.extend(job.removed)
        return made.commit(now, segments, removed, properties) if segments else now

    with MadeSegments(snapshot) as made:
        return run_again(snapshot, attempt)


def plan_jobs(snapshot: Snapshot, options: OptimizeOptions) -> list[Job]:
    """Decide what to do; reads the manifest and, of segments to be merged, what opening takes."""
    names = options.names
    if names is None:
        names = list(dict.fromkeys(s.name for s in snapshot.indices if s.name not in SYSTEM))
    jobs = []
    for name in names:
        job = _job(snapshot, name, segments_named(snapshot, name), options)
        if job is not None:
            jobs.append(job)
    return jobs


def has_moved_rows(snapshot: Snapshot, fragment: Fragment) -> bool:
    """Return whether rows of a fragment of a table with stable row ids may have come from another one, or changed."""
    created, updated = snapshot.created_at(fragment), snapshot.last_updated_at(fragment)
    if created is None or updated is None:
        return True
    rows = snapshot.physical_rows(fragment)
    return not np.array_equal(created.slice(0, rows), updated.slice(0, rows))


def _job(snapshot: Snapshot, name: str, all_: Sequence[IndexMetadata], options: OptimizeOptions) -> Job | None:
    found = catalog(snapshot).named(name)
    if options.retrain:
        return _retrained(snapshot, name, all_)
    index = found[0]
    if len(found) != 1 or index.kind is None or index.path is None or index.ignored:
        reasons = [ignored.reason for index in found for ignored in index.ignored]
        leave_alone(name, reasons[0] if reasons else "its segments do not belong together")
        return None
    tail = sorted(set(snapshot.fragments.ids()).difference(index.fragments.tolist()))
    built = replace(index, segments=tuple(s for s in index.segments if s.metadata.files or len(s.fragments)))
    if not built.segments:  # only what is to be made is known so far
        return _retrained(snapshot, name, all_) if tail else None
    merged = _chosen(snapshot, built, tail, options.merge)
    if not tail and len(merged) < 2:
        return None
    model = built.segments[-1] if index.kind is VECTOR and not merged else None
    for segment in merged if model is None else (model,):
        try:
            open_index(snapshot, segment)
        except (FormatError, NotFoundError) as error:
            leave_alone(name, str(error))
            return None
    removed = tuple(s.metadata for s in merged)
    opened = [open_index(snapshot, s) for s in merged] if index.kind is VECTOR else []
    if opened and len(opened) == len(built.segments) and is_outgrown(opened, removed[0].details):
        return _retrained(snapshot, name, all_)
    if opened and not _made_alike(opened):
        model = merged[-1]
        fragments = sorted({*tail, *(i for s in merged for i in s.fragments.tolist())})
        return Job(name, index.path, index.kind, (), removed, tuple(fragments), model)
    return Job(name, index.path, index.kind, merged, removed, tuple(tail), model)


def _made_alike(opened: Sequence[Any]) -> bool:
    """Return whether codes of vector segments mean the same: those of PQ that were trained apart do not."""
    files = [index.files for index in opened]
    if not files or files[0].storage != "PQ":
        return True
    return all(
        np.array_equal(f.centroids, files[0].centroids) and np.array_equal(f.codebook, files[0].codebook) for f in files
    )


def _retrained(snapshot: Snapshot, name: str, all_: Sequence[IndexMetadata]) -> Job | None:
    first = all_[0]
    kind = kind_of(first.details_type or "")
    named = catalog(snapshot).named(name)
    path = next((index.path for index in named), None)
    if kind is None or path is None:
        leave_alone(name, f"an index of kind {first.details_type!r} over {path!r} cannot be built")
        return None
    return Job(name, path, kind, (), tuple(all_), tuple(snapshot.fragments.ids()))


def _chosen(snapshot: Snapshot, index: ColumnIndex, tail: Sequence[int], merge: int | None) -> tuple[Segment, ...]:
    """Return segments to merge with new rows: the newest, and those that may hold older entries of the rows.

    All are, where the others would name rows in another way than the new one.
    """
    segments = index.segments
    if merge is None:
        merge = _newest_small(snapshot, segments, tail) if tail else 0
    first = max(0, len(segments) - merge)
    stale = {s.uuid for s in segments[:first] if _may_hold(snapshot, s, tail)}
    chosen = tuple(s for place, s in enumerate(segments) if place >= first or s.uuid in stale)
    return segments if _would_mix(snapshot, segments, chosen, tail) else chosen


def _would_mix(snapshot: Snapshot, segments: Sequence[Segment], chosen: Sequence[Segment], tail: Sequence[int]) -> bool:
    """Whether some segments would name rows by stable row id, others by address: pylance 14 refuses such an index."""
    domains = {s.by_row_id for s in segments if s not in chosen}
    if tail or chosen:
        domains.add(builds_by_row_id(snapshot, segments[0].kind))
    return len(domains) > 1


def _newest_small(snapshot: Snapshot, segments: Sequence[Segment], tail: Sequence[int]) -> int:
    """Return how many of the newest segments are small, or not much larger than all that is newer.

    So each row is written anew a few times only, and the segments stay few.
    """
    gathered = rows_of(snapshot, tail)
    for count, segment in enumerate(reversed(segments)):
        rows = rows_of(snapshot, segment.fragments.tolist())
        small = _SMALL_VECTORS if segment.kind is VECTOR else _SMALL
        if rows > max(small, _RATIO * gathered):
            return count
        gathered += rows
    return len(segments)


def _may_hold(snapshot: Snapshot, segment: Segment, tail: Iterable[int]) -> bool:
    """Return whether a segment may have entries of rows of the tail, from before their values changed.

    Here such entries are left out by the coverage of the segment. Not every reader does that once another segment
    covers the rows: so they must go.
    """
    fragments = [snapshot.fragment(i) for i in tail]
    if any(_has_changed_in_place(f) for f in fragments):
        return True
    return segment.by_row_id and any(has_moved_rows(snapshot, f) for f in fragments)


def _has_changed_in_place(fragment: Fragment) -> bool:
    """Return whether columns may have got new files after the fragment was written."""
    return len(fragment.files) > 1 or any(_TAKEN_OVER in file.fields for file in fragment.files)


def _made(snapshot: Snapshot, job: Job, told: _Told, made: MadeSegments) -> IndexMetadata | None:
    """Return the segment of a job; None where one of those that it merges is broken, or its kind cannot be made."""
    key = (job.name, job.path, *(s.uuid for s in job.removed))
    try:
        return made.get(snapshot, key, lambda: _make(snapshot, job, told))
    except (FormatError, NotFoundError) as error:
        if not job.merged and not isinstance(error, UnsupportedError):
            raise
        leave_alone(job.name, str(error))
        return None
    except InvalidInputError as error:  # too few vectors to train with
        if job.kind is not VECTOR:
            raise
        leave_alone(job.name, str(error))
        return None


def _make(snapshot: Snapshot, job: Job, told: _Told) -> IndexMetadata:
    rows = index_rows(snapshot, job.path, job.kind, job.fragments)
    with rows:
        if job.model is not None:
            options = BuildOptions(progress=told.next())
            return merge_segments(snapshot, [job.model], rows, job.fragments, takes_entries=False, options=options)
        if not job.merged:
            options = BuildOptions(parameters_of_job(snapshot, job), progress=told.next())
            return build_segment(snapshot, job.path, job.kind, rows, job.fragments, name=job.name, options=options)
        options = BuildOptions(progress=told.next())
        new = rows if job.fragments else None
        return merge_segments(snapshot, job.merged, new, job.fragments, options=options)


def parameters_of_job(snapshot: Snapshot, job: Job) -> dict[str, object]:
    """Return parameters that a segment of an index was built with, as far as its details or its figures tell."""
    if job.kind is VECTOR:
        for metadata in reversed(job.removed):
            if found := parameters_of(metadata.details):
                return found
    for index in catalog(snapshot).named(job.name):
        for segment in index.segments:
            try:
                figures = open_index(snapshot, segment).statistics()
            except LanceDuckError:
                continue
            if job.kind is VECTOR:
                return parameters_in(figures)
            return {name: figures[name] for name in _PARAMETERS if name in figures}
    return {}


def leave_alone(name: str, reason: str) -> None:
    """Say, with an IndexWarning, that an index is not changed."""
    warnings.warn(f"index {name!r} is left as it is: {reason}", IndexWarning, stacklevel=7)


class _Told:
    """Tells an observer of the rows of several indexes as one number."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._before = self._now = 0
        if progress is not None and total:
            progress(0, total)

    def next(self) -> Callable[[int], None] | None:
        """Return what the next index tells its rows to."""
        progress = self._progress
        if progress is None:
            return None
        self._before += self._now
        self._now = 0

        def tell(done: int) -> None:
            self._now = done
            progress(min(self._before + done, self._total), self._total)

        return tell
