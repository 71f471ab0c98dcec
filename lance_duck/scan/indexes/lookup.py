"""Runs the index lookups of a plan, the most selective first. Lookups that cost more than they save are skipped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.catalog import Segment
from lance_duck.index.query import Among, Between
from lance_duck.index.search import estimate, search
from lance_duck.rows import split_addresses
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import ANSWER_ROWS, ANSWER_SHARE, LOOKED_AT_ROWS, LOOKUP_ROWS
from lance_duck.scan.indexes.bounds import NOTHING, RowBounds, beside
from lance_duck.scan.indexes.plan import AllOf, AnyOf, ByName, IndexLeaf, IndexPlan, Open
from lance_duck.scan.projection import ROW_ID
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.with_log import refuse_row_ids
from lance_duck.store import local_path
from lance_duck.store.costs import REQUESTS_AT_ONCE
from lance_duck.telemetry.metrics import INDEX_USES


@dataclass
class LookupOutcome:
    """Outcome of the lookup of one plan leaf, for query plans.

    Attributes:
        part: The leaf.
        rows: Number of rows that each segment returned, by segment UUID. None marks a corrupt segment.
        refused: The reason why no index was searched. Empty if an index was searched.
    """

    part: IndexLeaf | ByName
    rows: dict[str, int | None] = field(default_factory=dict)
    refused: str = ""


class IndexRows:
    """Searches the indexes of one version. Each leaf is searched at most once.

    Args:
        snapshot: The version.
        fragments: Ids of the fragments to search.
        estimates: Maximum row count of each leaf in these fragments, by the leaf's `id()`. New estimates are added.

    Attributes:
        log: Outcomes of the leaves that were considered, in order.
    """

    def __init__(
        self, snapshot: Snapshot, fragments: frozenset[int], estimates: dict[int, int | None] | None = None
    ) -> None:
        self._snapshot = snapshot
        self._fragments = fragments
        self._estimates: dict[int, int | None] = {} if estimates is None else estimates
        self.log: list[LookupOutcome] = []

    def bounds(self, plan: IndexPlan) -> RowBounds:
        """Return the bounds of a plan."""
        return self._bounds(plan, self._fragments)

    def each(self, plans: Sequence[IndexPlan]) -> list[RowBounds]:
        """Return the bounds of each plan, for plans joined by AND. If few rows remain, later plans get `NOTHING`."""
        return self._each(plans, self._fragments)

    def expected(self, plan: IndexPlan) -> int | None:
        """Return the maximum row count of a plan in the covered fragments, or None if unknown. Reads little data."""
        return self._expected(plan)

    def closes(self, plan: IndexPlan) -> frozenset[int]:
        """Return the fragments that the bounds of a plan will cover. Indexes are read only for estimates."""
        match plan:
            case Open():
                return frozenset()
            case ByName():
                return self._fragments if _has_order(self._snapshot, plan) else frozenset()
            case IndexLeaf():
                if self._too_many(plan):
                    return frozenset()
                return _common(self._fragments, self._covered(plan))
            case AllOf(parts):
                closed = [self.closes(part) for part in parts]
                return frozenset().union(*closed) if parts else self._fragments
            case AnyOf(parts):
                return reduce(frozenset.intersection, map(self.closes, parts), self._fragments)

    def _bounds(self, plan: IndexPlan, fragments: frozenset[int]) -> RowBounds:
        match plan:
            case Open():
                return NOTHING
            case IndexLeaf():
                return self._leaf(plan, fragments)
            case ByName():
                return self._named(plan, fragments)
            case AllOf(parts):
                return reduce(RowBounds.__and__, self._each(parts, fragments)) if parts else NOTHING
            case AnyOf(parts):
                fragments &= self.closes(plan)
                bounds = [self._bounds(part, fragments) for part in parts]
                nothing = RowSet({})
                return reduce(RowBounds.__or__, bounds, RowBounds(nothing, nothing, fragments))

    def _each(self, plans: Sequence[IndexPlan], fragments: frozenset[int]) -> list[RowBounds]:
        if len(plans) == 1:
            return [self._bounds(plans[0], fragments)]
        bounds = [NOTHING] * len(plans)
        total = NOTHING
        for place in sorted(range(len(plans)), key=lambda i: self._order(plans[i])):
            plan = plans[place]
            if isinstance(plan, Open):
                continue
            if _within(fragments, total.closed) and self._not_worth(plan, len(total.maybe)):
                self._refuse(plan, "other indexes already leave few rows")
                continue
            needed = fragments - (total.closed - set(total.maybe.fragment_ids)) if total.closed else fragments
            bounds[place] = self._bounds(plan, needed)
            total = total & bounds[place]
        return bounds

    def _not_worth(self, plan: IndexPlan, rows: int) -> bool:
        if rows <= LOOKED_AT_ROWS:
            return True
        expected = self._expected(plan)
        return expected is not None and expected > LOOKUP_ROWS * rows

    def _order(self, plan: IndexPlan) -> tuple[bool, int]:
        expected = self._expected(plan)
        return expected is None, expected or 0

    def _leaf(self, leaf: IndexLeaf, fragments: frozenset[int]) -> RowBounds:
        outcome = LookupOutcome(leaf)
        self.log.append(outcome)
        if self._too_many(leaf):
            outcome.refused = "it would return most of the table"
            return NOTHING
        result = NOTHING
        for index in leaf.indexes:
            rest = fragments - result.closed if result.closed else fragments
            pairs = [(segment, _common(rest, self._fragments_of(segment))) for segment in index.segments]
            pairs = [pair for pair in pairs if pair[1]]
            if pairs:
                INDEX_USES.add(pairs[0][0].kind.name)
            for bounds in self._segments(pairs, leaf, outcome):
                result = beside(result, bounds)
            if _within(fragments, result.closed):
                break
        return result

    def _segments(
        self, pairs: Sequence[tuple[Segment, frozenset[int]]], leaf: IndexLeaf, outcome: LookupOutcome
    ) -> Iterator[RowBounds]:
        """Search segments, each for some of its fragments. The segments are searched in parallel in an object store."""
        if len(pairs) < 2 or local_path(self._snapshot.uri) is not None:
            for segment, fragments in pairs:
                yield self._segment(segment, leaf, fragments, outcome)
            return
        with ThreadPoolExecutor(min(len(pairs), REQUESTS_AT_ONCE), thread_name_prefix="lance_duck-index") as pool:
            yield from pool.map(lambda pair: self._segment(pair[0], leaf, pair[1], outcome), pairs)

    def _segment(
        self, segment: Segment, leaf: IndexLeaf, fragments: frozenset[int], outcome: LookupOutcome
    ) -> RowBounds:
        answer = search(self._snapshot, segment, leaf.query)
        outcome.rows[str(segment.uuid)] = None if answer is None else len(answer.maybe)
        if answer is None:
            return NOTHING
        maybe = answer.maybe if len(fragments) == len(segment.fragments) else answer.maybe.only(fragments)
        return RowBounds(maybe if answer.is_exact else answer.sure.only(fragments), maybe, fragments)

    def _named(self, plan: ByName, fragments: frozenset[int]) -> RowBounds:
        outcome = LookupOutcome(plan)
        self.log.append(outcome)
        if not _has_order(self._snapshot, plan):
            outcome.refused = "ranges of stable row ids cannot be looked up"
            return NOTHING
        rows = _rows_named(self._snapshot, plan, fragments)
        outcome.rows[""] = len(rows)
        return RowBounds(rows, rows, fragments)

    def _rows(self, fragment_id: int) -> int:
        return self._snapshot.physical_rows(self._snapshot.fragment(fragment_id))

    def _refuse(self, plan: IndexPlan, reason: str) -> None:
        if isinstance(plan, IndexLeaf | ByName):
            self.log.append(LookupOutcome(plan, refused=reason))
        elif isinstance(plan, AllOf | AnyOf):
            for part in plan.parts:
                self._refuse(part, reason)

    def _too_many(self, leaf: IndexLeaf) -> bool:
        expected = self._expected(leaf)
        if expected is None or expected <= ANSWER_ROWS:
            return False
        covered = sum(self._rows(i) for i in self._covered(leaf) & self._fragments)
        return expected > ANSWER_SHARE * covered

    def _expected(self, plan: IndexPlan) -> int | None:
        match plan:
            case IndexLeaf():
                key = id(plan)
                if key not in self._estimates:
                    self._estimates[key] = self._estimate(plan)
                return self._estimates[key]
            case ByName(_, Among(values)):
                return len(values)
            case AllOf(parts) if parts:
                estimates = [e for part in parts if (e := self._expected(part)) is not None]
                return min(estimates) if estimates else None
            case AnyOf(parts):
                each = [self._expected(part) for part in parts]
                return None if None in each else sum(e for e in each if e is not None)
        return None

    def _estimate(self, leaf: IndexLeaf) -> int | None:
        total = 0
        covered: frozenset[int] = frozenset()
        for index in leaf.indexes:
            for segment in index.segments:
                fragments = _common(self._fragments_of(segment), self._fragments)
                if fragments <= covered:
                    continue
                covered = covered | fragments if covered else fragments
                rows = estimate(self._snapshot, segment, leaf.query)
                if rows is None:
                    return None
                total += rows
        return total

    def _fragments_of(self, segment: Segment) -> frozenset[int]:
        """Return the fragments of a segment. If they are all fragments, returns the set that `_common` recognizes."""
        every = self._snapshot.fragments.id_set
        return every if len(segment.fragments) == len(every) else segment.fragment_ids

    def _covered(self, leaf: IndexLeaf) -> frozenset[int]:
        parts = [self._fragments_of(s) for index in leaf.indexes for s in index.segments]
        return parts[0] if len(parts) == 1 else frozenset().union(*parts)


def _common(one: frozenset[int], other: frozenset[int]) -> frozenset[int]:
    """Return the intersection of two sets. If both are the same object, their members are not compared."""
    return one if one is other else one & other


def _within(part: frozenset[int], whole: frozenset[int]) -> bool:
    return part is whole or part <= whole


def _has_order(snapshot: Snapshot, plan: ByName) -> bool:
    """Return whether the rows of a plan can be looked up. Ranges of stable row ids cannot."""
    return isinstance(plan.query, Among) or not _by_stable_id(snapshot, plan)


def _rows_named(snapshot: Snapshot, plan: ByName, fragments: frozenset[int]) -> RowSet:
    """Return the rows of some fragments whose row ids or addresses satisfy a plan. They may include deleted rows."""
    if plan.column == ROW_ID:
        refuse_row_ids(snapshot)
    if isinstance(plan.query, Between):
        return RowSet.of_ranges(_ranges(snapshot, plan.query, fragments))
    names: NDArray[np.uint64] = plan.query.values.to_numpy()
    index = snapshot.row_id_index if _by_stable_id(snapshot, plan) else None
    if index is not None:
        addresses, lives = index.addresses(names)
        names = addresses[lives]
    ids, offsets = split_addresses(names)
    exists = np.zeros(len(names), np.bool_)
    for fragment_id in set(ids.tolist()) & fragments:
        in_fragment = ids == fragment_id
        exists[in_fragment] = offsets[in_fragment] < _count(snapshot, fragment_id)
    return RowSet.of(names[exists])


def _ranges(snapshot: Snapshot, query: Between, fragments: frozenset[int]) -> list[tuple[int, int, int]]:
    low = 0 if query.low is None else query.low.as_py() + query.low_open
    high = 2**64 if query.high is None else query.high.as_py() + (not query.high_open)
    ranges = []
    for fragment_id in fragments:
        first = fragment_id << 32
        start, stop = max(low - first, 0), min(high - first, _count(snapshot, fragment_id))
        if start < stop:
            ranges.append((fragment_id, start, stop))
    return ranges


def _by_stable_id(snapshot: Snapshot, plan: ByName) -> bool:
    return snapshot.has_stable_row_ids and plan.column == ROW_ID


def _count(snapshot: Snapshot, fragment_id: int) -> int:
    return snapshot.physical_rows(snapshot.fragment(fragment_id))
