"""A full-text search. It finds the filtered rows, evaluates the query tree, and orders the matches."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from lance_duck.arrow.distinct import distinct
from lance_duck.cache import LruCache
from lance_duck.errors import InvalidInputError
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.filters import Filter
from lance_duck.scan.nearest.passing_rows import PassingRows, cache_key, passing_rows
from lance_duck.scan.nearest.search import selected
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.projection import ROW_ADDRESS, project
from lance_duck.scan.read.execute import scan_batches
from lance_duck.scan.scored.candidates import best_passing, is_checked
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text import leaves
from lance_duck.scan.text.columns import frozen
from lance_duck.scan.text.corpus import Allowed, Corpus
from lance_duck.scan.text.flat import FlatTexts
from lance_duck.scan.text.indexed import BrokenSegmentError, IndexedRows, segment_rows, set_aside
from lance_duck.scan.text.leaves import Weights
from lance_duck.scan.text.matches import Matches, best_of, intersect_matches, is_among, plus, union_matches, without
from lance_duck.scan.text.places import AnalysedRows, Place
from lance_duck.scan.text.query.tree import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    DocumentGranularity,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    PrefixQuery,
)
from lance_duck.scan.text.query.vocabulary import marked_by
from lance_duck.scan.text.query.words import Word, query_words
from lance_duck.scan.text.ranking import Ranking, ranked
from lance_duck.scan.text.route import TextRoute, text_route
from lance_duck.scan.text.text_matcher import TextMatcher
from lance_duck.telemetry.metrics import INDEX_USES
from lance_duck.text.phrases import Target

Leaf = MatchQuery | PrefixQuery | PhraseQuery | CombinedFieldsQuery
Key = tuple[str, object, DocumentGranularity | None]
_T = TypeVar("_T")
_OF_ONE_COLUMN = (MatchQuery, PrefixQuery, PhraseQuery)
_NOTHING: Final = Ranking(np.empty(0, np.uint64), np.empty(0, np.float32))


_QUERIES: Final = 256
"""Maximum number of word queries whose routes and weights a version caches. With three words per query, this takes half
a megabyte. A repeated query takes a third of the time of a new query (`benchmarks/full_text_search.py`)."""


@dataclass(eq=False)
class KnownLeaf:
    """A word query with the routes to its columns.

    Attributes:
        routes: Routes to the columns of the query.
        words: Words of the query.
        weights: Weights of the words if indexes cover all rows, or None.
    """

    routes: tuple[TextRoute, ...]
    words: tuple[Word, ...]
    weights: Weights | None = None


@dataclass(frozen=True, eq=False)
class TextSearch:
    """A planned full-text search. Safe to run from several threads.

    Attributes:
        table: The table.
        query: The query tree.
        plan: The plan of the rows that may be found: the fragments, and a filter that applies before the search.
        post: A filter that is applied to the best rows after the search, or None.
        fast: Whether to ignore rows that no segment covers, including in statistics.
        workers: Thread count. None means one per core.
        by_row: Whether to return each row once, with its best element, if documents are list elements.

    Raises:
        InvalidInputError: `routes` raises it if a column is unknown or does not contain texts, or if an analyser is
            invalid.
    """

    table: TableScan
    query: FullTextQuery
    plan: ScanPlan
    post: Filter | None = None
    fast: bool = False
    workers: int | None = None
    by_row: bool = False

    def run(self, most: int | None = None, log: list[str] | None = None) -> Ranking:
        """Return the best rows, best first.

        Args:
            most: Number of rows to find, before `post` is applied. None finds all rows.
            log: List that receives one line per step, or None.
        """
        is_by_row = self.by_row and self.by_element
        self._note_use()
        enough = most if self.post is None and isinstance(self.query, _OF_ONE_COLUMN) and not is_by_row else None
        if enough and is_checked(self.table, self.plan, enough):
            matches = self._best_passing(enough, [] if log is None else log)
            if matches is not None:
                return matches
        documents = self._found(log, enough or None)
        if is_by_row:
            rows = documents.by_row
            documents = Ranking(rows.names, rows.scores)
        result = ranked(self.table.snapshot, documents, most)
        if self.post is None or not len(result):
            return result
        passing = self._addresses(selected(self.named, RowSet.of(distinct(result.addresses)), self.post))
        return result.where(is_among(result.addresses, passing.rows()))

    def matches(self, log: list[str] | None = None, most: int | None = None) -> Matches:
        """Return the addresses and scores of matching rows: all rows, or at least the `most` best rows.

        If documents are list elements, the score of a row is the score of its best element.
        """
        self._note_use()
        return self._found(log, None if self.by_element else most).by_row

    def count(self) -> int:
        """Return the number of rows that `run` finds. `post` is not applied."""
        self._note_use()
        if self.by_element:
            found = self._found()
            return len(found.by_row if self.by_row else found)
        return self._asked(TextSearch._count_now)

    def _note_use(self) -> None:
        """Count a use of each index that is searched."""
        for route in self.routes.values():
            if route.segments:
                INDEX_USES.add(route.segments[0].kind.name)

    @cached_property
    def by_element(self) -> bool:
        """Whether each list element is a separate document."""
        return next(iter(self.routes.values())).by_element

    def _found(self, log: list[str] | None = None, most: int | None = None) -> Ranking:
        """Return the documents that match, in any order."""
        return self._asked(lambda search: search._found_now([] if log is None else log, most))

    def text_matcher(self) -> TextMatcher:
        """Return a matcher of in-memory texts for this query, which must be a word query on one column.

        Raises:
            InvalidInputError: The query is not a word query on one column.
        """
        return self._asked(lambda search: _TextRun(search, Allowed(), []).text_matcher())

    def _asked(self, do: Callable[[TextSearch], _T]) -> _T:
        """Run a step of the search, and repeat it without segments that turn out to be corrupt."""
        search = self
        while True:
            try:
                return do(search)
            except BrokenSegmentError as broken:
                set_aside(self.table.snapshot, broken)
                search = replace(search)  # a copy computes its routes again

    def _found_now(self, log: list[str], most: int | None) -> Ranking:
        allowed = self.allowed()
        if allowed.rows is not None:
            log.append(f"{len(allowed.rows)} rows pass the filter")
            if not len(allowed.rows):
                return _NOTHING
        return _TextRun(self, allowed, log).found(most)

    def _count_now(self) -> int:
        allowed = self.allowed()
        return 0 if allowed.rows is not None and not len(allowed.rows) else _TextRun(self, allowed, []).count()

    def _best_passing(self, most: int, log: list[str]) -> Ranking | None:
        snapshot = self.table.snapshot

        def find(search: TextSearch) -> Ranking | None:
            run = _TextRun(search, Allowed(), log)
            best = lambda count: ranked(snapshot, run.found(count), count)  # noqa: E731
            return best_passing(search.table, search.plan, most, best, log)

        return self._asked(find)

    @cached_property
    def routes(self) -> dict[Key, TextRoute]:
        """The route to each column. Keys come from `keys_of`."""
        snapshot = self.table.snapshot
        routes: dict[Key, TextRoute] = {}
        for leaf in leaves_of(self.query):
            for name, key in zip(leaf.columns_searched, self.keys_of(leaf), strict=True):
                if key not in routes:
                    routes[key] = text_route(snapshot, name, leaf.analyzer, _granularity(leaf))
            if isinstance(leaf, CombinedFieldsQuery):
                _check_same_analyser([routes[key] for key in self.keys_of(leaf)])
        _check_documents(list(routes.values()))
        return routes

    @cached_property
    def words(self) -> dict[Leaf, tuple[Word, ...]]:
        """The words of each word query."""
        return {leaf: known.words for leaf, known in self.known.items()}

    @cached_property
    def known(self) -> dict[Leaf, KnownLeaf]:
        """Each word query with its routes and weights. Both are cached with the version until a route changes."""
        return {leaf: self._known(leaf) for leaf in leaves_of(self.query)}

    def _known(self, leaf: Leaf) -> KnownLeaf:
        routes = tuple(self.routes[key] for key in self.keys_of(leaf))

        def make() -> KnownLeaf:
            return KnownLeaf(routes, query_words(leaf, routes[0].analyser))

        if leaf.analyzer is not None:
            return make()
        leaf_cache: LruCache[KnownLeaf] = self.table.snapshot.derived("text queries", lambda: LruCache(_QUERIES))
        return leaf_cache.get((leaf, self.fast, *map(id, routes)), make)

    @cached_property
    def filter_key(self) -> Hashable | None:
        """Key by which the rows that pass the filter are cached. None without a filter, or if they are not cached."""
        return None if self.plan.filter is None else cache_key(self.table, self.plan.filter)

    @cached_property
    def named(self) -> ScanPlan:
        """The plan of a scan that returns the addresses of the rows that may be found."""
        return replace(self.plan, projection=project(self.plan.schema, [ROW_ADDRESS]))

    def keys_of(self, leaf: Leaf) -> list[Key]:
        """Return the keys of `routes` for the columns of a word query."""
        return [(name, frozen(leaf.analyzer), _granularity(leaf)) for name in leaf.columns_searched]

    def targets_in(self, texts: pa.Array | pa.ChunkedArray, path: str) -> list[Target]:
        """Return the terms in a column's texts that match the query's words and phrases."""
        terms: dict[Target, None] = {}
        for leaf in sought_leaves(self.query):
            for route in (self.routes[key] for key in self.keys_of(leaf)):
                if route.column.path == path:
                    terms.update(dict.fromkeys(marked_by(leaf, texts, route.analyser)))
        return list(terms)

    def allowed(self) -> Allowed:
        """Return the rows that may be found. With a filter, they come from the cache, or from a scan."""
        condition = self.plan.filter
        is_whole = self.plan.fragments is self.table.snapshot.fragments
        if condition is None:
            return Allowed() if is_whole else Allowed(fragments=frozenset(self.plan.fragment_ids))

        def find() -> RowSet:
            return self._addresses(self.table.routed(self.named))

        rows = passing_rows(self.table, self.filter_key, find) if is_whole else PassingRows(find())
        return Allowed(rows)

    def _addresses(self, plan: ScanPlan) -> RowSet:
        batches = scan_batches(self.table.snapshot, plan, self.table.columns, self.workers)
        return RowSet.union([RowSet.of(batch.column(0).to_numpy()) for batch in batches])


def leaves_of(query: FullTextQuery) -> Iterator[Leaf]:
    """Yield the word queries of a tree. A `MultiMatchQuery` yields one for each column."""
    match query:
        case MatchQuery() | PrefixQuery() | PhraseQuery() | CombinedFieldsQuery():
            yield query
        case BooleanQuery():
            for _, each in query.queries:
                yield from leaves_of(each)
        case BoostQuery():
            yield from leaves_of(query.positive)
            yield from leaves_of(query.negative)
        case MultiMatchQuery():
            yield from _of_columns(query)


def sought_leaves(query: FullTextQuery) -> Iterator[Leaf]:
    """Yield the word queries of a tree, except under MUST_NOT and in negative queries."""
    match query:
        case BooleanQuery():
            for occur, each in query.queries:
                if occur != Occur.MUST_NOT:
                    yield from sought_leaves(each)
        case BoostQuery():
            yield from sought_leaves(query.positive)
        case _:
            yield from leaves_of(query)


class _TextRun:
    """A full-text search with the rows that may be found.

    Args:
        search: The search.
        allowed: Rows that may be found.
        log: List that receives one line per step.
    """

    def __init__(self, search: TextSearch, allowed: Allowed, log: list[str]) -> None:
        self._search = search
        self._allowed = allowed
        self._log = log
        self._corpora = {key: self._corpus(key, route) for key, route in search.routes.items()}

    def found(self, most: int | None) -> Ranking:
        """Return the documents that match, in any order: see `TextSearch.matches`."""
        matches = self.matches(self._search.query, most)
        addresses, elements = next(iter(self._corpora.values())).documents(matches.names)
        return Ranking(addresses, matches.scores, elements)

    def count(self) -> int:
        """Return the number of documents that match."""
        query = self._search.query
        if isinstance(query, MatchQuery | PrefixQuery):
            return leaves.count(self._weights(query), query)
        return len(self.matches(query))

    def matches(self, query: FullTextQuery, most: int | None = None) -> Matches:
        """Return the documents that match a query: see `TextSearch.matches`."""
        match query:
            case MatchQuery() | PrefixQuery():
                return leaves.match(self._weights(query), query, most)
            case PhraseQuery():
                return leaves.phrase(self._weights(query), query, self._search.known[query].words, most)
            case CombinedFieldsQuery():
                return leaves.combined_fields(self._corpora_of(query), query, self._search.words[query])
            case MultiMatchQuery():
                return best_of([self.matches(each) for each in _of_columns(query)])
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
        route = self._search.routes[self._search.keys_of(query)[0]]
        return TextMatcher(query, words, self._weights(query), route.analyser, route.by_element)

    def _boolean(self, query: BooleanQuery) -> Matches:
        must, should, must_not = ([self.matches(each) for each in query.of(occur)] for occur in _OCCURS)
        if not must:
            result = union_matches(should)
        elif not should:
            result = intersect_matches(must)
        else:  # like Lance, add the scores of each role first
            result = plus(intersect_matches(must), [union_matches(should)])
        for each in must_not:
            result = without(result, each)
        return result

    def _weights(self, leaf: MatchQuery | PrefixQuery | PhraseQuery) -> Weights:
        """Return the weights of words. Weights that depend only on an index are cached."""
        (corpus,) = self._corpora_of(leaf)
        leaf_cache = self._search.known[leaf]
        if not all(isinstance(place, IndexedRows) for place in corpus.places):
            return Weights.of(corpus, leaf, leaf_cache.words)
        if leaf_cache.weights is None:
            every = corpus if corpus.allowed.is_every_row else replace(corpus, allowed=Allowed())
            leaf_cache.weights = Weights.of(every, leaf, leaf_cache.words)
        return leaf_cache.weights.over(corpus)

    def _corpora_of(self, leaf: Leaf) -> Sequence[Corpus]:
        return [self._corpora[key] for key in self._search.keys_of(leaf)]

    def _corpus(self, key: Key, route: TextRoute) -> Corpus:
        search = self._search
        snapshot = search.table.snapshot
        fragments = [] if search.fast or not route.open else [f for f in snapshot.fragments if f.id in route.open]
        rows = sum(fragment.num_rows for fragment in fragments)
        self._log.append(f"{route.column.path}: {rows} rows of {len(fragments)} fragments were searched flat")
        texts = FlatTexts(search.table, route.column, route.analyser, route.by_element, search.workers)

        def indexed() -> Corpus:
            places: list[Place] = [place for each in route.segments for place in segment_rows(snapshot, each)]
            return Corpus(places, Allowed(), texts.rows, route.rounds_lengths, route.by_element)

        is_known = key[1] is None  # a query with an explicit analyser is not cached
        corpus = snapshot.derived(("text corpus", route), indexed) if is_known else indexed()
        if fragments:
            words = {word for leaf, each in search.words.items() if key in search.keys_of(leaf) for word in each}
            corpus = replace(corpus, places=[*corpus.places, *texts.analysed(fragments, _narrowed_to(words))])
        return corpus if self._allowed.is_every_row else replace(corpus, allowed=self._allowed)


_OCCURS = (Occur.MUST, Occur.SHOULD, Occur.MUST_NOT)


def _narrowed_to(words: set[Word]) -> Callable[[AnalysedRows], AnalysedRows]:
    exact = {word.term for word in words if word.is_exact and word.term is not None}
    others = [word for word in words if not word.is_exact]

    def narrow(rows: AnalysedRows) -> AnalysedRows:
        return rows.narrowed(exact.union(*(rows.matching(word, None) for word in others)))

    return narrow


def _of_columns(query: MultiMatchQuery) -> Sequence[MatchQuery]:
    """Return a query for each column. With several columns, documents are rows."""
    return [replace(each, document_granularity=DocumentGranularity.ROW) for each in query.match_queries]


def _granularity(leaf: Leaf) -> DocumentGranularity | None:
    """Return the document granularity of a query, or None for the granularity of the index.

    If columns are scored as one, documents are rows.
    """
    return DocumentGranularity.ROW if isinstance(leaf, CombinedFieldsQuery) else leaf.document_granularity


def _check_documents(routes: Sequence[TextRoute]) -> None:
    """Raise an error if a tree mixes queries for rows and for list elements, or for elements of several columns."""
    first = routes[0]
    for route in routes[1:]:
        if route.by_element != first.by_element:
            raise InvalidInputError(
                "a query cannot combine documents that are rows and list elements",
                where=f"column {route.column.path}",
                remedy="use the same document_granularity in all queries",
            )
        if first.by_element and (route.column, route.analyser) != (first.column, first.analyser):
            raise InvalidInputError(
                "queries over list elements must use one column and one analyser",
                expected=first.column.path,
                found=route.column.path,
            )


def _check_same_analyser(routes: Sequence[TextRoute]) -> None:
    first = routes[0]
    for route in routes[1:]:
        if route.analyser != first.analyser:
            raise InvalidInputError(
                "columns have different analysers",
                where="CombinedFieldsQuery",
                expected=f"the analyser of {first.column.path}",
                found=f"a different one for {route.column.path}",
                remedy="choose one with analyzer=",
            )
