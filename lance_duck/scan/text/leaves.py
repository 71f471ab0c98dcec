"""Finds the matches of word queries, with their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.index.inverted.search.matching import WeightedTerms
from lance_duck.index.inverted.search.phrases import PhraseOrder
from lance_duck.scan.text.bm25 import Scores, Statistics, term_scores
from lance_duck.scan.text.corpus import Corpus
from lance_duck.scan.text.indexed import MOST_WORDS, IndexedRows, Scoring
from lance_duck.scan.text.matches import Matches, Names, is_among
from lance_duck.scan.text.places import Addresses, Place, PostingList
from lance_duck.scan.text.query.tree import CombinedFieldsQuery, FullTextOperator, MatchQuery, PhraseQuery, PrefixQuery
from lance_duck.scan.text.query.words import Word

Documents = NDArray[np.int64]


def match(weights: Weights, query: MatchQuery | PrefixQuery, most: int | None = None) -> Matches:
    """Return the rows that contain words of a query.

    Args:
        weights: Weights of the query's words in the searched documents.
        query: The query.
        most: Number of best rows that the result must include. It may include further rows. None returns all rows.
    """
    most = most if query.boost == 1 else None  # with a boost, further scores may be equal after rounding
    every = query.operator is FullTextOperator.AND
    return Matches.union([weights.matches(place, every, most) for place in weights.corpus.places]).times(query.boost)


def count(weights: Weights, query: MatchQuery | PrefixQuery) -> int:
    """Return the number of rows that `match` finds."""
    every = query.operator is FullTextOperator.AND
    return sum(weights.count(place, every) for place in weights.corpus.places)


def phrase(weights: Weights, query: PhraseQuery, words: Sequence[Word], most: int | None = None) -> Matches:
    """Return the rows that contain a phrase, scored as in `match`. For the arguments, see `match`."""
    return Matches.union([_phrase(weights, query, words, place, most) for place in weights.corpus.places])


def match_among(weights: Weights, query: MatchQuery | PhraseQuery, words: Sequence[Word], place: Place) -> Matches:
    """Return the rows of a document set that match a query, scored with corpus statistics.

    Args:
        weights: Weights of the words in the corpus.
        query: The query.
        words: Words of the query.
        place: The document set. It may consist of analysed rows that are not in the corpus.
    """
    if isinstance(query, PhraseQuery):
        return _phrase(weights, query, words, place)
    return weights.matches(place, query.operator is FullTextOperator.AND).times(query.boost)


def combined_fields(corpora: Sequence[Corpus], query: CombinedFieldsQuery, words: Sequence[Word]) -> Matches:
    """Return the rows that contain words in several columns, scored as one column (BM25F).

    N and df are the maximum over the columns. Frequencies, lengths and the total number of terms are weighted sums.
    """
    weights = query.boosts or [1.0] * len(corpora)
    terms = [word.term for word in words if word.term is not None]
    rows = distinct(np.concatenate([np.empty(0, np.uint64), *(_rows_of(corpus, terms) for corpus in corpora)]))
    statistics = [corpus.statistics for corpus in corpora]
    total = sum(weight * each.total_tokens for weight, each in zip(weights, statistics, strict=True))
    together = _Together(max(each.num_documents for each in statistics), total)
    frequencies = [corpus.frequencies(terms) for corpus in corpora]
    lengths = _weighted(corpora, weights, rows, None)
    norms = together.norms(lengths)
    scores, present = np.zeros(len(rows), np.float32), np.ones(len(rows), np.bool_)
    for term in terms:
        counts = _weighted(corpora, weights, rows, term)
        has = counts > 0
        idf = together.idf(max(each.get(term, 0) for each in frequencies))
        scores[has] += term_scores(idf, counts[has], norms[has])
        present &= has
    matches = Matches(rows, scores)
    return matches.where(present) if query.operator is FullTextOperator.AND else matches


@dataclass(frozen=True)
class _Together(Statistics):
    """Weighted statistics of several columns that are scored as one."""

    total_tokens: float  # type: ignore[assignment]


class Weights:
    """The terms of a query, with their weights.

    Args:
        corpus: Documents from whose statistics the weights are computed.
        slots: Terms to which each query word expands.
    """

    def __init__(self, corpus: Corpus, slots: Sequence[Sequence[bytes]]) -> None:
        self._corpus = corpus
        self._slots = slots
        self._terms = list(dict.fromkeys(term for slot in slots for term in slot))
        self._statistics = corpus.statistics
        frequencies = corpus.frequencies(self._terms)
        self._idf = {term: self._statistics.idf(frequencies.get(term, 0)) for term in self._terms}
        self._weighted: dict[tuple[IndexedRows, bool], WeightedTerms] = {}
        self._ordered: dict[IndexedRows, WeightedTerms] = {}

    @classmethod
    def of(cls, corpus: Corpus, query: MatchQuery | PrefixQuery | PhraseQuery, words: Sequence[Word]) -> Weights:
        """Return the weights of the terms to which the words of a query expand."""
        is_fuzzy = not isinstance(query, PhraseQuery) and any(not word.is_exact for word in words)
        most = query.max_expansions if is_fuzzy and not isinstance(query, PhraseQuery) else None
        return cls(corpus, corpus.expanded(words, most))

    def over(self, corpus: Corpus) -> Weights:
        """Return the same weights for a corpus that has the same document sets but different allowed rows."""
        if corpus is self._corpus:
            return self
        result = copy(self)
        result._corpus = corpus
        return result

    @property
    def corpus(self) -> Corpus:
        """The documents."""
        return self._corpus

    @property
    def terms(self) -> Sequence[bytes]:
        """The terms to which the words expand, without duplicates."""
        return self._terms

    def matches(self, place: Place, every: bool, most: int | None = None) -> Matches:
        """Return the rows that contain any term. If `every` is true, a row must contain a term of each slot."""
        if self._has_no_terms(place):
            return Matches.none()
        if isinstance(place, IndexedRows) and len(self._slots) <= MOST_WORDS:
            scoring = Scoring(self._statistics.average, self._corpus.mask(place), most)
            documents, scores = place.scored(self._terms_of(place, every), scoring)
            return Matches.of(self._corpus.names(place, documents), scores)
        postings = place.postings(self._terms)
        if not postings or (every and not all(any(term in postings for term in slot) for slot in self._slots)):
            return Matches.none()
        scores = np.zeros(len(place.lengths), np.float32)
        hits = np.zeros(len(place.lengths), np.uint32)
        norms = {term: self._statistics.norms(place.lengths[each.documents]) for term, each in postings.items()}
        for number, slot in enumerate(self._slots):
            sums = np.zeros(len(scores), np.float32)
            for term in slot:
                if term in postings:
                    documents = postings[term].documents
                    sums[documents] += term_scores(self._idf[term], postings[term].frequencies, norms[term])
                    hits[documents] = np.where(hits[documents] == number, number + 1, hits[documents]) if every else 1
            scores += sums
        documents = np.flatnonzero(hits == len(self._slots) if every else hits)
        documents = documents[self._corpus.found(place, documents)]
        return Matches.of(self._corpus.names(place, documents), scores[documents])

    def count(self, place: Place, every: bool) -> int:
        """Return the number of rows that `matches` finds."""
        if isinstance(place, IndexedRows) and len(self._slots) <= MOST_WORDS and not self._has_no_terms(place):
            return place.count(self._terms_of(place, every), self._corpus.mask(place))
        return len(self.matches(place, every))

    def phrases(self, place: Place, words: Sequence[Word], slop: int, most: int | None = None) -> Matches | None:
        """Return the rows that contain the words in order. See `match`.

        Returns:
            The rows. None if the document set does not store positions, if words share a position, or if a word does
            not have a term.
        """
        terms = [word.term for word in words if word.term is not None]
        places = [word.position for word in words]
        is_ascending = all(one < other for one, other in pairwise(places))
        if not isinstance(place, IndexedRows) or len(terms) < len(words) or not is_ascending:
            return None
        if self._has_no_terms(place):
            return Matches.none()
        scoring = Scoring(self._statistics.average, self._corpus.mask(place), most)
        order = PhraseOrder(np.array(places, np.int64), slop)
        ranking = place.phrases(self._in_order(place, terms), scoring, order)
        return None if ranking is None else Matches.of(self._corpus.names(place, ranking[0]), ranking[1])

    def _has_no_terms(self, place: Place) -> bool:
        """Return whether all rows are deleted, or the corpus does not contain any terms to average."""
        return not place.num_documents or not self._statistics.total_tokens

    def _terms_of(self, place: IndexedRows, every: bool) -> WeightedTerms:
        """Return the terms with their ids in a document set. The ids are looked up once."""
        terms = self._weighted.get((place, every))
        if terms is None:
            terms = self._weighted[place, every] = place.weighted(self._slots, self._idf, every=every)
        return terms

    def _in_order(self, place: IndexedRows, phrase: Sequence[bytes]) -> WeightedTerms:
        """Return the phrase terms, one per word, with their ids in a document set. The ids are looked up once."""
        terms = self._ordered.get(place)
        if terms is None:
            terms = self._ordered[place] = place.weighted([(term,) for term in phrase], self._idf, every=True)
        return terms


def _phrase(
    weights: Weights, query: PhraseQuery, words: Sequence[Word], place: Place, most: int | None = None
) -> Matches:
    """Return the rows of a document set that contain the words in order."""
    if len(words) < 2:
        return weights.matches(place, every=True, most=most)
    ranking = weights.phrases(place, words, query.slop, most)
    if ranking is not None:
        return ranking
    matches = weights.matches(place, every=True)
    if not len(matches):
        return matches
    return matches.among(_with_phrase(weights.corpus, place, matches.names, words, query.slop))


def _with_phrase(corpus: Corpus, place: Place, names: Names, words: Sequence[Word], slop: int) -> Names:
    """Return the ascending names of documents that contain the words in order."""
    terms = [word.term for word in words if word.term is not None]
    postings = place.postings(terms, with_positions=True)
    if all(each.positions is not None for each in postings.values()):
        documents = phrase_ends(postings, words, slop)
        documents = documents[corpus.found(place, documents)]  # deleted rows do not have an address
        return names[is_among(names, np.sort(corpus.names(place, documents)))]
    rows = corpus.analyse(distinct(corpus.addresses(place, names))).narrowed(terms)
    return corpus.named(place, names, rows, phrase_ends(rows.postings(terms), words, slop))


def phrase_ends(postings: Mapping[bytes, PostingList], words: Sequence[Word], slop: int) -> Documents:
    """Return the ascending documents that contain the words in order.

    An occurrence of a word is represented by the number document * 2^32 + position. It is kept if it follows an
    occurrence of the previous word at the same distance as in the query, or up to `slop` positions later.
    """
    ends: Addresses | None = None
    last = 0
    for word in words:
        documents = postings.get(word.term or b"")
        if documents is None or documents.positions is None:
            return np.empty(0, np.int64)
        places = np.repeat(documents.documents, documents.frequencies).astype(np.uint64) << np.uint64(32)
        positions = documents.positions.astype(np.int64)
        if ends is not None:
            highest = positions - (word.position - last)
            lowest = np.maximum(highest - slop, 0)
            low = np.searchsorted(ends, places + lowest.astype(np.uint64), "left")
            high = np.searchsorted(ends, places + np.maximum(highest, 0).astype(np.uint64), "right")
            follows = (highest >= 0) & (low < high)
            places, positions = places[follows], positions[follows]
        ends, last = places + positions.astype(np.uint64), word.position
    return np.empty(0, np.int64) if ends is None else distinct(ends >> np.uint64(32)).astype(np.int64)


def _rows_of(corpus: Corpus, terms: Sequence[bytes]) -> Addresses:
    """Return the rows with any of the terms, unordered and with repetitions."""
    pieces = [np.empty(0, np.uint64)]
    for place in corpus.places:
        for postings in place.postings(terms).values():
            documents = postings.documents[corpus.found(place, postings.documents)]
            pieces.append(place.addresses[documents])
    return np.concatenate(pieces)


def _weighted(corpora: Sequence[Corpus], weights: Sequence[float], rows: Addresses, term: bytes | None) -> Scores:
    """Return, for each of the ascending rows, the weighted frequency of a term over all columns.

    If `term` is None, returns the weighted lengths.
    """
    sums = np.zeros(len(rows), np.float32)
    for corpus, weight in zip(corpora, weights, strict=True):
        for place in corpus.places:
            if term is None:
                documents = np.flatnonzero(is_among(place.addresses, rows))
                counts = place.lengths[documents]
            else:
                postings = place.postings([term]).get(term)
                if postings is None:
                    continue
                among = is_among(place.addresses[postings.documents], rows)
                documents, counts = postings.documents[among], postings.frequencies[among]
            if place.lives is not None:
                documents, counts = documents[place.lives[documents]], counts[place.lives[documents]]
            sums[np.searchsorted(rows, place.addresses[documents])] += np.float32(weight) * counts.astype(np.float32)
    return sums
