"""A whole search: rows of the filter, documents of each column, matches of the query tree, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from lance_duck.errors import InvalidInputError
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.filters import Filter
from lance_duck.scan.nearest.filtered import Filtered, filtered
from lance_duck.scan.nearest.search import selected
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.projection import ROW_ADDRESS, project
from lance_duck.scan.read.execute import scan_batches
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text import leaves
from lance_duck.scan.text.columns import frozen
from lance_duck.scan.text.corpus import Allowed, Corpus
from lance_duck.scan.text.flat import FlatTexts
from lance_duck.scan.text.indexed import BrokenSegmentError, segment_rows, set_aside
from lance_duck.scan.text.leaves import Weights
from lance_duck.scan.text.matches import Matches, all_of, any_of, best_of, is_among, plus, without
from lance_duck.scan.text.places import AnalysedRows, Place
from lance_duck.scan.text.query.tree import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    PrefixQuery,
)
from lance_duck.scan.text.query.vocabulary import matching_terms
from lance_duck.scan.text.query.words import Word, words_of
from lance_duck.scan.text.ranking import Ranking, ranked
from lance_duck.scan.text.route import TextRoute, text_route
from lance_duck.scan.text.text_matcher import TextMatcher

Leaf = MatchQuery | PrefixQuery | PhraseQuery | CombinedFieldsQuery
Key = tuple[str, object]
_OF_ONE_COLUMN = (MatchQuery, PrefixQuery, PhraseQuery)


@dataclass(frozen=True, eq=False)
class TextSearch:
    """A full-text search, decided. Safe to run from several threads.

    Attributes:
        table: The table.
        query: What is asked.
        plan: The rows that may be found: fragments, and a filter that holds before the search.
        post: A filter that is applied to the best rows; None for none.
        fast: Rows that no segment covers are left out, of statistics, too.
        workers: Threads; None for one for each core.

    Raises:
        InvalidInputError: A column is unknown or holds no texts, or an analyser makes no sense: from `routes`.
    """

    table: TableScan
    query: FullTextQuery
    plan: ScanPlan
    post: Filter | None = None
    fast: bool = False
    workers: int | None = None

    def run(self, most: int | None = None, log: list[str] | None = None) -> Ranking:
        """Return the best rows, the best first.

        Args:
            most: Rows to find, before the filter that is applied to them; None: all.
            log: Takes what was done, in words.
        """
        enough = most if self.post is None and isinstance(self.query, _OF_ONE_COLUMN) else None
        result = ranked(self.table.snapshot, self.matches(log, enough or None), most)
        if self.post is None or not len(result):
            return result
        rows = self._addresses(selected(self.named, RowSet.of(np.unique(result.addresses)), self.post))
        return result.where(is_among(result.addresses, rows.rows()))

    def matches(self, log: list[str] | None = None, most: int | None = None) -> Matches:
        """Return the rows that match, by address: all, or with the best, so many of them, any number of the others."""
        search = self
        while True:
            try:
                return search._matches([] if log is None else log, most)
            except BrokenSegmentError as broken:
                set_aside(self.table.snapshot, broken)
                search = replace(search)  # which looks for its way anew

    def text_matcher(self) -> TextMatcher:
        """Return what asks this query, which is one of words in one column, of texts at hand.

        Raises:
            InvalidInputError: It is another kind of query.
        """
        search = self
        while True:
            try:
                return _Run(search, Allowed(), []).text_matcher()
            except BrokenSegmentError as broken:
                set_aside(self.table.snapshot, broken)
                search = replace(search)

    def _matches(self, log: list[str], most: int | None) -> Matches:
        allowed = self.allowed()
        if allowed.rows is not None:
            log.append(f"{len(allowed.rows)} rows pass the filter")
            if not len(allowed.rows):
                return Matches.none()
        return _Run(self, allowed, log).matches(self.query, most)

    @cached_property
    def routes(self) -> dict[Key, TextRoute]:
        """How each column is searched, by `key_of`."""
        snapshot = self.table.snapshot
        routes: dict[Key, TextRoute] = {}
        for leaf in leaves_of(self.query):
            analyzer = frozen(leaf.analyzer)
            for name in leaf.columns_searched:
                if (name, analyzer) not in routes:
                    routes[name, analyzer] = text_route(snapshot, name, leaf.analyzer)
            if isinstance(leaf, CombinedFieldsQuery):
                _check_same_analyser([routes[name, analyzer] for name in leaf.columns])
        return routes

    @cached_property
    def words(self) -> dict[Leaf, tuple[Word, ...]]:
        """The words of each query of words."""
        return {leaf: words_of(leaf, self.routes[self.keys_of(leaf)[0]].analyser) for leaf in leaves_of(self.query)}

    @cached_property
    def named(self) -> ScanPlan:
        """The scan of the rows that may be found, by address."""
        return replace(self.plan, projection=project(self.plan.schema, [ROW_ADDRESS]))

    def keys_of(self, leaf: Leaf) -> list[Key]:
        """Return the keys of `routes` for the columns of a query of words."""
        return [(name, frozen(leaf.analyzer)) for name in leaf.columns_searched]

    def terms_in(self, texts: pa.Array | pa.ChunkedArray, path: str) -> list[str]:
        """Return the terms that the words of the query stand for in some texts of a column."""
        found: dict[bytes, None] = {}
        for leaf, words in self.words.items():
            for route in (self.routes[key] for key in self.keys_of(leaf)):
                if route.column.path != path:
                    continue
                terms = route.analyser.analyse(texts).terms
                found.update(dict.fromkeys(term for word in words for term in matching_terms(terms, word)))
        return [term.decode() for term in found]

    def allowed(self) -> Allowed:
        """Return the rows that may be found; a filter is looked for now unless a cache has its rows."""
        condition = self.plan.filter
        is_whole = self.plan.fragments is self.table.snapshot.fragments
        if condition is None:
            return Allowed() if is_whole else Allowed(fragments=frozenset(self.plan.fragment_ids))

        def find() -> RowSet:
            return self._addresses(self.table.routed(self.named))

        rows = filtered(self.table, condition, find) if is_whole else Filtered(find())
        return Allowed(rows)

    def _addresses(self, plan: ScanPlan) -> RowSet:
        batches = scan_batches(self.table.snapshot, plan, self.table.columns, self.workers)
        return RowSet.union([RowSet.of(batch.column(0).to_numpy()) for batch in batches])


def leaves_of(query: FullTextQuery) -> Iterator[Leaf]:
    """Yield the queries of words of a tree; of several columns, one for each where these are scored apart."""
    match query:
        case BooleanQuery():
            for _, each in query.queries:
                yield from leaves_of(each)
        case BoostQuery():
            yield from leaves_of(query.positive)
            yield from leaves_of(query.negative)
        case MultiMatchQuery():
            yield from query.match_queries
        case MatchQuery() | PrefixQuery() | PhraseQuery() | CombinedFieldsQuery():
            yield query


class _Run:
    """A search under way.

    Args:
        search: The search.
        allowed: Rows that may be found.
        log: Takes what is done, in words.
    """

    def __init__(self, search: TextSearch, allowed: Allowed, log: list[str]) -> None:
        self._search = search
        self._allowed = allowed
        self._log = log
        self._corpora = {key: self._corpus(key, route) for key, route in search.routes.items()}

    def matches(self, query: FullTextQuery, most: int | None = None) -> Matches:
        """Return the rows that match a query: see `TextSearch.matches`."""
        match query:
            case MatchQuery() | PrefixQuery():
                return leaves.match(self._corpora_of(query)[0], query, self._search.words[query], most)
            case PhraseQuery():
                return leaves.phrase(self._corpora_of(query)[0], query, self._search.words[query], most)
            case CombinedFieldsQuery():
                return leaves.combined_fields(self._corpora_of(query), query, self._search.words[query])
            case MultiMatchQuery():
                return best_of([self.matches(each) for each in query.match_queries])
            case BoostQuery():
                return plus(self.matches(query.positive), [self.matches(query.negative)], -query.negative_boost)
            case BooleanQuery():
                return self._boolean(query)
        raise InvalidInputError("unknown kind of query", found=type(query).__name__)

    def text_matcher(self) -> TextMatcher:
        """See `TextSearch.text_matcher`."""
        query = self._search.query
        if not isinstance(query, MatchQuery | PhraseQuery):
            raise InvalidInputError("unknown kind of query", found=type(query).__name__)
        words = self._search.words[query]
        analyser = self._search.routes[self._search.keys_of(query)[0]].analyser
        return TextMatcher(query, words, Weights.of(self._corpora_of(query)[0], query, words), analyser)

    def _boolean(self, query: BooleanQuery) -> Matches:
        must, should, must_not = ([self.matches(each) for each in query.of(occur)] for occur in _OCCURS)
        result = plus(all_of(must), should) if must else any_of(should)
        for each in must_not:
            result = without(result, each)
        return result

    def _corpora_of(self, leaf: Leaf) -> Sequence[Corpus]:
        return [self._corpora[key] for key in self._search.keys_of(leaf)]

    def _corpus(self, key: Key, route: TextRoute) -> Corpus:
        search = self._search
        words = {word for leaf, mine in search.words.items() if key in search.keys_of(leaf) for word in mine}
        texts = FlatTexts(search.table, route.column.path, route.analyser, search.workers)
        is_covered = search.fast or not route.open
        fragments = [] if is_covered else [f for f in search.table.snapshot.fragments if f.id in route.open]
        flat = texts.analysed(fragments, _narrowed_to(words))
        rows = sum(len(place.addresses) for place in flat)
        self._log.append(f"{route.column.path}: {rows} rows of {len(fragments)} fragments were searched flat")
        places: list[Place] = [place for each in route.segments for place in segment_rows(search.table.snapshot, each)]
        return Corpus([*places, *flat], self._allowed, texts.tokens, route.rounds_lengths)


_OCCURS = (Occur.MUST, Occur.SHOULD, Occur.MUST_NOT)


def _narrowed_to(words: set[Word]) -> Callable[[AnalysedRows], AnalysedRows]:
    exact = {word.term for word in words if word.is_exact and word.term is not None}
    others = [word for word in words if not word.is_exact]

    def narrow(rows: AnalysedRows) -> AnalysedRows:
        return rows.narrowed(exact.union(*(rows.matching(word, None) for word in others)))

    return narrow


def _check_same_analyser(routes: Sequence[TextRoute]) -> None:
    first = routes[0]
    for route in routes[1:]:
        if route.analyser != first.analyser:
            raise InvalidInputError(
                "columns have different analysers",
                where="CombinedFieldsQuery",
                expected=f"that of {first.column.path}",
                found=f"another of {route.column.path}",
                remedy="name one by analyzer=",
            )
