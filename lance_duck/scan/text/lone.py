"""The fast way of searches for words.

It has one shape: one partition of an index covers all rows, documents are rows, no filter applies, and the query is
words or a phrase in one column. Everything that does not depend on the query is prepared. For other searches, the fast
way returns None. `TextScan` then searches the ordinary way, and finds the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from lance_duck.cache import LruCache, SizedCache
from lance_duck.index.inverted.search import (
    BestOfPhrase,
    BestOfTerms,
    PhraseOrder,
    WeightedTerms,
    in_order,
    prepared_phrase,
    prepared_terms,
)
from lance_duck.index.search import held_segment
from lance_duck.interrupts import Stopped
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


class BestRows(NamedTuple):
    """The rows with the highest scores, best first.

    Attributes:
        scores: float32 (n,).
        addresses: uint64 (n,).
    """

    scores: Scores
    addresses: Addresses


class LoneColumn:
    """The fast way of searches for words in a column. Safe to use from several threads.

    Args:
        snapshot: The version of the table.
        route: Route to the column.
        place: All documents of the column.
    """

    def __init__(self, snapshot: Snapshot, route: TextRoute, place: IndexedRows) -> None:
        (segment,) = route.segments
        self._opened = held_segment(snapshot, segment)
        self._index = self._opened.index
        self._kind = segment.kind.name
        self._analyser = route.analyser
        self._place = place
        self._statistics = Statistics(place.num_documents, place.total_tokens, route.rounds_lengths)
        self._average = float(self._statistics.average)
        self._mask = place.allowed(None, None)
        self._known: LruCache[tuple[int, np.float32]] = LruCache(_MOST_TERMS)
        self._prepared: SizedCache[BestOfTerms | BestOfPhrase] = SizedCache(_MOST_BYTES, lambda each: each.nbytes)

    @property
    def nbytes(self) -> int:
        """Size of the segment and of prepared queries in memory, in bytes."""
        return int(self._index.nbytes) + self._prepared.nbytes

    def best(self, query: MatchQuery | PhraseQuery, k: int) -> BestRows | None:
        """Return the best rows, at most `k`, or None if the query must go the ordinary way."""
        if self._opened.index is not self._index or is_watched():  # another search found that the segment is corrupt
            return None
        try:
            prepared = self._of(query) if k < self._place.num_documents else None
            if prepared is None:
                return None
            keys = self._place.keys
            documents, scores = in_order(*prepared.best(k), keys, k)
        except Stopped:
            raise
        except Exception:  # the ordinary way fails, too, and finds out whether the segment is corrupt
            return None
        INDEX_USES.add(self._kind)
        return BestRows(scores, self._place.addresses[documents])

    def _of(self, query: MatchQuery | PhraseQuery) -> BestOfTerms | BestOfPhrase | None:
        """Return the search for a query, which is prepared when the query is first seen. None if that is impossible."""
        how = query.slop if isinstance(query, PhraseQuery) else query.operator
        prepared = self._prepared.find((query.query, how))
        if prepared is None:
            prepared = self._made(query)
            if prepared is not None:
                self._prepared.put((query.query, how), prepared)
        return prepared

    def _made(self, query: MatchQuery | PhraseQuery) -> BestOfTerms | BestOfPhrase | None:
        tokens = self._analyser.terms_of_query(query.query)
        places = [token.position for token in tokens]
        if not all(one < other for one, other in pairwise(places)):
            return None
        every = isinstance(query, PhraseQuery) or query.operator is FullTextOperator.AND
        terms = self._weighted([token.text.encode() for token in tokens], every=every)
        if not terms.can_match:
            return None
        partition, average, keys = self._place.partition, self._average, self._place.keys
        if not isinstance(query, PhraseQuery) or len(tokens) < 2:
            return prepared_terms(partition, terms, average, keys, self._mask)
        order = PhraseOrder(np.array(places, np.int64), query.slop)
        return prepared_phrase(partition, terms, order, average, keys, self._mask)

    def _weighted(self, terms: Sequence[bytes], *, every: bool) -> WeightedTerms:
        """Return the terms with their ids and weights."""
        found = {term: self._known.find(term) for term in terms}
        missing = [term for term, known in found.items() if known is None]
        if missing:
            ids, frequencies = self._place.partition.term_ids(missing).tolist(), self._place.frequencies(missing)
            for term, number in zip(missing, ids, strict=True):
                found[term] = self._known.put(term, (number, self._statistics.idf(frequencies.get(term, 0))))
        pairs = [known for term in terms if (known := found[term]) is not None]
        weights = np.array([idf for _, idf in pairs], np.float32)
        return WeightedTerms.plain(np.array([number for number, _ in pairs], np.int64), weights, every=every)


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
    if len(route.segments) != 1 or route.by_element or (route.open and not fast):
        return None

    def make() -> LoneColumn | None:
        try:
            places = segment_rows(snapshot, route.segments[0])
            is_lone = len(places) == 1 and places[0].num_documents and places[0].total_tokens
            return LoneColumn(snapshot, route, places[0]) if is_lone else None
        except BrokenSegmentError:  # the ordinary way sets the segment aside
            return None

    return snapshot.derived(("lone text column", route), make)


def lone_query(query: FullTextQuery) -> MatchQuery | PhraseQuery | None:
    """Return a query in the form of the fast way: exact words or a phrase in one column. None for other queries."""
    if isinstance(query, MatchQuery):
        return query if query.boost == 1 and query.fuzziness == 0 and query.analyzer is None else None
    return query if isinstance(query, PhraseQuery) and query.analyzer is None else None
