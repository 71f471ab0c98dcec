"""Compaction of groups that any processes write: committed in batches as they end; groups in the way are planned anew.

data/{transaction}-{uuid}.lance    new files, those of workers that died, too: see `wire.paths`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID, uuid4

from lance_duck.commit import RewriteGroup
from lance_duck.errors import RetryableError
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.segment_uuids import part_uuid, sweep_parts
from lance_duck.maintenance.compact import KNOWN, plan_compaction, prepare
from lance_duck.maintenance.index_remap import Fate, written_anew
from lance_duck.maintenance.options import CompactionOptions
from lance_duck.maintenance.rewrite import Rewritten, rewrite
from lance_duck.snapshot import Snapshot
from lance_duck.wire import paths
from lance_duck.wire.fragment import Fragment

_ATTEMPTS: Final = 10
_AHEAD: Final = 2


@dataclass(frozen=True)
class RewriteOrder:
    """A group to write anew; pickles.

    Attributes:
        version: Of the table.
        fragments: Ids.
        change: In the names of the files.
    """

    version: int
    fragments: tuple[int, ...]
    options: CompactionOptions
    change: UUID

    def write(self, snapshot: Snapshot) -> Rewritten:
        """Write the group; see `maintenance.rewrite`."""
        return rewrite(snapshot, [snapshot.fragment(i) for i in self.fragments], self.options, self.change)


@dataclass(frozen=True)
class FollowOrder:
    """A segment to write anew, for rows that moved; pickles."""

    version: int
    segment: UUID
    groups: tuple[RewriteGroup, ...]
    change: UUID

    def write(self, snapshot: Snapshot) -> Fate:
        """Write it, safe on the disk; see `maintenance.follow.written_anew`."""
        found = next(s for index in catalog(snapshot) for s in index.segments if s.uuid == self.segment)
        fate = written_anew(snapshot, found, self.groups, part_uuid(self.change))
        snapshot.store.sync()
        return fate


Write = Callable[[Sequence[RewriteOrder]], Sequence[Rewritten]]
Follow = Callable[[Sequence[FollowOrder]], Sequence[Fate]]


@dataclass
class Compacted:
    """What a compaction in parts did.

    Attributes:
        snapshot: The newest version that it knows.
        landed: Groups that are committed.
        commits: Number of commits.
        again: Groups that were planned anew, because others changed their fragments.
    """

    snapshot: Snapshot
    landed: list[Rewritten] = field(default_factory=list)
    commits: int = 0
    again: int = 0


def compact_in_parts(
    snapshot: Snapshot,
    options: CompactionOptions,
    write: Write,
    *,
    batch: Callable[[int], int],
    follow: Follow | None = None,
    properties: Mapping[str, str] | None = None,
) -> Compacted:
    """Compact a table by other processes.

    A batch is committed as soon as it is written, while the next one is. After an error batches that were committed
    stay, and nothing is left of the others.

    Args:
        snapshot: Version to begin with.
        options: Targets and limits; a plan that they bound is not extended.
        write: Writes the groups of a batch; called by several threads.
        batch: Groups of a batch, given their number.
        follow: Writes index segments anew; None: here.
        properties: Kept in the transactions.

    Raises:
        RetryableError: Other writers were in the way of a group each time.
    """
    compaction = _Compaction(options, write, batch, follow, properties, Compacted(snapshot))
    try:
        compaction.run()
    finally:
        compaction.sweep()
    return compaction.done


@dataclass
class _Compaction:
    options: CompactionOptions
    write: Write
    batch: Callable[[int], int]
    follow: Follow | None
    properties: Mapping[str, str] | None
    done: Compacted
    change: UUID = field(default_factory=uuid4)
    in_doubt: list[Rewritten] = field(default_factory=list)
    segments: set[UUID] = field(default_factory=set)

    def run(self) -> None:
        groups = plan_compaction(self.done.snapshot, self.options)
        for _ in range(_ATTEMPTS):
            lost: list[Rewritten] = []
            for rewrites in self._written(groups):
                lost += self._land(rewrites)
            if not lost:
                return
            self.done.again += len(lost)
            self.done.snapshot = self.done.snapshot.checkout()
            wanted = {f.id for r in lost for f in r.old}
            planned = plan_compaction(self.done.snapshot, self.options)
            groups = [group for group in planned if any(f.id in wanted for f in group)]
        raise RetryableError(
            f"fragments {sorted(wanted)} are changed by others time and again",
            where=self.done.snapshot.uri,
            remedy="compact again when there are fewer changes",
        )

    def sweep(self) -> None:
        """Remove what was written and not committed. Never raises."""
        store = self.done.snapshot.store
        kept = {paths.data_stem(f.path) for r in (*self.done.landed, *self.in_doubt) for n in r.new for f in n.files}
        with suppress(Exception):  # what is left is what cleanup removes
            found = store.beginning(paths.transaction_data(self.change))
            if gone := [path for path in found if paths.data_stem(path) not in kept]:
                store.delete(gone)
        if self.follow is not None:
            sweep_parts(self.done.snapshot, self.change, self.segments)

    def _written(self, groups: Sequence[Sequence[Fragment]]) -> Iterator[Sequence[Rewritten]]:
        """Yield batches in their order, the next one being written meanwhile."""
        version = self.done.snapshot.version
        orders = [RewriteOrder(version, tuple(f.id for f in g), self.options, self.change) for g in groups]
        size = max(1, self.batch(len(orders)))
        waiting: list[Future[Sequence[Rewritten]]] = []
        with ThreadPoolExecutor(_AHEAD, "lance_duck-compact") as pool:
            try:
                batches = [orders[first : first + size] for first in range(0, len(orders), size)]
                waiting += [pool.submit(self.write, batch) for batch in batches]
                while waiting:
                    yield waiting.pop(0).result()
            finally:
                for future in waiting:
                    future.cancel()

    def _land(self, rewrites: Sequence[Rewritten]) -> list[Rewritten]:
        """Commit groups; returns those of which fragments are others by now."""
        error: RetryableError | None = None
        for _ in range(_ATTEMPTS):
            now = self.done.snapshot.checkout()
            fitting = [r for r in rewrites if _holds(r, now)]
            if fitting:
                try:
                    self._commit(now, [Rewritten(now.version, r.old, r.new) for r in fitting])
                except RetryableError as found:
                    error = found
                    continue
            return [r for r in rewrites if not _holds(r, now)]
        assert error is not None
        raise error

    def _commit(self, now: Snapshot, fitting: list[Rewritten]) -> None:
        prepared = prepare(now, fitting, self.options, self._followed if self.follow else None)
        written = {metadata.uuid for metadata in prepared.followed.written}
        try:
            self.done.snapshot = prepared.commit(self.properties)
        except KNOWN:
            raise
        except BaseException:
            self.in_doubt += fitting
            self.segments |= written
            raise
        self.segments |= written
        self.done.landed += fitting
        self.done.commits += 1

    def _followed(self, now: Snapshot, segments: Sequence[Segment], groups: Sequence[RewriteGroup]) -> Sequence[Fate]:
        assert self.follow is not None
        orders = [FollowOrder(now.version, s.uuid, tuple(groups), self.change) for s in segments]
        return self.follow(orders) if orders else []


def _holds(rewritten: Rewritten, now: Snapshot) -> bool:
    """Return whether the fragments that were written anew are still what they were."""
    present = set(now.fragments.ids())
    return all(f.id in present and now.fragment(f.id) == f for f in rewritten.old)
