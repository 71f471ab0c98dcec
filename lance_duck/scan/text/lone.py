"""The fast way of searches for words.

It has one shape: an index covers all rows, documents are rows, and the query is words or a phrase in one column. A
filter is a set of rows that pass. Everything that does not depend on the query is prepared. For other searches, the
fast way returns None. `TextScan` then searches the ordinary way, and finds the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import lt
from typing import Final, NamedTuple

import numpy as np

from lance_duck.cache import LruCache, SizedCache
from lance_duck.index.inverted.search import (
    BestOfPhrase,
    BestOfTerms,
    PhraseOrder,
    WeightedTerms,
    prepared_phrase,
    prepared_terms,
)
from lance_duck.index.search import held_segment
from lance_duck.interrupts import Stopped
from lance_duck.scan.nearest.passing_rows import PassingRows
from lance_duck.scan.text.bm25 import Scores, Statistics
from lance_duck.scan.text.indexed import BrokenSegmentError, IndexedRows, segment_rows
from lance_duck.scan.text.places import Addresses
from lance_duck.scan.text.query.tree import (
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    PhraseQuery,
)
from lance_duck.scan.text.route import TextRoute, text_route
from lance_duck.snapshot import Snapshot
from lance_duck.store.request import is_watched
from lance_duck.telemetry.metrics import INDEX_USES

_MOST_TERMS: Final = 1 << 12
"""Maximum number of terms whose ids and weights are cached for a column, in about half a megabyte."""

_MOST_BYTES: Final = 16 << 20
"""Maximum size of the queries that are prepared for a column, in bytes. This limits memory."""

_QUERY_BYTES: Final = 2 << 10
"""Estimated size of the objects for a prepared query, and for each search, in bytes."""


class BestRows(NamedTuple):
    """The rows with the highest scores, best first.

    Attributes:
        scores: float32 (n,).
        addresses: uint64 (n,).
    """

    scores: Scores
    addresses: Addresses


@dataclass(frozen=True, eq=False, slots=True)
class _LoneQuery:
    """A prepared query: its searches, each with the number of the document set."""

    searches: Sequence[tuple[int, BestOfTerms | BestOfPhrase]]

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return _QUERY_BYTES + sum(_QUERY_BYTES + search.nbytes for _, search in self.searches)


class LoneColumn:
    """The fast way of searches for words in a column. Safe to use from several threads.

    Args:
        snapshot: The version of the table.
        route: Route to the column.
        places: The document sets of the column, without empty ones.
    """

    def __init__(self, snapshot: Snapshot, route: TextRoute, places: Sequence[IndexedRows]) -> None:
        self._opened = [held_segment(snapshot, segment) for segment in route.segments]
        self._indexes = [opened.index for opened in self._opened]
        self._kind = route.segments[0].kind.name
        self._analyser = route.analyser
        self._places = places
        documents, tokens = (sum(place.num_documents for place in places), sum(place.total_tokens for place in places))
        self._statistics = Statistics(documents, tokens, route.rounds_lengths)
        self._average = float(self._statistics.average)
        self._masks = [place.allowed(None, None) for place in places]
        self._known: LruCache[tuple[Sequence[int], np.float32]] = LruCache(_MOST_TERMS // len(places))
        self._prepared: SizedCache[_LoneQuery] = SizedCache(_MOST_BYTES, lambda each: each.nbytes)

    @property
    def nbytes(self) -> int:
        """Size of the segments and of prepared queries in memory, in bytes."""
        return sum(int(index.nbytes) for index in self._indexes) + self._prepared.nbytes

    def best(self, query: MatchQuery | PhraseQuery, k: int, filtered: PassingRows | None) -> BestRows | None:
        """Return the best rows, or None if the query must go the ordinary way.

        Args:
            query: The query.
            k: Maximum number of rows, at least 1.
            filtered: Rows that pass the filter, or None if all rows pass.
        """
        if is_watched() or k >= self._statistics.num_documents:
            return None
        for opened, index in zip(self._opened, self._indexes, strict=True):
            if opened.index is not index:  # another search found that the segment is corrupt
                return None
        try:
            prepared = self._of(query)
            rows = None if prepared is None else self._found(prepared, k, filtered)
        except Stopped:
            raise
        except Exception:  # the ordinary way fails, too, and finds out whether the segment is corrupt
            return None
        if rows is not None:
            INDEX_USES.add(self._kind)
        return rows

    def _found(self, query: _LoneQuery, k: int, filtered: PassingRows | None) -> BestRows:
        parts = []
        for number, search in query.searches:
            place = self._places[number]
            mask = self._masks[number] if filtered is None else place.allowed(filtered, None)
            documents, scores = search.best(min(k, place.partition.num_documents), mask)
            if len(query.searches) == 1:
                return BestRows(scores, place.addresses[documents])
            parts.append((scores, place.addresses[documents], place.keys[documents]))
        if not parts:
            return BestRows(np.empty(0, np.float32), np.empty(0, np.uint64))
        scores, addresses, keys = map(np.concatenate, zip(*parts, strict=True))
        order = np.lexsort((keys, -scores))[:k]
        return BestRows(scores[order], addresses[order])

    def _of(self, query: MatchQuery | PhraseQuery) -> _LoneQuery | None:
        """Return the searches for a query, which are prepared when the query is first seen. None if impossible."""
        how = query.slop if isinstance(query, PhraseQuery) else query.operator
        prepared = self._prepared.find((query.query, how))
        if prepared is None:
            prepared = self._made(query)
            if prepared is not None:
                self._prepared.put((query.query, how), prepared)
        return prepared

    def _made(self, query: MatchQuery | PhraseQuery) -> _LoneQuery | None:
        tokens = self._analyser.terms_of_query(query.query)
        positions = [token.position for token in tokens]
        if not all(map(lt, positions, positions[1:])):
            return None
        every = isinstance(query, PhraseQuery) or query.operator is FullTextOperator.AND
        order = None
        if isinstance(query, PhraseQuery) and len(tokens) > 1:
            order = PhraseOrder(np.array(positions, np.int64), query.slop)
        terms = self._terms([token.text.encode() for token in tokens])
        weights = np.array([idf for _, idf in terms], np.float32)
        searches = []
        for number, place in enumerate(self._places):
            ids = np.array([ids[number] for ids, _ in terms], np.int64)
            weighted = WeightedTerms.plain(ids, weights, every=every)
            if not weighted.can_match:
                continue
            search = self._search(place, weighted, order)
            if search is None:
                return None
            searches.append((number, search))
        return _LoneQuery(searches)

    def _search(
        self, place: IndexedRows, terms: WeightedTerms, order: PhraseOrder | None
    ) -> BestOfTerms | BestOfPhrase | None:
        if order is None:
            return prepared_terms(place.partition, terms, self._average, place.keys)
        return prepared_phrase(place.partition, terms, order, self._average, place.keys)

    def _terms(self, terms: Sequence[bytes]) -> list[tuple[Sequence[int], np.float32]]:
        """Return the ids of each term, one for each document set, and its weight."""
        found = {term: self._known.find(term) for term in terms}
        missing = [term for term, known in found.items() if known is None]
        if missing:
            ids = [place.partition.term_ids(missing) for place in self._places]
            counts = [place.counts(missing, each) for place, each in zip(self._places, ids, strict=True)]
            for number, term in enumerate(missing):
                idf = self._statistics.idf(sum(each[number] for each in counts))
                found[term] = self._known.put(term, ([each.item(number) for each in ids], idf))
        return [known for term in terms if (known := found[term]) is not None]


def lone_column(
    snapshot: Snapshot, name: str, granularity: DocumentGranularity | None, *, fast: bool
) -> LoneColumn | None:
    """Return the fast way of searches in a column, or None if it does not have one. It is cached with the version.

    Args:
        snapshot: The version of the table.
        name: Path of the column.
        granularity: See `MatchQuery`.
        fast: Whether to ignore rows that no segment covers.

    Raises:
        InvalidInputError, UnsupportedError: See `text_route`.
    """
    route = text_route(snapshot, name, None, granularity)
    if not route.segments or route.by_element or (route.open and not fast):
        return None
    if any(segment.by_row_id != snapshot.has_stable_row_ids for segment in route.segments):
        return None

    def make() -> LoneColumn | None:
        try:
            every = [place for segment in route.segments for place in segment_rows(snapshot, segment)]
        except BrokenSegmentError:  # the ordinary way sets the segment aside
            return None
        places = [place for place in every if place.num_documents]
        return LoneColumn(snapshot, route, places) if any(place.total_tokens for place in places) else None

    return snapshot.derived(("lone text column", route), make)


def lone_query(query: FullTextQuery) -> MatchQuery | PhraseQuery | None:
    """Return a query in the form of the fast way: exact words or a phrase in one column. None for other queries."""
    if isinstance(query, MatchQuery):
        return query if query.boost == 1 and query.fuzziness == 0 and query.analyzer is None else None
    return query if isinstance(query, PhraseQuery) and query.analyzer is None else None
