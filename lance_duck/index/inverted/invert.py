"""Inversion of tokens: for each term the documents that have it. Postings are counted, then filled, in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.arrow.memory import release_unused, unset
from lance_duck.errors import InternalError
from lance_duck.index.inverted.contents import Documents, PartitionContents
from lance_duck.index.inverted.costs import INVERSION_PASSES, INVERTED_POSTINGS
from lance_duck.kernels import status
from lance_duck.kernels.postings import sort
from lance_duck.text.tokens import Tokens

Numbers = Sequence[NDArray[np.int64]]

MOST_DOCUMENTS: Final = sort.NO_DOCUMENT
"""Most documents of a partition: their ids are uint32."""


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """The tokens of some rows, each of which has at least one.

    Attributes:
        row_ids: Row id of each row.
        terms: Distinct terms of the batch, large_binary.
        term_ids: Place in `terms` of each token, row by row.
        bounds: Where the tokens of each row begin, and where the last one's end.
        positions: Position of each token; None if not kept.
        elements: See `Documents.elements`; if not empty, "row" above means such an element, and some have no token.
    """

    row_ids: NDArray[np.uint64]
    terms: pa.LargeBinaryArray
    term_ids: NDArray[np.uint32]
    bounds: NDArray[np.int64]
    positions: NDArray[np.uint32] | None
    elements: tuple[NDArray[np.uint32], ...] = ()

    def __len__(self) -> int:
        return len(self.row_ids)

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        arrays: list[NDArray[Any]] = [self.row_ids, self.term_ids, self.bounds, *self.elements]
        arrays += [] if self.positions is None else [self.positions]
        return sum(array.nbytes for array in arrays) + int(self.terms.nbytes)


def token_batch(tokens: Tokens, row_ids: NDArray[np.uint64], *, with_positions: bool) -> TokenBatch:
    """Return the tokens of rows, without rows that have none, which are no documents.

    Args:
        tokens: Tokens of the text of each row.
        row_ids: Row id of each row.
        with_positions: Whether positions are kept.
    """
    lengths = np.diff(tokens.bounds)
    has_tokens = lengths > 0
    if not has_tokens.all():
        row_ids, lengths = row_ids[has_tokens], lengths[has_tokens]
    bounds = tokens.bounds if len(lengths) == tokens.num_texts else np.append(0, np.cumsum(lengths))
    positions = _own(tokens.positions) if with_positions else None
    return TokenBatch(row_ids, tokens.terms, _own(tokens.term_ids), bounds.astype(np.int64), positions)


def element_batch(
    tokens: Tokens, row_ids: NDArray[np.uint64], elements: tuple[NDArray[np.uint32], ...], *, with_positions: bool
) -> TokenBatch:
    """Return the tokens of list elements, each of which is a document, even without tokens.

    Args:
        tokens: Tokens of the text of each element.
        row_ids: Row id of each element's row.
        elements: See `Documents.elements`.
        with_positions: Whether positions are kept.
    """
    positions = _own(tokens.positions) if with_positions else None
    return TokenBatch(row_ids, tokens.terms, _own(tokens.term_ids), tokens.bounds, positions, elements)


class Inversion:
    """The inversion of some batches to one partition, all of whose terms need not be in memory at a time.

    Args:
        batches: Batches in the order of their documents; together fewer than `MOST_DOCUMENTS` rows. The list is
            cleared once their postings have been made.
        with_positions: Whether the batches keep positions.
    """

    def __init__(self, batches: list[TokenBatch], *, with_positions: bool) -> None:
        self._batches = batches
        self._with_positions = with_positions

    def whole(self) -> PartitionContents:
        """Return the partition, with terms in order of their first occurrence."""
        (contents,) = self._pieces(None)
        return contents

    def pieces(self, postings: int = INVERTED_POSTINGS) -> Iterator[PartitionContents]:
        """Yield the partition, a part of its terms at a time, in order of their first occurrence.

        Args:
            postings: Postings of a piece, about, but at least an eighth of all.
        """
        return self._pieces(postings)

    def _pieces(self, most: int | None) -> Iterator[PartitionContents]:
        terms, numbers = distinct_terms([batch.terms for batch in self._batches])
        release_unused()
        postings, tokens = self._counts(len(terms), numbers)
        bounds, token_bounds = np.append(0, np.cumsum(postings)), np.append(0, np.cumsum(tokens))
        documents = _documents(self._batches)
        for first, last in _stretches(bounds, most):
            wanted = [batch_numbers - first for batch_numbers in numbers]
            starts = bounds[first : last + 1] - bounds[first]
            ids, frequencies = self._postings(wanted, starts)
            places = token_bounds[first : last + 1] - token_bounds[first]
            positions = self._positions(wanted, places) if self._with_positions else None
            if last == len(terms):
                self._batches.clear()
                release_unused()
            yield PartitionContents(documents, terms.slice(first, last - first), starts, ids, frequencies, positions)

    def _counts(self, num_terms: int, numbers: Numbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the number of postings, and of tokens, of each term."""
        postings, tokens = np.zeros(num_terms, np.int64), np.zeros(num_terms, np.int64)
        last = np.full(num_terms, sort.NO_DOCUMENT, np.uint32)
        for batch, batch_numbers, first in zip(self._batches, numbers, self._firsts(), strict=True):
            _check(sort.count_tokens(batch.term_ids, batch_numbers, batch.bounds, first, last, postings, tokens))
        return postings, tokens

    def _postings(self, numbers: Numbers, bounds: NDArray[np.int64]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return documents and frequencies of the terms that are wanted."""
        ids, frequencies = np.empty(bounds[-1], np.uint32), np.empty(bounds[-1], np.uint32)
        last, ends = np.full(len(bounds) - 1, sort.NO_DOCUMENT, np.uint32), bounds[:-1].copy()
        for batch, batch_numbers, first in zip(self._batches, numbers, self._firsts(), strict=True):
            _check(sort.fill_tokens(batch.term_ids, batch_numbers, batch.bounds, first, last, ends, ids, frequencies))
        return ids, frequencies

    def _positions(self, numbers: Numbers, bounds: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Return the positions of the terms that are wanted."""
        ends, positions = bounds[:-1].copy(), np.empty(bounds[-1], np.uint32)
        for batch, batch_numbers in zip(self._batches, numbers, strict=True):
            assert batch.positions is not None
            _check(sort.fill_positions(batch.term_ids, batch_numbers, batch.positions, ends, positions))
        return positions

    def _firsts(self) -> list[int]:
        """Return the id of the first document of each batch."""
        return [0, *accumulate(map(len, self._batches))][: len(self._batches)]


def _documents(batches: Sequence[TokenBatch]) -> Documents:
    row_ids = joined((batch.row_ids for batch in batches), np.uint64)
    lengths = joined((np.diff(batch.bounds) for batch in batches), np.int64).astype(np.uint32)
    levels = zip(*(batch.elements for batch in batches), strict=True)
    return Documents(row_ids, lengths, tuple(joined(level, np.uint32) for level in levels))


def _stretches(bounds: NDArray[np.int64], postings: int | None) -> Iterator[tuple[int, int]]:
    """Yield first term and end of stretches of terms, one at least; all terms are one stretch if `postings` is None."""
    count = len(bounds) - 1
    most = int(bounds[-1]) if postings is None else max(postings, -(-int(bounds[-1]) // INVERSION_PASSES))
    first = 0
    while first < count or not first:
        last = int(np.searchsorted(bounds, bounds[first] + most, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        if last == count:
            return
        first = last


def distinct_terms(groups: Sequence[pa.LargeBinaryArray]) -> tuple[pa.LargeBinaryArray, list[NDArray[np.int64]]]:
    """Return the distinct terms of several groups, in order of their first occurrence.

    Returns:
        The terms; and for each group the place of each of its terms among them.
    """
    encoded = pa.concat_arrays([pa.nulls(0, pa.large_binary()), *groups]).dictionary_encode()
    places = encoded.indices.to_numpy().astype(np.int64)
    ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
    return encoded.dictionary, np.split(places, ends)[: len(groups)]


def _own(numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return a copy of numbers, in Arrow's pool.

    They live long, and what they were made of does not: beside each other, they would keep C's allocator from returning
    its memory.
    """
    copy = unset(len(numbers), numbers.dtype)
    copy[:] = numbers
    return copy


def _check(outcome: int) -> None:
    if outcome != status.OK:
        raise InternalError("tokens that do not fit together", found=f"status {outcome}")
