"""Compaction plans: pure functions that select the fragments to rewrite together from the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lance_duck.maintenance.options import CompactionOptions


@dataclass(frozen=True)
class Candidate:
    """The properties of a fragment that a plan depends on.

    Attributes:
        id: Id of the fragment.
        physical_rows: Number of rows, including deleted rows.
        deleted_rows: Number of deleted rows.
        num_bytes: Total size of its data files, in bytes.
        overlays: Number of its overlays.
        indices: Index segments that cover it. Only fragments with the same segments are joined.
        is_outgrown: Whether a dictionary has more entries than its index type can count.
    """

    id: int
    physical_rows: int
    deleted_rows: int = 0
    num_bytes: int = 0
    overlays: int = 0
    indices: frozenset[object] = frozenset()
    is_outgrown: bool = False

    @property
    def live_rows(self) -> int:
        """Number of rows that are not deleted."""
        return self.physical_rows - self.deleted_rows

    def is_small(self, options: CompactionOptions) -> bool:
        """Return whether the fragment has fewer rows than the target and should be joined with neighbours."""
        return self.physical_rows < options.target_rows_per_fragment

    def is_worn(self, options: CompactionOptions) -> bool:
        """Return whether deletions or overlays are sufficient reason to rewrite the fragment."""
        part = self.deleted_rows / max(self.physical_rows, 1)
        if self.is_outgrown or self.overlays > options.max_overlays_per_fragment:
            return True
        return options.materialize_deletions and part > options.materialize_deletions_threshold


def plan_groups(
    candidates: Iterable[Candidate],
    options: CompactionOptions,
    *,
    everything: bool = False,
    divide: Callable[[list[Candidate]], Iterable[list[Candidate]]] = lambda group: [group],
    is_sorted: Callable[[list[Candidate]], bool] | None = None,
) -> list[list[Candidate]]:
    """Return groups of consecutive fragments to rewrite together.

    Args:
        candidates: All fragments, in table order.
        options: Targets and limits.
        everything: Whether to rewrite all fragments, regardless of the limits.
        divide: Splits a group into groups that fit one data file. Called lazily, within the limits.
        is_sorted: Returns whether the rows of fragments are in order. Fragments with other rows are rewritten together,
            regardless of the limits. None if rows are not sorted.
    """
    groups: list[list[Candidate]] = []
    if is_sorted is not None:
        excluded = set(options.excluded_fragment_ids)
        for run in _neighbours(candidates, lambda one: everything or one.id not in excluded):
            for part in divide(run):
                groups += [part] if not is_sorted(part) else plan_groups(part, options, everything=everything)
        return groups
    if everything:
        for run in _neighbours(candidates, lambda _: True):
            groups += _cut(run, options.target_rows_per_fragment)
        return groups
    whole = (group for run in _runs(candidates, options) for group in _cut(run, options.target_rows_per_fragment))
    parts = (part for group in whole for part in divide(group))
    return list(_within_limits((part for part in parts if len(part) > 1 or part[0].is_worn(options)), options))


def fragments_for(live_rows: int, options: CompactionOptions) -> int:
    """Return how many fragments of about equal size a group of `live_rows` rows becomes."""
    return max(1, live_rows // options.target_rows_per_fragment)


def _runs(candidates: Iterable[Candidate], options: CompactionOptions) -> Iterator[list[Candidate]]:
    """Yield runs of neighbours that should be rewritten."""
    excluded = set(options.excluded_fragment_ids)
    return _neighbours(
        candidates, lambda one: one.id not in excluded and (one.is_small(options) or one.is_worn(options))
    )


def _neighbours(candidates: Iterable[Candidate], belongs: Callable[[Candidate], bool]) -> Iterator[list[Candidate]]:
    """Yield runs of consecutive fragments that may be joined. Ids ascend: fragment reuse indexes require it."""
    run: list[Candidate] = []
    for candidate in candidates:
        is_candidate = belongs(candidate)
        if run and not (is_candidate and candidate.indices == run[0].indices and candidate.id > run[-1].id):
            yield run
            run = []
        if is_candidate:
            run.append(candidate)
    if run:
        yield run


def _cut(run: Sequence[Candidate], target: int) -> Iterator[list[Candidate]]:
    """Split a run into groups of at least `target` rows each. A smaller remainder joins the last group."""
    rest = sum(c.live_rows for c in run)
    group: list[Candidate] = []
    rows = 0
    for candidate in run:
        group.append(candidate)
        rows += candidate.live_rows
        rest -= candidate.live_rows
        if rows >= target and rest >= target:
            yield group
            group, rows = [], 0
    if group:
        yield group


def _within_limits(groups: Iterable[list[Candidate]], options: CompactionOptions) -> Iterator[list[Candidate]]:
    fragments = rows = num_bytes = 0
    for group in groups:
        fragments += len(group)
        rows += sum(c.live_rows for c in group)
        num_bytes += sum(c.num_bytes for c in group)
        if (
            fragments > (options.max_source_fragments or fragments)
            or rows > (options.max_source_rows or rows)
            or num_bytes > (options.max_source_bytes or num_bytes)
        ):
            return
        yield group
