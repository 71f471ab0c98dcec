"""The fast way of searches for words.

It has one shape: an index covers all rows except a few, documents are rows, and the query is words or a phrase in one
column. The other rows are analysed once. A filter is a set of rows that pass. Everything that does not depend on the
query is prepared. For other searches, the fast way returns None. `TextScan` then searches the ordinary way, and finds
the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import lt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lance_duck.cache import LruCache, SizedCache
from lance_duck.index.inverted.search import (
    BestOfPhrase,
    BestOfTerms,
    DirectSearch,
    PhraseOrder,
    WeightedTerms,
    prepared_phrase,
    prepared_terms,
)
from lance_duck.index.search import held_segment
from lance_duck.interrupts import Stopped
from lance_duck.scan.costs import FEW_ROWS, FEW_ROWS_BYTES
from lance_duck.scan.nearest.passing_rows import PassingRows
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.bm25 import Scores, Statistics
from lance_duck.scan.text.few_rows import FewRows
from lance_duck.scan.text.flat import FlatTexts
from lance_duck.scan.text.indexed import BrokenSegmentError, IndexedRows, segment_rows
from lance_duck.scan.text.places import Addresses, Place
from lance_duck.scan.text.query.tree import (
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    PhraseQuery,
)
from lance_duck.scan.text.query.words import Word
from lance_duck.scan.text.route import TextRoute, text_route
from lance_duck.snapshot import Snapshot
from lance_duck.store.request import is_watched
from lance_duck.telemetry.metrics import INDEX_USES

_MOST_TERMS: Final = 1 << 12
"""Maximum number of terms whose ids and weights are cached for a column, in about half a megabyte."""

_MOST_SEEN: Final = 1 << 12
"""Number of queries that are recognized when they are repeated, in about half a megabyte."""

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


_Part = tuple[int, NDArray[np.int64], Scores]
"""The number of a document set, its best documents, and their scores."""


class _LoneWord(NamedTuple):
    """A word of a query.

    Attributes:
        term: The term.
        ids: Term id in each document set, or -1.
        lengths: Number of documents in the postings of each document set.
        idf: Weight.
    """

    term: bytes
    ids: Sequence[int]
    lengths: Sequence[int]
    idf: np.float32


class _LoneWords(NamedTuple):
    """The words of a query.

    Attributes:
        words: The words, in query order.
        positions: Position of each word in the query.
        every: Whether a document must contain all of them.
        order: Order of the words of a phrase, or None.
    """

    words: Sequence[_LoneWord]
    positions: Sequence[int]
    every: bool
    order: PhraseOrder | None

    def terms(self, number: int) -> WeightedTerms:
        """Return the words with their ids in a document set."""
        ids = np.array([word.ids[number] for word in self.words], np.int64)
        weights = np.array([word.idf for word in self.words], np.float32)
        return WeightedTerms.plain(ids, weights, every=self.every)

    def lengths(self, number: int) -> list[int]:
        """Return the lengths of the postings of the words that a document set contains."""
        return [word.lengths[number] for word in self.words if word.ids[number] >= 0]


@dataclass(frozen=True, eq=False, slots=True)
class _LoneQuery:
    """A prepared query: its words, and its searches, each with the number of the document set."""

    words: _LoneWords
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
        few: The rows that no index covers.
    """

    def __init__(
        self, snapshot: Snapshot, route: TextRoute, places: Sequence[IndexedRows], few: Sequence[FewRows]
    ) -> None:
        self._opened = [held_segment(snapshot, segment) for segment in route.segments]
        self._indexes = [opened.index for opened in self._opened]
        self._kind = route.segments[0].kind.name
        self._analyser = route.analyser
        self._places = places
        self._few = few
        self._sources: Sequence[IndexedRows | FewRows] = [*places, *few]
        every: Sequence[Place] = [*places, *(each.rows for each in few)]
        documents, tokens = sum(each.num_documents for each in every), sum(each.total_tokens for each in every)
        self._statistics = Statistics(documents, tokens, route.rounds_lengths)
        self._average = float(self._statistics.average)
        self._masks = [place.allowed(None, None) for place in places]
        self._direct = [DirectSearch(place.partition, self._average, place.keys) for place in places]
        self._known: LruCache[_LoneWord] = LruCache(_MOST_TERMS // len(places))
        self._prepared: SizedCache[_LoneQuery] = SizedCache(_MOST_BYTES, lambda each: each.nbytes)
        self._seen: LruCache[bool] = LruCache(_MOST_SEEN)

    @property
    def nbytes(self) -> int:
        """Size of the segments and of prepared queries in memory, in bytes."""
        few = sum(each.nbytes for each in self._few)
        return sum(int(index.nbytes) for index in self._indexes) + self._prepared.nbytes + few

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
            rows = self._best(query, k, filtered)
        except Stopped:
            raise
        except Exception:  # the ordinary way fails, too, and finds out whether the segment is corrupt
            return None
        if rows is not None:
            INDEX_USES.add(self._kind)
        return rows

    def _best(self, query: MatchQuery | PhraseQuery, k: int, filtered: PassingRows | None) -> BestRows | None:
        """Search without a prepared query if the query is new, and prepare it when it is repeated."""
        key = query.query, query.slop if isinstance(query, PhraseQuery) else query.operator
        prepared = self._prepared.find(key)
        if prepared is not None:
            return self._found(prepared, k, filtered)
        words = self._words(query)
        if words is None:
            return None
        if self._seen.find(key) is None:
            self._seen.put(key, True)
            rows = self._found_directly(words, k, filtered)
            if rows is not None:
                return rows
        prepared = self._made(words)
        if prepared is None:
            return None
        self._prepared.put(key, prepared)
        return self._found(prepared, k, filtered)

    def _found(self, query: _LoneQuery, k: int, filtered: PassingRows | None) -> BestRows:
        parts = []
        for number, search in query.searches:
            count = self._places[number].partition.num_documents
            parts.append((number, *search.best(min(k, count), self._mask(number, filtered))))
        return self._joined(parts + self._of_few(query.words, k, filtered), k)

    def _found_directly(self, words: _LoneWords, k: int, filtered: PassingRows | None) -> BestRows | None:
        """Return the best rows, or None if the postings are not in memory."""
        parts, least = [], 0.0
        for number, direct in enumerate(self._direct):
            terms = words.terms(number)
            if not terms.can_match:
                continue
            most, mask = min(k, self._places[number].partition.num_documents), self._mask(number, filtered)
            found = direct.best(terms, words.lengths(number), words.order, most, mask, least)
            if found is None:
                return None
            if len(found[1]) == k:
                least = max(least, found[1].item(-1))
            parts.append((number, *found))
        return self._joined(parts + self._of_few(words, k, filtered), k)

    def _of_few(self, words: _LoneWords, k: int, filtered: PassingRows | None) -> list[_Part]:
        """Return the best documents of the rows that no index covers."""
        if not self._few:
            return []
        weighted = [
            (Word(word.term, position), word.idf) for word, position in zip(words.words, words.positions, strict=True)
        ]
        slop = None if words.order is None else words.order.slop
        return [
            (number, *few.best(weighted, self._statistics, k, filtered, every=words.every, slop=slop))
            for number, few in enumerate(self._few, start=len(self._places))
        ]

    def _mask(self, number: int, filtered: PassingRows | None) -> NDArray[np.bool_] | None:
        return self._masks[number] if filtered is None else self._places[number].allowed(filtered, None)

    def _joined(self, parts: Sequence[_Part], k: int) -> BestRows:
        """Return the best rows of the best documents of each document set."""
        if len(parts) == 1:
            number, documents, scores = parts[0]
            return BestRows(scores, self._sources[number].addresses[documents])
        if not parts:
            return BestRows(np.empty(0, np.float32), np.empty(0, np.uint64))
        scores = np.concatenate([each for _, _, each in parts])
        addresses = np.concatenate([self._sources[number].addresses[documents] for number, documents, _ in parts])
        keys = np.concatenate([self._sources[number].keys[documents] for number, documents, _ in parts])
        order = np.lexsort((keys, -scores))[:k]
        return BestRows(scores[order], addresses[order])

    def _words(self, query: MatchQuery | PhraseQuery) -> _LoneWords | None:
        """Return the words of a query. None if several words have one position."""
        tokens = self._analyser.terms_of_query(query.query)
        positions = [token.position for token in tokens]
        if not all(map(lt, positions, positions[1:])):
            return None
        words = self._terms([token.text.encode() for token in tokens])
        if not isinstance(query, PhraseQuery):
            return _LoneWords(words, positions, query.operator is FullTextOperator.AND, None)
        order = PhraseOrder(np.array(positions, np.int64), query.slop) if len(tokens) > 1 else None
        return _LoneWords(words, positions, True, order)

    def _made(self, words: _LoneWords) -> _LoneQuery | None:
        """Return the searches for words, or None if one is impossible."""
        searches = []
        for number, place in enumerate(self._places):
            terms = words.terms(number)
            if not terms.can_match:
                continue
            search = self._search(place, terms, words.order)
            if search is None:
                return None
            searches.append((number, search))
        return _LoneQuery(words, searches)

    def _search(
        self, place: IndexedRows, terms: WeightedTerms, order: PhraseOrder | None
    ) -> BestOfTerms | BestOfPhrase | None:
        if order is None:
            return prepared_terms(place.partition, terms, self._average, place.keys)
        return prepared_phrase(place.partition, terms, order, self._average, place.keys)

    def _terms(self, terms: Sequence[bytes]) -> list[_LoneWord]:
        """Return the words with these terms."""
        found = {term: self._known.find(term) for term in terms}
        missing = [term for term, known in found.items() if known is None]
        if missing:
            ids = [place.partition.term_ids(missing) for place in self._places]
            pairs = list(zip(self._places, ids, strict=True))
            lengths = [place.partition.document_frequencies(each).tolist() for place, each in pairs]
            counts = [place.counts(missing, each, known) for (place, each), known in zip(pairs, lengths, strict=True)]
            counts += [[few.count(term) for term in missing] for few in self._few]
            for number, term in enumerate(missing):
                idf = self._statistics.idf(sum(each[number] for each in counts))
                word = _LoneWord(term, [each.item(number) for each in ids], [each[number] for each in lengths], idf)
                found[term] = self._known.put(term, word)
        return [known for term in terms if (known := found[term]) is not None]


def lone_column(
    table: TableScan, name: str, granularity: DocumentGranularity | None, *, fast: bool
) -> LoneColumn | None:
    """Return the fast way of searches in a column, or None if it does not have one. It is cached with the version.

    Args:
        table: The table.
        name: Path of the column.
        granularity: See `MatchQuery`.
        fast: Whether to ignore rows that no segment covers.

    Raises:
        InvalidInputError, UnsupportedError: See `text_route`.
    """
    snapshot = table.snapshot
    route = text_route(snapshot, name, None, granularity)
    if not route.segments or route.by_element:
        return None
    if any(segment.by_row_id != snapshot.has_stable_row_ids for segment in route.segments):
        return None
    is_open = bool(route.open) and not fast
    fragments = [each for each in snapshot.fragments if each.id in route.open] if is_open else []
    if sum(fragment.num_rows for fragment in fragments) > FEW_ROWS:
        return None

    def make() -> LoneColumn | None:
        try:
            every = [place for segment in route.segments for place in segment_rows(snapshot, segment)]
        except BrokenSegmentError:  # the ordinary way sets the segment aside
            return None
        analysed = FlatTexts(table, route.column, route.analyser).analysed(fragments, lambda rows: rows)
        if sum(rows.nbytes for rows in analysed) > FEW_ROWS_BYTES:
            return None
        places = [place for place in every if place.num_documents]
        few = [FewRows(snapshot, rows) for rows in analysed if rows.total_tokens]
        return LoneColumn(snapshot, route, places, few) if any(place.total_tokens for place in places) else None

    return snapshot.derived(("lone text column", route, is_open), make)


def lone_query(query: FullTextQuery) -> MatchQuery | PhraseQuery | None:
    """Return a query in the form of the fast way: exact words or a phrase in one column. None for other queries."""
    if isinstance(query, MatchQuery):
        return query if query.boost == 1 and query.fuzziness == 0 and query.analyzer is None else None
    return query if isinstance(query, PhraseQuery) and query.analyzer is None else None
