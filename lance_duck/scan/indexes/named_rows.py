"""Conditions on `_rowid` and `_rowaddr`, answered like an index that every table has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.query import Among, Between
from lance_duck.rows import split_addresses
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.indexes.plan import ByName
from lance_duck.scan.projection import ROW_ID
from lance_duck.snapshot import Snapshot


def has_order(snapshot: Snapshot, plan: ByName) -> bool:
    """Return whether the rows of a plan can be looked up: ranges of stable row ids cannot."""
    return isinstance(plan.query, Among) or not _by_stable_id(snapshot, plan)


def rows_named(snapshot: Snapshot, plan: ByName, fragments: frozenset[int]) -> RowSet:
    """Return the rows of some fragments whose row ids or addresses satisfy a plan, perhaps with deleted rows."""
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
