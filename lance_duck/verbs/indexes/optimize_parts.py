"""Indexes brought up to date in parts, by any processes: new rows get segments side by side, committed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID, uuid4

from lance_duck.commit import run_again
from lance_duck.errors import FormatError, NotFoundError, UnsupportedError
from lance_duck.index.build import merge_segments
from lance_duck.index.catalog import catalog
from lance_duck.index.segment_uuids import part_uuid, sweep_parts
from lance_duck.index.vector.kind import VECTOR
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.create import IndexWish
from lance_duck.verbs.indexes.optimize import Job, OptimizeOptions, leave_alone, parameters_of_job, plan_jobs
from lance_duck.verbs.indexes.parts import PartOrder
from lance_duck.verbs.indexes.rows import index_rows
from lance_duck.verbs.indexes.staged_segments import MadeSegments
from lance_duck.wire.index import IndexMetadata


@dataclass(frozen=True)
class MergeOrder:
    """A segment to make of others, and of the rows of fragments; pickles.

    Attributes:
        version: Of the table.
        path: Dotted path of the column.
        name: Of the index.
        segments: Those that are merged; with takes_entries=False only what they were made with is taken over.
        fragments: Ids of fragments that none of them covers.
        change: First half of the uuid.
    """

    version: int
    path: str
    name: str
    segments: tuple[UUID, ...]
    takes_entries: bool
    fragments: tuple[int, ...]
    change: UUID

    def build(self, snapshot: Snapshot) -> IndexMetadata | SkippedIndex:
        """Write the segment, safe on the disk. A broken one among those that are merged leaves the index alone."""
        known = {s.uuid: s for index in catalog(snapshot).named(self.name) for s in index.segments}
        chosen = [known[uuid] for uuid in self.segments]
        uuid = part_uuid(self.change)
        try:
            if self.fragments:
                with index_rows(snapshot, self.path, chosen[0].kind, self.fragments) as rows:
                    made = merge_segments(
                        snapshot, chosen, rows, self.fragments, takes_entries=self.takes_entries, uuid=uuid
                    )
            else:
                made = merge_segments(snapshot, chosen, uuid=uuid)
        except (FormatError, NotFoundError) as error:
            if not self.takes_entries and not isinstance(error, UnsupportedError):
                raise
            return SkippedIndex(str(error))
        snapshot.store.sync()
        return made


@dataclass(frozen=True)
class SkippedIndex:
    """Why an index is left as it is."""

    reason: str


Order = PartOrder | MergeOrder


class Workers(Protocol):
    """Processes that build."""

    def runs(self, now: Snapshot, fragments: Sequence[int]) -> Sequence[tuple[int, ...]]:
        """Cut fragments into runs of neighbours, for one segment each; none of no fragments."""

    def build(
        self, now: Snapshot, orders: Sequence[tuple[Order, IndexWish | None]]
    ) -> Sequence[IndexMetadata | SkippedIndex]:
        """Build orders, those of a `PartOrder` with the parameters of their wish, trained once for each index."""


def optimize_in_parts(
    snapshot: Snapshot, options: OptimizeOptions, workers: Workers, properties: Mapping[str, str] | None = None
) -> tuple[Snapshot, list[IndexMetadata]]:
    """Bring indexes up to date as one change: what is merged, and covered, is what one process would choose.

    New rows that are too many for one task get several segments.

    Args:
        snapshot: Version to begin with.
        options: See there.
        workers: Build the segments.
        properties: Kept with the transaction.

    Returns:
        The new version, the given one where there was nothing to do; and the new segments.

    Warns:
        IndexWarning: An index is left as it is.

    Raises:
        IndexNotFoundError: There is no index of a name.
        CommitConflictError: Other changes came first, time and again, or one that this change cannot follow.
    """
    change = uuid4()

    def attempt(now: Snapshot) -> tuple[Snapshot, list[IndexMetadata]]:
        jobs = plan_jobs(now, options)
        segments: list[IndexMetadata] = []
        removed: list[IndexMetadata] = []
        for job, found in zip(jobs, _built(now, jobs, workers, made, change), strict=True):
            if found:
                segments += found
                removed += job.removed
        return (made.commit(now, segments, removed, properties) if segments else now), segments

    with MadeSegments(snapshot) as made:
        try:
            return run_again(snapshot, attempt)
        finally:
            sweep_parts(snapshot, change, made.uuids)


def _built(
    now: Snapshot, jobs: Sequence[Job], workers: Workers, made: MadeSegments, change: UUID
) -> list[list[IndexMetadata]]:
    """Return segments of each job; none for an index that is left as it is."""
    orders = [list(_orders(now, job, workers, change)) for job in jobs]
    held = [[made.holding(now, _key(order)) for order, _ in mine] for mine in orders]
    missing = [o for mine, kept in zip(orders, held, strict=True) for o, k in zip(mine, kept, strict=True) if not k]
    found = iter(workers.build(now, missing) if missing else ())
    built = []
    for job, mine, kept in zip(jobs, orders, held, strict=True):
        fates = [known[0] if known else next(found) for known in kept]
        left = next((fate for fate in fates if isinstance(fate, SkippedIndex)), None)
        good = [fate for fate in fates if not isinstance(fate, SkippedIndex)]
        if left is not None:
            leave_alone(job.name, left.reason)
            good = []
        for (order, _), known, segment in zip(mine, kept, good, strict=False):
            if not known:
                made.keep(now, _key(order), [segment])
        built.append(good)
    return built


def _orders(now: Snapshot, job: Job, workers: Workers, change: UUID) -> Iterator[tuple[Order, IndexWish | None]]:
    """Yield what a job is made of: with other segments only one run of new rows is merged, the others stand alone."""
    runs = list(workers.runs(now, job.fragments)) or [()]
    about = (now.version, job.path, job.name)
    if job.merged:
        merged = tuple(s.uuid for s in job.merged)
        yield MergeOrder(*about, merged, True, runs.pop(0), change), None
    model = job.model or (job.merged[0] if job.merged and job.kind is VECTOR else None)
    if model is not None:
        for run in runs:
            yield MergeOrder(*about, (model.uuid,), False, run, change), None
    elif runs:
        wish = IndexWish(job.path, job.kind, job.name, parameters=parameters_of_job(now, job))
        for run in runs:
            yield PartOrder(*about, job.kind.type_url, run, change), wish


def _key(order: Order) -> tuple[Any, ...]:
    """Return what a segment depends on besides the values of its fragments."""
    merged = (order.segments, order.takes_entries) if isinstance(order, MergeOrder) else ()
    return order.name, order.path, order.fragments, merged
