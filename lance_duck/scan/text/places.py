"""Document sets with inverted terms: analysed rows, or a segment partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.scan.text.query.vocabulary import matching_terms
from lance_duck.scan.text.query.words import Word
from lance_duck.text.analyser import Analyser
from lance_duck.text.elements import elements_of
from lance_duck.text.tokens import Tokens

Addresses = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class PostingList:
    """The documents of one term.

    Attributes:
        documents: int64 (n,), the ascending ids of the documents.
        frequencies: uint32 (n,), the frequency of the term in each document, at least 1.
        positions: uint32, the term positions of all documents, ascending within each document. A document has as many
            positions as its frequency. None if positions are not stored.
    """

    documents: NDArray[np.int64]
    frequencies: NDArray[np.uint32]
    positions: NDArray[np.uint32] | None = None

    def __len__(self) -> int:
        return len(self.documents)


class Place(Protocol):
    """Documents, numbered from 0, and their terms."""

    @property
    def addresses(self) -> Addresses:
        """Row address of each document. Undefined if the row is deleted."""

    @property
    def elements(self) -> tuple[NDArray[np.uint32], ...]:
        """Position of each document in the enclosing lists, outermost first. Empty if documents are rows."""

    @property
    def lives(self) -> NDArray[np.bool_] | None:
        """Whether each document is a live row, or None if all are. Other documents are counted only in statistics."""

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """Number of terms of each document."""

    @property
    def num_documents(self) -> int:
        """Number of documents in statistics: rows that contain terms, or all list elements."""

    @property
    def total_tokens(self) -> int:
        """Number of terms of all documents."""

    def matching(self, word: Word, most: int | None) -> Sequence[bytes]:
        """Return the terms to which a word expands, in order: all terms, or at least the first `most`."""

    def frequencies(self, terms: Iterable[bytes]) -> Mapping[bytes, int]:
        """Return the document count of each term. Terms without documents may be omitted."""

    def postings(self, terms: Iterable[bytes], with_positions: bool = False) -> Mapping[bytes, PostingList]:
        """Return the postings of terms, optionally with positions. Terms without documents are omitted."""


@dataclass(frozen=True, eq=False)
class AnalysedRows:
    """Rows whose texts were analysed. Each row is a document. Rows without terms are not counted in statistics.

    If documents are list elements, each element is a document, and all elements are counted.

    Attributes:
        addresses: uint64 (documents,), the row address of each document.
        lengths: uint32 (documents,), the number of terms in each document.
        tokens: Tokens of the documents. After `narrowed`, only tokens of the selected terms remain.
        elements: See `Place.elements`.
    """

    addresses: Addresses
    lengths: NDArray[np.uint32]
    tokens: Tokens
    elements: tuple[NDArray[np.uint32], ...] = ()

    @classmethod
    def of(cls, addresses: Addresses, texts: pa.Array, analyser: Analyser, *, by_element: bool = False) -> AnalysedRows:
        """Return the documents of some rows, with all their tokens.

        Args:
            addresses: Addresses of the rows.
            texts: Text of each row: see `Analyser.analyse`.
            analyser: Analyser that extracts the tokens.
            by_element: Whether documents are list elements.
        """
        elements = tuple[NDArray[np.uint32], ...]()
        if by_element:
            list_elements = elements_of(texts)
            texts, addresses, elements = list_elements.texts, addresses[list_elements.rows], list_elements.places
        tokens = analyser.analyse(texts)
        return cls(addresses, np.diff(tokens.bounds).astype(np.uint32), tokens, elements)

    @property
    def lives(self) -> None:
        """None, because all rows are live."""
        return

    @property
    def terms(self) -> pa.LargeBinaryArray:
        """Distinct terms of the tokens."""
        return self.tokens.terms

    def matching(self, word: Word, most: int | None) -> Sequence[bytes]:
        """See `Place.matching`."""
        return matching_terms(self.terms, word)

    @cached_property
    def num_documents(self) -> int:
        """See `Place.num_documents`."""
        return len(self.lengths) if self.elements else int(np.count_nonzero(self.lengths))

    @cached_property
    def total_tokens(self) -> int:
        """Number of terms of all rows."""
        return int(self.lengths.sum(dtype=np.uint64))

    @property
    def nbytes(self) -> int:
        """Memory size of the rows and tokens, in bytes."""
        tokens = self.tokens
        arrays: list[NDArray[Any]] = [self.addresses, self.lengths, *self.elements]
        arrays += [tokens.term_ids, tokens.positions, tokens.bounds]
        return sum(array.nbytes for array in arrays) + int(tokens.terms.nbytes)

    def narrowed(self, terms: Iterable[bytes]) -> AnalysedRows:
        """Return the rows with only the tokens of some terms."""
        tokens = self.tokens
        is_term = np.zeros(len(tokens.terms), np.bool_)
        ids = self._ids(terms)
        is_term[ids] = True
        numbers = np.zeros(len(tokens.terms), np.uint32)
        numbers[np.flatnonzero(is_term)] = np.arange(len(ids), dtype=np.uint32)
        places = np.flatnonzero(is_term[tokens.term_ids])
        narrowed = Tokens(
            tokens.terms.take(pa.array(np.flatnonzero(is_term))),
            numbers[tokens.term_ids[places]],
            tokens.positions[places],
            np.searchsorted(places, tokens.bounds).astype(np.int64),
        )
        return AnalysedRows(self.addresses, self.lengths, narrowed, self.elements)

    def frequencies(self, terms: Iterable[bytes]) -> Mapping[bytes, int]:
        """See `Place.frequencies`."""
        return {term: len(postings) for term, postings in self.postings(terms).items()}

    def postings(self, terms: Iterable[bytes], with_positions: bool = False) -> Mapping[bytes, PostingList]:
        """See `Place.postings`. Positions are always included."""
        found = {term: self._inverted.postings(term) for term in terms}
        return {term: postings for term, postings in found.items() if postings is not None and len(postings)}

    def _ids(self, terms: Iterable[bytes]) -> NDArray[np.int64]:
        targets = pa.array(list(dict.fromkeys(terms)), pa.large_binary())
        places = pc.index_in(targets, value_set=self.tokens.terms).drop_null()
        return np.sort(places.to_numpy().astype(np.int64))

    @cached_property
    def _inverted(self) -> _InvertedTokens:
        """Postings of all terms in the tokens."""
        return _InvertedTokens(self.tokens)


class _InvertedTokens:
    """The postings of the terms in some tokens.

    Args:
        tokens: The tokens.
    """

    def __init__(self, tokens: Tokens) -> None:
        documents = np.repeat(np.arange(tokens.num_texts), np.diff(tokens.bounds))
        order = np.argsort(tokens.term_ids, kind="stable")
        terms, documents = tokens.term_ids[order], documents[order]
        is_first = np.ones(len(terms), np.bool_)
        is_first[1:] = (terms[1:] != terms[:-1]) | (documents[1:] != documents[:-1])
        firsts = np.flatnonzero(is_first)
        self._documents = documents[firsts]
        self._positions = tokens.positions[order]
        self._ends = np.append(firsts, len(terms))  # of each posting's positions
        self._bounds = np.searchsorted(terms[firsts], np.arange(len(tokens.terms) + 1))
        self._numbers = {term: number for number, term in enumerate(tokens.terms.to_pylist())}

    def postings(self, term: bytes) -> PostingList | None:
        """Return the postings of a term, or None without documents."""
        number = self._numbers.get(term)
        if number is None:
            return None
        first, last = self._bounds[number : number + 2].tolist()
        ends = self._ends[first : last + 1]
        frequencies = np.diff(ends).astype(np.uint32)
        return PostingList(self._documents[first:last], frequencies, self._positions[ends[0] : ends[-1]])
