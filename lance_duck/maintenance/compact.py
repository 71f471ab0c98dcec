"""Compaction: plan, write the groups anew side by side, commit them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from os import cpu_count
from typing import Any

from lance_duck.commit import ReserveFragments, Rewrite, RewriteGroup, commit, run_again
from lance_duck.errors import CommitConflictError, InvalidInputError, UnsupportedError
from lance_duck.maintenance.index_remap import Follow, Followed, amend_reuse, follow_indexes
from lance_duck.maintenance.options import CompactionOptions
from lance_duck.maintenance.plan import Candidate, plan_groups
from lance_duck.maintenance.rewrite import Rewritten, rewrite
from lance_duck.maintenance.segments import check_deferrable, covered_fragments, kept_fragments
from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import Fragment
from lance_duck.write import discard_fragments

Progress = Callable[[int, int], Any]

KNOWN = (CommitConflictError, InvalidInputError, UnsupportedError)
"""Errors of a commit after which there surely is no new version."""


def plan_compaction(snapshot: Snapshot, options: CompactionOptions) -> list[tuple[Fragment, ...]]:
    """Return the groups of fragments that a compaction writes anew.

    Raises:
        UnsupportedError: Indices of a table with stable row ids are to be remapped later.
    """
    check_deferrable(snapshot, options)
    excluded = tuple({*options.excluded_fragment_ids, *kept_fragments(snapshot, options)})
    groups = plan_groups(_candidates(snapshot), replace(options, excluded_fragment_ids=excluded))
    return [tuple(snapshot.fragment(c.id) for c in group) for group in groups]


def compact(
    snapshot: Snapshot,
    options: CompactionOptions,
    properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> tuple[Snapshot, list[Rewritten]]:
    """Compact a table.

    Args:
        snapshot: Version to begin with; where another writer is in the way, the newest is planned anew.
        options: Targets and limits.
        properties: Kept in the transaction.
        progress: Called with the groups done and all of them.

    Returns:
        The new version, the given one when there was nothing to do; and what was written.

    Raises:
        RetryableError: Other writers were in the way each time.
    """

    def attempt(current: Snapshot) -> tuple[Snapshot, list[Rewritten]]:
        groups = plan_compaction(current, options)
        if not groups:
            return current, []
        done = list(_rewrite_all(current, groups, options, progress))
        try:
            prepared = prepare(current, done, options)
        except BaseException:
            _discard(current, done)
            raise
        try:
            return prepared.commit(properties), done
        except KNOWN:
            _discard(current, done)
            raise

    return run_again(snapshot, attempt)


def commit_rewrites(
    snapshot: Snapshot,
    rewrites: Sequence[Rewritten],
    options: CompactionOptions | None = None,
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """Commit groups that were written anew, perhaps elsewhere, as one change.

    Args:
        snapshot: Any version from the one that the groups were read in on.
        rewrites: The groups, all read in one version.
        options: What becomes of indices.
        properties: Kept in the transaction.

    Raises:
        InvalidInputError: The groups are of several versions, or share a fragment.
        UnsupportedError: Indices of a table with stable row ids are to be remapped later.
        RetryableError: Another writer changed one of the old fragments; plan again.
    """
    if not rewrites:
        return snapshot
    options = options or CompactionOptions()
    check_deferrable(snapshot, options)
    read_versions = {r.read_version for r in rewrites}
    if len(read_versions) > 1:
        raise InvalidInputError("rewrites of several versions", where="compaction", found=sorted(read_versions))
    ids = [f.id for r in rewrites for f in r.old]
    if len(set(ids)) != len(ids):
        raise InvalidInputError("a fragment in two rewrites", where="compaction", found=sorted(ids))
    read = snapshot.checkout(read_versions.pop())
    return prepare(read, rewrites, options).commit(properties)


@dataclass(frozen=True)
class Prepared:
    """All that there is to commit.

    Attributes:
        read: Version that the groups were read in.
        groups: With the ids of the new fragments.
        followed: What index segments have done.
    """

    read: Snapshot
    groups: tuple[RewriteGroup, ...]
    followed: Followed

    def commit(self, properties: Mapping[str, str] | None) -> Snapshot:
        """Commit it; where that surely failed, what index segments have done is removed."""
        operation = Rewrite(self.groups, self.followed.rewritten)
        try:
            return commit(self.read, operation, amend=amend_reuse(self.read, self.followed), properties=properties)
        except KNOWN:
            self.followed.discard(self.read)
            raise


def prepare(
    read: Snapshot, rewrites: Sequence[Rewritten], options: CompactionOptions, follow: Follow | None = None
) -> Prepared:
    """Reserve ids for the new fragments, and let index segments follow.

    Args:
        read: Version that the old fragments are of.
        rewrites: What was written.
        options: What becomes of indices.
        follow: Writes their segments; None: here.
    """
    count = sum(len(r.new) for r in rewrites)
    reserved = commit(read, ReserveFragments(count)) if count else read
    first = (reserved.manifest.max_fragment_id or 0) - count + 1
    groups = tuple(_numbered(rewrites, first))
    return Prepared(read, groups, follow_indexes(read, groups, options, follow))


def _discard(snapshot: Snapshot, rewrites: Iterable[Rewritten]) -> None:
    for rewritten in rewrites:
        discard_fragments(snapshot.store, rewritten.new)


def _numbered(rewrites: Iterable[Rewritten], first: int) -> Iterator[RewriteGroup]:
    for rewritten in rewrites:
        new = tuple(replace(f, id=first + i) for i, f in enumerate(rewritten.new))
        first += len(new)
        yield RewriteGroup(rewritten.old, new)


def _rewrite_all(
    snapshot: Snapshot, groups: Sequence[Sequence[Fragment]], options: CompactionOptions, progress: Progress | None
) -> Iterator[Rewritten]:
    """Write all groups; when one fails, what the others wrote is removed."""
    done: list[Rewritten] = []
    with ThreadPoolExecutor(options.num_threads or cpu_count() or 1, "lance_duck-compact") as pool:
        futures = [pool.submit(rewrite, snapshot, group, options) for group in groups]
        try:
            for future in futures:
                done.append(future.result())
                if progress is not None:
                    progress(len(done), len(groups))
        except BaseException:
            for future in futures:
                future.cancel()
            for future in futures:
                if not future.cancelled() and future.exception() is None:
                    discard_fragments(snapshot.store, future.result().new)
            raise
    return iter(done)


def _candidates(snapshot: Snapshot) -> Iterator[Candidate]:
    covered: dict[int, set[object]] = {}
    for index in snapshot.indices:
        if index.fields:
            for fragment_id in covered_fragments(snapshot, index).tolist():
                covered.setdefault(fragment_id, set()).add(index.uuid)
    for fragment in snapshot.fragments:
        physical = snapshot.physical_rows(fragment)
        yield Candidate(
            fragment.id,
            physical,
            physical - snapshot.num_rows(fragment),
            sum(file.file_size or 0 for file in fragment.files),
            frozenset(covered.get(fragment.id, ())),
        )
