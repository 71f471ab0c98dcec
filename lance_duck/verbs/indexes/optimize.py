"""Index optimization: indexes rows that no segment covers, and merges segments.

Each index that needs work becomes a job, and each job consists of orders. This process or other processes execute the
orders. All new segments are committed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID, uuid4

import numpy as np

from lance_duck.arguments import byte_count
from lance_duck.commit import run_again
from lance_duck.errors import FormatError, InvalidInputError, LanceDuckError, NotFoundError, warn_of_index
from lance_duck.index.build import builds_by_row_id
from lance_duck.index.catalog import ColumnIndex, Segment, catalog
from lance_duck.index.inverted.kind import INVERTED, is_alike, settings_of
from lance_duck.index.kind import IndexKind
from lance_duck.index.registry import kind_of, own_details
from lance_duck.index.search import open_index
from lance_duck.index.vector.details import parameters_in, vector_parameters
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.merge import have_same_codes
from lance_duck.index.vector.training.imbalance import is_outgrown
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.costs import MERGED_RATIO, SMALL_SEGMENT, SMALL_VECTOR_SEGMENT
from lance_duck.verbs.indexes.describe import segments_named
from lance_duck.verbs.indexes.kinds import IndexSpec, Progress
from lance_duck.verbs.indexes.rows import has_moved_rows, rows_of
from lance_duck.verbs.indexes.segment_orders import Here, SegmentOrder, SkippedIndex, Workers
from lance_duck.verbs.indexes.staged_segments import MadeSegments
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.index import SYSTEM, IndexMetadata

_TAKEN_OVER: Final = -2
_MODELLED: Final = (VECTOR, INVERTED)
"""Kinds whose new segments reuse parameters of older ones: centroids or the analyser."""
_PARAMETERS: Final = ("rows_per_zone", "number_of_items", "probability")


@dataclass(frozen=True)
class OptimizeOptions:
    """Options of an index optimization. See `DatasetOptimizer.optimize_indices`.

    Attributes:
        merge: Number of newest segments to merge. None merges segments that are small compared with the new rows.
        names: Names of the indexes. None selects all.
        retrain: Whether each index is rebuilt from all rows.
        progress: Called with the number of rows read so far and the total.
        memory_limit: Memory limit per index, in bytes or as a string with a unit. None is 1 GiB.
    """

    merge: int | None = None
    names: Sequence[str] | None = None
    retrain: bool = False
    progress: Progress | None = None
    memory_limit: int | str | None = None

    def __post_init__(self) -> None:
        number = self.merge
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
            raise InvalidInputError("num_indices_to_merge", expected="0 or more", found=number)
        _ = self.bytes_held  # rejects an invalid limit early

    @property
    def bytes_held(self) -> int | None:
        """The memory limit, in bytes."""
        return None if self.memory_limit is None else byte_count(self.memory_limit, "memory_limit")


@dataclass(frozen=True)
class Job:
    """The optimization of one index.

    Attributes:
        name: Name of the index.
        path: Dotted path of the indexed column.
        kind: Kind of the index.
        merged: Segments to merge into the new one. If empty, the new segment is built from rows alone.
        removed: Segments that the new one replaces.
        fragments: Ids of the fragments to read.
        model: Segment that provides parameters for a segment built from rows alone. None trains anew.
    """

    name: str
    path: str
    kind: IndexKind
    merged: tuple[Segment, ...]
    removed: tuple[IndexMetadata, ...]
    fragments: tuple[int, ...]
    model: Segment | None = None


def optimize_indices(
    snapshot: Snapshot,
    options: OptimizeOptions,
    properties: Mapping[str, str] | None = None,
    workers: Workers | None = None,
) -> tuple[Snapshot, list[IndexMetadata]]:
    """Optimize indexes as one change. If nothing needs optimization, no version is created.

    An index with a broken or unknown segment is skipped with an IndexWarning. `retrain` replaces corrupt segments.

    Args:
        snapshot: Version to start from.
        options: What to merge, and which indexes.
        properties: Properties of the transaction.
        workers: Processes that write the segments. They may split the new rows into several segments. None writes one
            segment per index, in this process.

    Returns:
        The new version, or the given one if nothing changed, and the new segments.

    Raises:
        IndexNotFoundError: An index does not exist.
        CommitConflictError: A conflicting change was committed first, or all retries lost the race.
    """
    change = None if workers is None else uuid4()
    writers = workers or Here(options.progress)

    def attempt(now: Snapshot) -> tuple[Snapshot, list[IndexMetadata]]:
        jobs = plan_jobs(now, options)
        orders = [list(_orders(now, job, writers, change, options.bytes_held)) for job in jobs]
        segments: list[IndexMetadata] = []
        old_segments: list[IndexMetadata] = []
        for job, new_segments in zip(jobs, _written(now, jobs, orders, writers, staged), strict=True):
            if new_segments:
                segments += new_segments
                old_segments += job.removed
        return (staged.commit(now, segments, old_segments, properties) if segments else now), segments

    with MadeSegments(snapshot, change) as staged:
        return run_again(snapshot, attempt)


def plan_jobs(snapshot: Snapshot, options: OptimizeOptions) -> list[Job]:
    """Plan the jobs. Reads the manifest, and opens segments that may be merged."""
    names = options.names
    if names is None:
        names = list(dict.fromkeys(s.name for s in snapshot.indices if s.name not in SYSTEM))
    jobs = []
    for name in names:
        job = _job(snapshot, name, segments_named(snapshot, name), options)
        if job is not None:
            jobs.append(job)
    return jobs


def _job(snapshot: Snapshot, name: str, all_: Sequence[IndexMetadata], options: OptimizeOptions) -> Job | None:
    indexes = catalog(snapshot).named(name)
    if options.retrain:
        return _retrained(snapshot, name, all_)
    index = indexes[0]
    if len(indexes) != 1 or index.kind is None or index.path is None or index.ignored:
        reasons = [ignored.reason for index in indexes for ignored in index.ignored]
        _leave_alone(name, reasons[0] if reasons else "its segments do not belong together")
        return None
    tail = sorted(set(snapshot.fragments.ids()).difference(index.fragments.tolist()))
    usable = replace(index, segments=tuple(s for s in index.segments if s.metadata.files or len(s.fragments)))
    if not usable.segments:  # nothing is indexed yet: the manifest only stores the parameters
        return _retrained(snapshot, name, all_) if tail else None
    sources = _to_merge(snapshot, usable, tail, options.merge)
    if not tail and len(sources) < 2:
        return None
    model = usable.segments[-1] if index.kind in _MODELLED and not sources else None
    for segment in sources if model is None else (model,):
        try:
            open_index(snapshot, segment)
        except (FormatError, NotFoundError) as error:
            _leave_alone(name, str(error))
            return None
    metadata = tuple(s.metadata for s in sources)
    indexes_of_segments = [open_index(snapshot, s) for s in sources] if index.kind in _MODELLED else []
    is_whole = index.kind is VECTOR and bool(indexes_of_segments) and len(indexes_of_segments) == len(usable.segments)
    if is_whole and is_outgrown(indexes_of_segments, metadata[0].details):
        return _retrained(snapshot, name, all_)
    if indexes_of_segments and not _made_alike(index.kind, indexes_of_segments):
        model = sources[-1]
        fragments = sorted({*tail, *(i for s in sources for i in s.fragments.tolist())})
        return Job(name, index.path, index.kind, (), metadata, tuple(fragments), model)
    return Job(name, index.path, index.kind, sources, metadata, tuple(tail), model)


def _made_alike(kind: IndexKind, indexes: Sequence[Any]) -> bool:
    """Return whether the entries of segments can be merged.

    Separately trained PQ and RQ codes cannot be merged, nor can terms from different analysers. Writers before 2026
    used different stop words and stems, so their terms cannot be merged either.
    """
    if kind is INVERTED:
        return all(is_alike(index, indexes[0]) and not index.is_converted for index in indexes)
    files = [index.files for index in indexes]
    if not files or files[0].storage not in ("PQ", "RQ"):
        return True
    return all(np.array_equal(f.centroids, files[0].centroids) and have_same_codes(f, files[0]) for f in files)


def _retrained(snapshot: Snapshot, name: str, all_: Sequence[IndexMetadata]) -> Job | None:
    first = all_[0]
    kind = kind_of(first.details_type or "", first.details)
    segments_of = catalog(snapshot).named(name)
    path = next((index.path for index in segments_of), None)
    if kind is None or path is None:
        _leave_alone(name, f"an index of kind {first.details_type!r} over {path!r} cannot be built")
        return None
    return Job(name, path, kind, (), tuple(all_), tuple(snapshot.fragments.ids()))


def _to_merge(snapshot: Snapshot, index: ColumnIndex, tail: Sequence[int], merge: int | None) -> tuple[Segment, ...]:
    """Return the segments to merge with new rows: the newest, and segments that may hold older entries for these rows.

    If the new segment would identify rows differently from existing segments, all segments are merged. Inverted
    segments with deleted rows are merged if pylance would merge them, so that statistics count the same rows as with
    pylance.
    """
    segments = index.segments
    leaves_out_deleted = index.kind is INVERTED and bool(merge)
    if merge is None:
        merge = _newest_small(snapshot, segments, tail) if tail else 0
    first = max(0, len(segments) - merge)
    stale = {
        s.uuid
        for s in segments[:first]
        if _may_hold(snapshot, s, tail) or (leaves_out_deleted and _has_deleted_rows(snapshot, s))
    }
    sources = tuple(s for place, s in enumerate(segments) if place >= first or s.uuid in stale)
    return segments if _would_mix(snapshot, segments, sources, tail) else sources


def _would_mix(
    snapshot: Snapshot, segments: Sequence[Segment], sources: Sequence[Segment], tail: Sequence[int]
) -> bool:
    """Return whether segments would mix stable row ids and addresses. pylance 14 rejects such indexes."""
    domains = {s.by_row_id for s in segments if s not in sources}
    if tail or sources:
        domains.add(builds_by_row_id(snapshot, segments[0].kind))
    return len(domains) > 1


def _newest_small(snapshot: Snapshot, segments: Sequence[Segment], tail: Sequence[int]) -> int:
    """Return how many of the newest segments are small, or not much larger than all newer rows together.

    Merging them keeps the number of segments low, and rewrites each row only a few times.
    """
    gathered = rows_of(snapshot, tail)
    for count, segment in enumerate(reversed(segments)):
        rows = rows_of(snapshot, segment.fragments.tolist())
        small = SMALL_VECTOR_SEGMENT if segment.kind is VECTOR else SMALL_SEGMENT
        if rows > max(small, MERGED_RATIO * gathered):
            return count
        gathered += rows
    return len(segments)


def _may_hold(snapshot: Snapshot, segment: Segment, tail: Iterable[int]) -> bool:
    """Return whether a segment may contain outdated entries for rows in the fragments of `tail`.

    This package ignores such entries based on the segment's coverage. Other readers may use them once another segment
    covers the rows, so they must be removed.
    """
    fragments = [snapshot.fragment(i) for i in tail]
    if any(_has_changed_in_place(f) for f in fragments):
        return True
    return segment.by_row_id and any(has_moved_rows(snapshot, f) for f in fragments)


def _has_deleted_rows(snapshot: Snapshot, segment: Segment) -> bool:
    """Return whether merging a segment with stable row ids may drop deleted rows."""
    return segment.by_row_id and any(snapshot.fragment(i).deletion_file for i in segment.fragments.tolist())


def _has_changed_in_place(fragment: Fragment) -> bool:
    """Return whether columns may have been rewritten since the fragment was written."""
    return len(fragment.all_files) > 1 or any(_TAKEN_OVER in file.fields for file in fragment.files)


def _orders(
    now: Snapshot, job: Job, workers: Workers, change: UUID | None, memory_limit: int | None
) -> Iterator[tuple[SegmentOrder, IndexSpec | None]]:
    """Yield the orders of a job. Only the first run of new rows is merged with older segments."""
    runs = list(workers.runs(now, job.fragments)) or [()]
    named = (now.version, job.path, job.name, job.kind.type_url)
    order = SegmentOrder(
        *named, (), may_skip=True, change=change, details=own_details(job.kind), memory_limit=memory_limit
    )
    if job.merged:
        yield replace(order, fragments=runs.pop(0), merged=tuple(s.uuid for s in job.merged)), None
    model = job.model or (job.merged[0] if job.merged and job.kind in _MODELLED else None)
    spec = None
    if model is not None:
        order = replace(order, merged=(model.uuid,), takes_entries=False)
    elif runs:
        spec = IndexSpec(job.path, job.kind, _parameters(now, job), job.name, replace=True)
    for run in runs:
        yield replace(order, fragments=run), spec


def _written(
    now: Snapshot,
    jobs: Sequence[Job],
    orders: Sequence[Sequence[tuple[SegmentOrder, IndexSpec | None]]],
    workers: Workers,
    made: MadeSegments,
) -> Iterator[list[IndexMetadata]]:
    """Yield a list of segments per job. Valid segments of an earlier attempt are reused. Skipped indexes yield []."""
    earlier = {
        order: made.holding(now, _key(job, order)) for job, each in zip(jobs, orders, strict=True) for order, _ in each
    }
    missing = [pair for each in orders for pair in each if not earlier[pair[0]]]
    outcomes = iter(workers.write(now, missing) if missing else ())
    for job, each in zip(jobs, orders, strict=True):
        segments: list[IndexMetadata] = []
        reasons: list[str] = []
        for order, _ in each:
            outcome = earlier[order][0] if earlier[order] else next(outcomes)
            if isinstance(outcome, SkippedIndex):
                reasons.append(outcome.reason)
                continue
            segments.append(outcome)
            if not earlier[order]:
                made.keep(now, _key(job, order), outcome)
        if reasons:
            _leave_alone(job.name, reasons[0])
        yield [] if reasons else segments


def _key(job: Job, order: SegmentOrder) -> tuple[Any, ...]:
    """Return a key that identifies everything that a segment depends on, except the values of its fragments."""
    if order.change is None:
        return job.name, job.path, *(s.uuid for s in job.removed)
    return job.name, job.path, order.fragments, order.merged, order.takes_entries


def _parameters(snapshot: Snapshot, job: Job) -> dict[str, object]:
    """Return the build parameters that the details or statistics of a segment store."""
    if job.kind is VECTOR:
        for metadata in reversed(job.removed):
            if parameters := vector_parameters(metadata.details):
                return parameters
    for index in catalog(snapshot).named(job.name):
        for segment in index.segments:
            try:
                figures = open_index(snapshot, segment).statistics()
            except LanceDuckError:
                continue
            if job.kind is VECTOR:
                return parameters_in(figures)
            if job.kind is INVERTED:
                return settings_of(open_index(snapshot, segment)).arguments
            return {name: figures[name] for name in _PARAMETERS if name in figures}
    return {}


def _leave_alone(name: str, reason: str) -> None:
    """Emit an IndexWarning that an index is skipped."""
    warn_of_index(f"index {name!r} was not changed: {reason}")
