"""All documents of one column. The same statistics apply to all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.scan.nearest.passing_rows import PassingRows
from lance_duck.scan.text.bm25 import Statistics
from lance_duck.scan.text.indexed import IndexedRows
from lance_duck.scan.text.matches import Names, is_among
from lance_duck.scan.text.places import Addresses, AnalysedRows, Place
from lance_duck.scan.text.query.words import Word, limited

Analyse = Callable[[Addresses], AnalysedRows]


@dataclass(frozen=True, eq=False)
class Allowed:
    """Rows that may be found.

    Attributes:
        filtered: Rows that pass the filter, or None if all rows pass.
        fragments: Ids of the fragments to search. None searches all fragments.
    """

    filtered: PassingRows | None = None
    fragments: frozenset[int] | None = None

    @property
    def is_every_row(self) -> bool:
        """Whether all rows may be found."""
        return self.filtered is None and self.fragments is None

    @cached_property
    def rows(self) -> Addresses | None:
        """Ascending addresses of the rows that pass the filter, or None if all rows pass."""
        return None if self.filtered is None else self.filtered.rows.rows()

    def mask(self, addresses: Addresses) -> NDArray[np.bool_]:
        """Return a mask of the rows to search."""
        if self.rows is not None:
            return is_among(addresses, self.rows)
        if self.fragments is not None:
            return is_among(addresses >> np.uint64(32), np.array(sorted(self.fragments), np.uint64))
        return np.ones(len(addresses), np.bool_)


@dataclass(frozen=True, eq=False)
class Corpus:
    """The documents of a column.

    Attributes:
        places: Disjoint document sets.
        allowed: Rows to search. Other rows are counted only in statistics.
        analyse: Function that analyses the rows at ascending addresses, and returns all their tokens. Used for document
            sets that do not store positions.
        rounds_lengths: See `Statistics`.
        by_element: Whether documents are list elements, and not rows.
    """

    places: Sequence[Place]
    allowed: Allowed
    analyse: Analyse
    rounds_lengths: bool = False
    by_element: bool = False

    @cached_property
    def statistics(self) -> Statistics:
        """The statistics with which all documents are scored."""
        return Statistics(
            sum(place.num_documents for place in self.places),
            sum(place.total_tokens for place in self.places),
            self.rounds_lengths,
        )

    def frequencies(self, terms: Iterable[bytes]) -> Mapping[bytes, int]:
        """Return the document count of each term. Terms without documents are omitted."""
        distinct = dict.fromkeys(terms)
        if len(self.places) == 1:
            return self.places[0].frequencies(distinct)
        totals: Counter[bytes] = Counter()
        for place in self.places:
            totals.update(place.frequencies(distinct))
        return totals

    def expanded(self, words: Iterable[Word], most: int | None) -> tuple[tuple[bytes, ...], ...]:
        """Return the terms to which each word expands, in byte order, at most `most` in total.

        Distinct words at one position are alternatives. For example, all n-grams have position 0.
        """
        listed = list(words)
        if most is None and _are_plain(listed):
            return tuple(() if word.term is None else (word.term,) for word in listed)
        plain = [replace(word, position=0) for word in listed]
        terms = {word: self._terms_of(word, most) for word in dict.fromkeys(plain)}
        every = limited([terms[word] for word in plain], most)
        slots: dict[int, dict[bytes, None]] = {}
        for word, variants in zip(listed, every, strict=True):
            slots.setdefault(word.position, {}).update(dict.fromkeys(variants))
        return tuple(tuple(slot) for slot in slots.values())

    def names(self, place: Place, documents: NDArray[np.int64]) -> Names:
        """Return the names of documents in a document set, in the order of `documents`: see `Matches`.

        The name of a row is its address. List elements are numbered consecutively over all document sets of the corpus.
        In a document set outside the corpus, they are numbered from 0.
        """
        if not self.by_element:
            return place.addresses[documents]
        return documents.astype(np.uint64) + np.uint64(self._firsts.get(place, 0))

    def documents(self, names: Names) -> tuple[Addresses, tuple[NDArray[np.uint32], ...]]:
        """Return the row address and list position of documents with ascending names: see `Place.elements`."""
        if not self.by_element:
            return names, ()
        ends = np.searchsorted(names, [len(place.addresses) + self._firsts[place] for place in self.places])
        analysed = [
            part - np.uint64(self._firsts[place])
            for place, part in zip(self.places, np.split(names, ends), strict=False)
        ]
        pairs = [(place, part) for place, part in zip(self.places, analysed, strict=True) if len(part)]
        addresses = joined((place.addresses[part] for place, part in pairs), np.uint64)
        levels = zip(*([level[part] for level in place.elements] for place, part in pairs), strict=True)
        return addresses, tuple(joined(level, np.uint32) for level in levels)

    def addresses(self, place: Place, names: Names) -> Addresses:
        """Return the row address of each document in a document set."""
        return place.addresses[names - np.uint64(self._firsts.get(place, 0))] if self.by_element else names

    def named(self, place: Place, names: Names, rows: AnalysedRows, documents: NDArray[np.int64]) -> Names:
        """Return the names of documents that belong to newly analysed rows."""
        if not self.by_element:
            return names[is_among(names, rows.addresses[documents])]
        offsets = (names - np.uint64(self._firsts.get(place, 0))).astype(np.int64)
        levels = [place.addresses[offsets], *(level[offsets] for level in place.elements)]
        indexed = [rows.addresses[documents], *(level[documents] for level in rows.elements)]
        pairs = zip(levels, indexed, strict=True)
        keys = np.stack([np.concatenate([one, other]).astype(np.uint64) for one, other in pairs])
        numbers = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
        return names[np.isin(numbers[: len(offsets)], numbers[len(offsets) :])]

    def found(self, place: Place, documents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each document may be found."""
        mask = self.allowed.mask(place.addresses[documents])
        return mask if place.lives is None else mask & place.lives[documents]

    def mask(self, place: IndexedRows) -> NDArray[np.bool_] | None:
        """Return a mask of the documents to search, or None to search all documents."""
        return place.allowed(self.allowed.filtered, self.allowed.fragments)

    @cached_property
    def _firsts(self) -> Mapping[Place, int]:
        """The number of the first document of each document set."""
        ends = np.cumsum([len(place.addresses) for place in self.places], dtype=np.int64).tolist()
        return dict(zip(self.places, [0, *ends], strict=False))

    def _terms_of(self, word: Word, most: int | None) -> Sequence[bytes]:
        """Return the terms to which a word expands, in order: all of them, or at least the first `most`."""
        if word.is_exact:
            return () if word.term is None else (word.term,)
        return sorted({term for place in self.places for term in place.matching(word, most)})


def _are_plain(words: Sequence[Word]) -> bool:
    """Return whether each word matches only its exact term, and all words have distinct positions."""
    return all(word.is_exact for word in words) and len({word.position for word in words}) == len(words)
