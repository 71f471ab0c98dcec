"""Compaction: plans groups of fragments, which any process can rewrite, and commits them together or in batches.

`compact` writes all groups with threads and commits them together. `compact_in_parts` lets other processes write them,
commits each batch as soon as it is written, and replans only groups that conflict with another writer.

data/{transaction}-{uuid}.lance    new files of other processes, even of dead ones: see `wire.paths`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from lance_duck.arrow.memory import release_unused
from lance_duck.commit import REFUSALS, ReserveFragments, Rewrite, RewriteGroup, commit, run_again
from lance_duck.errors import InvalidInputError, RetryableError, UnsupportedError
from lance_duck.index.segment_uuids import sweep_parts
from lance_duck.lazy import uncollected
from lance_duck.maintenance.costs import BATCHES_AHEAD, COMPACTION_RETRIES
from lance_duck.maintenance.dictionaries import divided_by_dictionaries, has_narrow_dictionaries
from lance_duck.maintenance.index_remap import Follow, RemappedSegments, amend_reuse, follow_indexes
from lance_duck.maintenance.options import CompactionOptions
from lance_duck.maintenance.plan import Candidate, plan_groups
from lance_duck.maintenance.rewrite import RewriteOrder, RewrittenGroup, target_version
from lance_duck.maintenance.segments import check_deferrable, covered_fragments, kept_fragments
from lance_duck.maintenance.sorting import SortKeys, are_sorted
from lance_duck.snapshot import Snapshot
from lance_duck.wire import paths
from lance_duck.wire.fragment import LEGACY, Fragment
from lance_duck.write import discard_fragments

Progress = Callable[[int, int], Any]

Write = Callable[[Snapshot, Sequence[RewriteOrder]], Sequence[RewrittenGroup]]
"""Function that writes the groups of a batch. It takes a version and the orders for the groups."""


@dataclass
class CompactionOutcome:
    """Outcome of a compaction.

    Attributes:
        snapshot: The newest version that the compaction read or committed.
        committed: Groups that were committed.
        commits: Number of commits.
        replanned: Number of groups that were replanned because other writers changed their fragments.
    """

    snapshot: Snapshot
    committed: list[RewrittenGroup] = field(default_factory=list)
    commits: int = 0
    replanned: int = 0


def plan_compaction(snapshot: Snapshot, options: CompactionOptions) -> list[tuple[Fragment, ...]]:
    """Return the groups of fragments that a compaction rewrites: all fragments if the table leaves format 0.1.

    Fragments whose dictionaries do not fit one data file are in different groups.

    Raises:
        UnsupportedError: `defer_index_remap` is set for a table with stable row ids, or some fragments of a table that
            leaves file format 0.1 cannot be rewritten.
    """
    check_deferrable(snapshot, options)
    excluded = tuple({*options.excluded_fragment_ids, *kept_fragments(snapshot, options)})
    ends_legacy = _ends_legacy(snapshot, options)
    if ends_legacy and excluded:
        raise UnsupportedError(
            "a table of version 0.1 can only be upgraded as a whole",
            where=snapshot.uri,
            found=f"excluded fragments, or fragments of an index that cannot be remapped: {sorted(excluded)}",
            remedy="pass remap_indices=False without excluded_fragment_ids and rebuild the index, or keep "
            "the version with data_storage_version='0.1'",
        )
    with uncollected():
        settings = replace(options, excluded_fragment_ids=excluded)
        more: dict[str, Any] = {}
        if has_narrow_dictionaries(snapshot):
            more["divide"] = partial(divided_by_dictionaries, snapshot)
        if options.order_by:
            keys = SortKeys.of(snapshot.schema, options.orderings)
            more["is_sorted"] = lambda group: are_sorted(snapshot, [candidate.id for candidate in group], keys)
        groups = plan_groups(_candidates(snapshot), settings, everything=ends_legacy, **more)
        return [tuple(snapshot.fragment(c.id) for c in group) for group in groups]


def compact(
    snapshot: Snapshot,
    options: CompactionOptions,
    properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> CompactionOutcome:
    """Compact a table with threads of this process, and commit the result as one version.

    Args:
        snapshot: Version to start from. After a conflict with another writer, the newest version is planned again.
        options: Targets and limits.
        properties: Properties of the transaction.
        progress: Called with the number of groups written so far and the total.

    Raises:
        RetryableError: Each attempt conflicted with another writer.
    """
    return _Compaction(CompactionOutcome(snapshot), options, partial(_write_by_threads, progress), properties).run()


def compact_in_parts(
    snapshot: Snapshot,
    options: CompactionOptions,
    write: Write,
    *,
    batch: Callable[[int], int],
    follow: Follow | None = None,
    properties: Mapping[str, str] | None = None,
) -> CompactionOutcome:
    """Compact a table with other processes.

    A batch is committed as soon as it is written, while the next one is being written. If the table leaves file format
    0.1, all groups form a single batch. After an error, committed batches are kept, and the files of all other batches
    are removed.

    Args:
        snapshot: Version to start from.
        options: Targets and limits. If a plan reaches a limit, fragments after it are not compacted.
        write: Writes the groups of a batch. Several threads call it at once.
        batch: Returns the batch size for a number of groups.
        follow: Rewrites index segments. None rewrites them in this process.
        properties: Properties of the transactions.

    Raises:
        RetryableError: Each attempt at a group conflicted with another writer.
        UnsupportedError: The options have `order_by`.
    """
    refuse_order(options)
    batches = None if _ends_legacy(snapshot, options) else batch
    return _Compaction(CompactionOutcome(snapshot), options, write, properties, batches, follow, uuid4()).run()


def commit_rewrites(
    snapshot: Snapshot,
    rewrites: Sequence[RewrittenGroup],
    options: CompactionOptions | None = None,
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """Commit rewritten groups as one version. Any process may have rewritten them.

    Args:
        snapshot: The version that the groups were read from, or a newer version.
        rewrites: The groups, all read from the same version.
        options: How to treat indexes.
        properties: Properties of the transaction.

    Raises:
        InvalidInputError: The groups were read from different versions, or share a fragment.
        UnsupportedError: `defer_index_remap` is set for a table with stable row ids.
        RetryableError: Another writer changed one of the old fragments. Plan again.
    """
    if not rewrites:
        return snapshot
    options = options or CompactionOptions()
    check_deferrable(snapshot, options)
    read_versions = {r.read_version for r in rewrites}
    if len(read_versions) > 1:
        raise InvalidInputError(
            "the rewrites are based on different versions", where="compaction", found=sorted(read_versions)
        )
    ids = [f.id for r in rewrites for f in r.old]
    if len(set(ids)) != len(ids):
        raise InvalidInputError("two rewrites contain the same fragment", where="compaction", found=sorted(ids))
    read = snapshot.checkout(read_versions.pop())
    return prepare(read, rewrites, options).commit(properties)


@dataclass(frozen=True)
class PreparedCommit:
    """A commit of rewritten groups.

    Attributes:
        read: Version that the groups were read from.
        groups: The groups, with the ids of the new fragments.
        followed: Index segments that were remapped.
    """

    read: Snapshot
    groups: tuple[RewriteGroup, ...]
    followed: RemappedSegments

    def commit(self, properties: Mapping[str, str] | None) -> Snapshot:
        """Commit, and remove remapped segments if the commit is known to have failed."""
        operation = Rewrite(self.groups, self.followed.rewritten)
        try:
            return commit(self.read, operation, amend=amend_reuse(self.read, self.followed), properties=properties)
        except REFUSALS:
            self.followed.discard(self.read)
            raise


def prepare(
    read: Snapshot,
    rewrites: Sequence[RewrittenGroup],
    options: CompactionOptions,
    follow: Follow | None = None,
    change: UUID | None = None,
) -> PreparedCommit:
    """Reserve ids for the new fragments, and remap index segments to them.

    If a table leaves file format 0.1, ids are not reserved, because other writers cannot add fragments meanwhile.

    Args:
        read: Version that contains the old fragments.
        rewrites: The rewritten groups.
        options: How to treat indexes.
        follow: Rewrites index segments. None rewrites them in this process.
        change: First half of the UUIDs of segments that other processes write.
    """
    count = sum(len(r.new) for r in rewrites)
    if read.manifest.has_legacy_files and any(f.files[0].version != LEGACY for r in rewrites for f in r.new):
        first = max(read.manifest.max_fragment_id or 0, *read.fragments.ids()) + 1
    else:
        reserved = commit(read, ReserveFragments(count)) if count else read
        first = (reserved.manifest.max_fragment_id or 0) - count + 1
    groups = tuple(_numbered(rewrites, first))
    orders = [rewritten.order for rewritten in rewrites]
    return PreparedCommit(read, groups, follow_indexes(read, groups, options, orders, follow, change))


@dataclass
class _Compaction:
    """A compaction in progress.

    Attributes:
        done: The outcome so far.
        options: Targets and limits.
        write: Writes the groups of a batch.
        properties: Properties of the transactions.
        batch: Returns the batch size for a number of groups. None commits all groups together.
        follow: Rewrites index segments. None rewrites them in this process.
        change: UUID that marks the files and segments that other processes write.
        stays: New fragments that are committed, or whose commit has an unknown outcome.
        segments: UUIDs of index segments that are committed, or whose commit has an unknown outcome.
        lost: Ids of the fragments whose groups are replanned. None replans all fragments.
    """

    done: CompactionOutcome
    options: CompactionOptions
    write: Write
    properties: Mapping[str, str] | None
    batch: Callable[[int], int] | None = None
    follow: Follow | None = None
    change: UUID | None = None
    stays: list[Fragment] = field(default_factory=list)
    segments: set[UUID] = field(default_factory=set)
    lost: set[int] | None = None

    def run(self) -> CompactionOutcome:
        """Plan, write and commit until no group is left."""
        try:
            run_again(self.done.snapshot, self._round, COMPACTION_RETRIES)
        finally:
            if self.change is not None:
                self._sweep(self.change)
            release_unused()
        return self.done

    def _round(self, now: Snapshot) -> None:
        self.done.snapshot = now
        groups = plan_compaction(now, self.options)
        if self.lost is not None:
            groups = [group for group in groups if any(f.id in self.lost for f in group)]
        batches = self._batches(now, groups) if groups else ()
        lost = [group for batch in batches for group in self._land(batch)]
        if not lost:
            return
        ids = {f.id for group in lost for f in group.old}
        self.done.replanned += len(lost)
        self.lost = None if self.batch is None else ids
        raise RetryableError(
            f"other writers keep changing fragments {sorted(ids)}",
            where=now.uri,
            remedy="compact again when fewer writers are active",
        )

    def _batches(self, now: Snapshot, groups: Sequence[Sequence[Fragment]]) -> Iterator[Sequence[RewrittenGroup]]:
        """Yield batches in order, while the next one is written."""
        orders = [RewriteOrder(now.version, tuple(f.id for f in g), self.options, self.change) for g in groups]
        if self.batch is None:
            yield self.write(now, orders)
            return
        size = max(1, self.batch(len(orders)))
        with ThreadPoolExecutor(BATCHES_AHEAD, "lance_duck-compact") as pool:
            futures = [pool.submit(self.write, now, orders[i : i + size]) for i in range(0, len(orders), size)]
            try:
                while futures:
                    yield futures.pop(0).result()
            finally:
                for future in futures:
                    future.cancel()

    def _land(self, groups: Sequence[RewrittenGroup]) -> list[RewrittenGroup]:
        """Commit groups. Returns groups that were not committed because their fragments changed."""
        now = self.done.snapshot
        is_newest = self.batch is None or now.latest_version() == now.version  # one commit uses the version read
        try:
            return run_again(now if is_newest else now.checkout(), partial(self._commit, groups), COMPACTION_RETRIES)
        finally:
            stays = {file.path for fragment in self.stays for file in fragment.files}
            for group in groups:
                if not any(file.path in stays for fragment in group.new for file in fragment.files):
                    discard_fragments(now.store, group.new)

    def _commit(self, groups: Sequence[RewrittenGroup], now: Snapshot) -> list[RewrittenGroup]:
        unchanged = _unchanged(groups, now)
        lost = [group for group, holds in zip(groups, unchanged, strict=True) if not holds]
        if len(lost) == len(groups) or (lost and self.batch is None):
            return list(groups)
        landing = [replace(g, read_version=now.version) for g, holds in zip(groups, unchanged, strict=True) if holds]
        commit_ = prepare(now, landing, self.options, self.follow, self.change)
        try:
            self.done.snapshot = commit_.commit(self.properties)
        except REFUSALS:
            raise
        except BaseException:
            self._keep(commit_)
            raise
        self._keep(commit_)
        self.done.committed += landing
        self.done.commits += 1
        return lost

    def _keep(self, prepared: PreparedCommit) -> None:
        self.stays += [fragment for group in prepared.groups for fragment in group.new_fragments]
        self.segments |= {metadata.uuid for metadata in prepared.followed.written}

    def _sweep(self, change: UUID) -> None:
        """Remove uncommitted files of other processes. Never raises."""
        store = self.done.snapshot.store
        stays = {paths.data_stem(file.path) for fragment in self.stays for file in fragment.files}
        with suppress(Exception):  # a cleanup removes files that remain
            files = store.beginning(paths.transaction_data(change))
            if orphans := [path for path in files if paths.data_stem(path) not in stays]:
                store.delete(orphans)
        if self.follow is not None:
            sweep_parts(self.done.snapshot, change, self.segments)


def refuse_order(options: CompactionOptions) -> None:
    """Raise UnsupportedError if the rows of a compaction by several processes would have to be sorted."""
    if options.order_by:
        raise UnsupportedError(
            "several processes cannot sort rows together",
            where="compaction",
            found="order_by",
            remedy="use dataset.optimize.compact_files(order_by=…)",
        )


def _ends_legacy(snapshot: Snapshot, options: CompactionOptions) -> bool:
    """Return whether files of format 0.1 are rewritten in a newer format."""
    return snapshot.manifest.has_legacy_files and target_version(snapshot, options) != LEGACY


def _unchanged(groups: Sequence[RewrittenGroup], now: Snapshot) -> list[bool]:
    """Return whether each group's fragments are unchanged and covered by the same index segments."""
    if all(group.read_version == now.version for group in groups):
        return [True] * len(groups)
    present, indexes = now.fragments.id_set, _covering(now)
    return [
        all(f.id in present and now.fragment(f.id) == f for f in group.old)
        and len({frozenset(indexes.get(f.id, ())) for f in group.old}) == 1
        for group in groups
    ]


def _write_by_threads(
    progress: Progress | None, snapshot: Snapshot, orders: Sequence[RewriteOrder]
) -> Sequence[RewrittenGroup]:
    """Write groups with threads of this process. If one fails, the files of all groups are removed."""
    groups: list[RewrittenGroup] = []
    with ThreadPoolExecutor(orders[0].options.writers, "lance_duck-compact") as pool:
        futures = [pool.submit(order.write, snapshot) for order in orders]
        try:
            for future in futures:
                groups.append(future.result())
                if progress is not None:
                    progress(len(groups), len(orders))
        except BaseException:
            for future in futures:
                future.cancel()
            for future in futures:
                if not future.cancelled() and future.exception() is None:
                    discard_fragments(snapshot.store, future.result().new)
            raise
    return groups


def _numbered(rewrites: Iterable[RewrittenGroup], first: int) -> Iterator[RewriteGroup]:
    for group in rewrites:
        new = tuple(replace(f, id=first + i) for i, f in enumerate(group.new))
        first += len(new)
        yield RewriteGroup(group.old, new)


def _covering(snapshot: Snapshot) -> dict[int, set[object]]:
    """Return the index segments that cover each fragment. Only fragments with the same segments are joined."""
    segments: dict[int, set[object]] = {}
    for index in snapshot.indices:
        if index.fields:
            for fragment_id in covered_fragments(snapshot, index).tolist():
                segments.setdefault(fragment_id, set()).add(index.uuid)
    return segments


def _candidates(snapshot: Snapshot) -> Iterator[Candidate]:
    segments = _covering(snapshot)
    for fragment in snapshot.fragments:
        physical = snapshot.physical_rows(fragment)
        yield Candidate(
            fragment.id,
            physical,
            physical - snapshot.num_rows(fragment),
            sum(file.file_size or 0 for file in fragment.all_files),
            len(fragment.overlays),
            frozenset(segments.get(fragment.id, ())),
        )
