"""Inversion of tokens: for each term the documents that have it. Postings are counted, then filled, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.errors import InternalError
from lance_duck.index.inverted.contents import Documents, PartitionContents
from lance_duck.kernels import status
from lance_duck.kernels.postings import sort
from lance_duck.text.tokens import Tokens

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


def inverted(batches: Sequence[TokenBatch], *, with_positions: bool) -> PartitionContents:
    """Return the postings of some batches, as one partition.

    Args:
        batches: Batches in the order of their documents; together fewer than `MOST_DOCUMENTS` rows.
        with_positions: Whether the batches keep positions.

    Returns:
        The partition, with terms in order of their first occurrence.
    """
    terms, numbers = distinct_terms([batch.terms for batch in batches])
    postings, tokens = np.zeros(len(terms), np.int64), np.zeros(len(terms), np.int64)
    firsts = np.append(0, np.cumsum([len(batch) for batch in batches], dtype=np.int64)).tolist()
    last = np.full(len(terms), sort.NO_DOCUMENT, np.uint32)
    for batch, batch_numbers, first in zip(batches, numbers, firsts, strict=False):
        _check(sort.count_tokens(batch.term_ids, batch_numbers, batch.bounds, first, last, postings, tokens))
    bounds = np.append(0, np.cumsum(postings))
    document_ids, frequencies = np.empty(bounds[-1], np.uint32), np.empty(bounds[-1], np.uint32)
    last.fill(sort.NO_DOCUMENT)
    ends = bounds[:-1].copy()
    for batch, batch_numbers, first in zip(batches, numbers, firsts, strict=False):
        _check(
            sort.fill_tokens(batch.term_ids, batch_numbers, batch.bounds, first, last, ends, document_ids, frequencies)
        )
    positions = _positions(batches, numbers, tokens) if with_positions else None
    row_ids = joined((batch.row_ids for batch in batches), np.uint64)
    lengths = joined((np.diff(batch.bounds) for batch in batches), np.int64).astype(np.uint32)
    levels = zip(*(batch.elements for batch in batches), strict=True)
    documents = Documents(row_ids, lengths, tuple(joined(level, np.uint32) for level in levels))
    return PartitionContents(documents, terms, bounds, document_ids, frequencies, positions)


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
    """Return numbers, copied if they are a part of a larger array, so that the rest of it can be released."""
    return numbers if numbers.base is None else numbers.copy()


def _positions(
    batches: Sequence[TokenBatch], numbers: Sequence[NDArray[np.int64]], tokens: NDArray[np.int64]
) -> NDArray[np.uint32]:
    bounds = np.append(0, np.cumsum(tokens))
    ends, positions = bounds[:-1].copy(), np.empty(bounds[-1], np.uint32)
    for batch, batch_numbers in zip(batches, numbers, strict=True):
        assert batch.positions is not None
        _check(sort.fill_positions(batch.term_ids, batch_numbers, batch.positions, ends, positions))
    return positions


def _check(outcome: int) -> None:
    if outcome != status.OK:
        raise InternalError("tokens that do not fit together", found=f"status {outcome}")
