"""The fast way of searches with one query.

It has one shape: one segment covers all rows of the table, all of them are live, no filter applies, and the table is
local. Everything that does not depend on the query is prepared. For other searches, and for queries with an unusual
result, the fast way returns None. `PreparedSearch` then searches the ordinary way, and finds the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import lt
from typing import NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.catalog import Segment
from lance_duck.index.search import ask, held_segment
from lance_duck.index.vector.search.contract import SingleSearch, VectorIndex
from lance_duck.interrupts import Stopped
from lance_duck.scan.nearest.best import Neighbours
from lance_duck.scan.nearest.covered import CoveredVectors, covered_vectors
from lance_duck.scan.nearest.hits import USUAL
from lance_duck.scan.nearest.search import PreparedSearch, SegmentProbe, probe_of
from lance_duck.store.request import is_watched
from lance_duck.telemetry.metrics import INDEX_USES


class NearRows(NamedTuple):
    """The nearest rows of one query, ordered by distance, then by address.

    Attributes:
        distances: float32 (k,).
        addresses: uint64 (k,).
    """

    distances: NDArray[np.float32]
    addresses: NDArray[np.uint64]

    def neighbours(self) -> Neighbours:
        """Return the rows as pairs with query 0."""
        return Neighbours(np.zeros(len(self.distances), np.int64), self.distances, self.addresses)


class LoneSearch:
    """A prepared search in one segment, for one query at a time. Safe to use from several threads.

    Args:
        search: The search.
        segment: The segment.
        rows: Rows of the segment.
        probe: Settings for the search of the segment.
    """

    def __init__(self, search: PreparedSearch, segment: Segment, rows: CoveredVectors, probe: SegmentProbe) -> None:
        self._search = search
        self._opened = held_segment(search.table.snapshot, segment)
        self._index: VectorIndex = self._opened.index
        self._rows = rows
        self._addresses = rows.known_addresses
        self._probe = probe
        self._kind = segment.kind.name
        self._is_cosine = search.route.metric == "cosine"
        self._walk: Callable[[], SingleSearch | None] = _nothing

    @property
    def nbytes(self) -> int:
        """Size of the segment and of the row addresses in memory, in bytes."""
        return self._index.nbytes + (0 if self._addresses is None else self._addresses.nbytes)

    def nearest(self, query: NDArray[np.float32]) -> NearRows | None:
        """Return the nearest rows of a query, or None if the query must go the ordinary way.

        Args:
            query: float32 (dim,), finite.
        """
        if self._opened.index is not self._index or is_watched():  # another search found that the segment is corrupt
            return None
        if self._addresses is None and self._rows.is_known:
            self._addresses = self._rows.known_addresses
            if self._addresses is None:
                return None
        try:
            found = self._found(query)
        except Stopped:
            raise
        except Exception:  # the ordinary way fails, too, and finds out whether the segment is corrupt
            return None
        if found is not None:
            INDEX_USES.add(self._kind)
        return found

    def _found(self, query: NDArray[np.float32]) -> NearRows | None:
        if self._is_cosine and not query.any():
            return None
        walk = self._walk()
        hits = self._hits(query) if walk is None else walk.nearest(query)
        if hits is None:
            return None
        distances, positions = hits
        addresses = self._rows.found(positions) if self._addresses is None else self._addresses.take(positions)
        if addresses is None:
            return None
        if self._probe.is_refined:
            return self._refined(query, distances, addresses)
        numbers: list[float] = distances.tolist()
        if not all(map(lt, numbers, numbers[1:])):  # ties, NaN, or an order that differs in the last bits
            order = np.lexsort((addresses, distances))
            distances, addresses = distances[order], addresses[order]
            numbers = distances.tolist()
        is_usual = numbers[0] > -USUAL and numbers[-1] < USUAL  # NaN is last
        return NearRows(distances, addresses) if is_usual else None

    def _hits(self, query: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """Return distances and positions of as many neighbours as the probe requests, or None if there are fewer."""
        count, probe = self._probe.candidates, self._probe.probe
        walk = self._index.walk(count, probe)
        if walk is None:
            hits = self._index.search(query[None], count, None, probe)
            return None if hits.positions.min() < 0 else (hits.distances[0], hits.positions[0])
        self._walk = ref(walk)  # the segment may drop the partition to save memory
        return walk.nearest(query)

    def _refined(
        self, query: NDArray[np.float32], distances: NDArray[np.float32], addresses: NDArray[np.uint64]
    ) -> NearRows | None:
        """Rank candidates by their original vectors."""
        if not (distances.min() > -USUAL and distances.max() < USUAL):
            return None
        candidates = NearRows(distances, addresses).neighbours()
        ranked = self._search.exact.rerank(self._search.question(query[None]), candidates)
        return NearRows(ranked.distances, ranked.addresses)


def _nothing() -> None:
    """Return None, like a weak reference to a dropped object."""


def lone_search(search: PreparedSearch) -> LoneSearch | None:
    """Return the fast way of a search, or None if it does not have one."""
    plan, column = search.plan, search.nearest.column
    is_whole = plan.filter is None and search.post is None and not column.is_many and search.is_plain
    if not is_whole or column.query_dtype != np.float32 or search.exact.is_remote or not search.k:
        return None
    ((segment, fragment_ids),) = search.route.segments

    def make(index: VectorIndex) -> LoneSearch | None:
        rows = covered_vectors(search.table.snapshot, segment, index)
        mask, count = rows.presumed(fragment_ids)
        probe = None if mask is not None else probe_of(search, segment, fragment_ids)
        return None if probe is None or probe.candidates > count else LoneSearch(search, segment, rows, probe)

    return ask(search.table.snapshot, segment, make)
