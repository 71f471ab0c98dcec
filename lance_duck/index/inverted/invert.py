"""Inverts tokens: converts the tokens of rows to the documents of each term.

The tokens of a batch become runs of bytes, one for each distinct term: see `kernels.postings.sort`. Runs take a third
of the memory of tokens. A build keeps only runs in memory until it writes a partition, some terms at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.arrow.memory import release_unused, unset
from lance_duck.errors import InternalError
from lance_duck.index.files import INDEX_BLOCK_ROWS
from lance_duck.index.inverted.contents import Documents, PartitionContents, sort_postings
from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings import sort
from lance_duck.text.tokens import Tokens
from lance_duck.text.vocabulary import TermVocabulary
from lance_duck.text.words import WordTable

MOST_DOCUMENTS: Final = sort.NO_DOCUMENT
"""Upper limit of the number of documents in a partition. Document ids are uint32."""

_UNKNOWN: Final = 0xFFFFFFFF


@dataclass(frozen=True, eq=False)
class _Runs:
    """Term runs of some documents.

    Attributes:
        data: uint8, bytes of the runs, see `kernels.postings.sort`.
        terms: uint32 (runs,), term number of each run.
        starts: uint32 (runs,), offset of each run in bytes. uint64 for large data.
    """

    data: NDArray[np.uint8]
    terms: NDArray[np.uint32]
    starts: NDArray[Any]

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.data.nbytes + self.terms.nbytes + self.starts.nbytes


@dataclass(frozen=True, eq=False)
class TokenBatch:
    """The tokens of rows, sorted by term. Each row has at least one token.

    Attributes:
        documents: The rows, or the list elements, some of which may lack tokens.
        runs: The runs of the terms, in order of first occurrence.
        counts: uint32 (2, runs), the number of documents and of tokens of each run.
        terms: Terms by the term numbers in `runs`, large_binary.
        vocabulary: The vocabulary that numbers the terms. None if the batch numbers its own terms.
    """

    documents: Documents
    runs: _Runs
    counts: NDArray[np.uint32]
    terms: pa.LargeBinaryArray
    vocabulary: TermVocabulary | None = None

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def nbytes(self) -> int:
        """Memory that the batch takes in an `Inversion`, in bytes."""
        return self.runs.nbytes + self.documents.nbytes


class TokenSorter:
    """Sorts the tokens of batches by term, and reuses its buffers. Not thread-safe.

    Args:
        with_positions: Whether positions are kept.
        vocabulary: The vocabulary that numbers the terms of all batches. By default, each batch numbers its own terms.
    """

    def __init__(self, *, with_positions: bool, vocabulary: TermVocabulary | None = None) -> None:
        self._with_positions = with_positions
        self._vocabulary = vocabulary
        self._entries = np.empty(0, np.uint64)
        self._out = np.empty(0, np.uint8)

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes, including the vocabulary."""
        return self._entries.nbytes + self._out.nbytes + (0 if self._vocabulary is None else self._vocabulary.nbytes)

    def rows(self, tokens: Tokens, row_ids: NDArray[np.uint64]) -> TokenBatch:
        """Return the tokens of rows. Rows without tokens are not documents and are skipped.

        Args:
            tokens: Tokens of the text of each row.
            row_ids: Row id of each row.
        """
        lengths = np.diff(tokens.bounds)
        has_tokens = lengths > 0
        if not has_tokens.all():
            row_ids, lengths = row_ids[has_tokens], lengths[has_tokens]
        bounds = tokens.bounds if len(lengths) == tokens.num_texts else np.append(0, np.cumsum(lengths))
        return self._batch(tokens, bounds, Documents(_own(row_ids), _own(lengths.astype(np.uint32))))

    def elements(
        self, tokens: Tokens, row_ids: NDArray[np.uint64], places: tuple[NDArray[np.uint32], ...]
    ) -> TokenBatch:
        """Return the tokens of list elements, each of which is a document, even without tokens.

        Args:
            tokens: Tokens of the text of each element.
            row_ids: Row id of each element's row.
            places: See `Documents.elements`.
        """
        documents = Documents(row_ids, np.diff(tokens.bounds).astype(np.uint32), places)
        return self._batch(tokens, tokens.bounds, documents)

    def _batch(self, tokens: Tokens, bounds: NDArray[np.int64], documents: Documents) -> TokenBatch:
        ids, positions = tokens.term_ids, tokens.positions if self._with_positions else tokens.positions[:0]
        most = len(tokens.terms)
        self._make_room(len(ids), min(most, len(ids)))
        ends, counts, state = np.zeros(most, np.uint32), np.empty((2, most), np.uint32), np.zeros(2, np.int64)
        order = np.empty(most, np.uint32)
        starts: NDArray[Any] = np.empty(most, np.uint32 if len(self._out) < 1 << 32 else np.uint64)
        arguments = readonly(ids), readonly(bounds.astype(np.int64, copy=False)), readonly(positions)
        _check(sort.write_runs(*arguments, ends, self._entries, order, counts, starts, self._out, state))
        runs, size = state.tolist()
        sorted_runs = _Runs(_own(self._out[:size]), order[:runs], starts[:runs])
        return TokenBatch(documents, sorted_runs, counts[:, :runs], tokens.terms, self._vocabulary)

    def _make_room(self, tokens: int, runs: int) -> None:
        if len(self._entries) < tokens:
            self._entries = np.empty(tokens, np.uint64)
        size = sort.TOKEN_BYTES * tokens + sort.RUN_BYTES * (runs + 1)
        if len(self._out) < size:
            self._out = np.empty(size, np.uint8)


class Inversion:
    """Inverts batches into one partition, without keeping all decoded terms in memory.

    The documents of the partition are numbered by length: see `contents`.

    Args:
        batches: Batches in row order, with fewer than `MOST_DOCUMENTS` rows in total.
        with_positions: Whether the batches keep positions.
    """

    def __init__(self, batches: Iterable[TokenBatch] = (), *, with_positions: bool) -> None:
        self._with_positions = with_positions
        self._terms = WordTable()
        self._of_vocabularies: WeakKeyDictionary[TermVocabulary, NDArray[np.uint32]] = WeakKeyDictionary()
        self._counts = np.zeros((2, 0), np.int64)
        self._runs: list[_Runs] = []
        self._documents: list[Documents] = []
        self._size = self._num_documents = 0
        for batch in batches:
            self.add(batch)

    def __len__(self) -> int:
        return self._num_documents

    @property
    def nbytes(self) -> int:
        """Size of the added data, in bytes."""
        return self._size + self._terms.nbytes + self._counts.nbytes

    def add(self, batch: TokenBatch) -> None:
        """Add the next batch."""
        numbers = self._numbers(batch)
        if len(self._terms) > self._counts.shape[1]:
            counts = np.zeros((2, max(len(self._terms), 2 * self._counts.shape[1])), np.int64)
            counts[:, : self._counts.shape[1]] = self._counts
            self._counts = counts
        self._counts[:, numbers] += batch.counts
        order = np.argsort(numbers)
        self._runs.append(_Runs(batch.runs.data, _own(numbers[order]), _own(batch.runs.starts[order])))
        self._documents.append(batch.documents)
        self._size += batch.nbytes
        self._num_documents += len(batch)

    def whole(self) -> PartitionContents:
        """Return the partition, with terms in order of their first occurrence."""
        (contents,) = self._pieces(None)
        return contents

    def pieces(self, postings: int | None = None) -> Iterator[PartitionContents]:
        """Yield the partition in chunks of terms, in order of first occurrence. The last chunk releases the added data.

        Args:
            postings: Maximum number of postings in a chunk, unless one term has more. `INDEX_BLOCK_ROWS` by default.
        """
        return self._pieces(INDEX_BLOCK_ROWS if postings is None else postings)

    def _numbers(self, batch: TokenBatch) -> NDArray[np.uint32]:
        """Return the term number of each run in a batch. New terms get the next numbers."""
        known = None if batch.vocabulary is None else self._of_vocabularies.get(batch.vocabulary)
        if known is None or len(known) < len(batch.terms):
            before = () if known is None else known
            known = np.full(len(batch.terms), _UNKNOWN, np.uint32)
            known[: len(before)] = before
            if batch.vocabulary is not None:
                self._of_vocabularies[batch.vocabulary] = known
        numbers = known[batch.runs.terms]
        is_new = numbers == _UNKNOWN
        if is_new.any():
            new = batch.runs.terms[is_new]
            known[new] = numbers[is_new] = self._terms.number(batch.terms.take(pa.array(new)))
        return numbers

    def _pieces(self, most: int | None) -> Iterator[PartitionContents]:
        release_unused()
        terms, counts = self._terms.values(), self._counts[:, : len(self._terms)]
        bounds, token_bounds = (np.append(0, np.cumsum(each)) for each in counts)
        ends = np.cumsum(list(map(len, self._documents)), dtype=np.int64)
        documents, ids = _joined(self._documents).by_length()
        names = np.split(ids, ends)[: len(ends)]
        self._documents.clear()
        for first, last in _stretches(bounds, most):
            starts = bounds[first : last + 1] - bounds[first]
            places = token_bounds[first : last + 1] - token_bounds[first] if self._with_positions else None
            ids, frequencies, positions = self._postings(first, last, names, starts, places)
            if last == len(terms):
                self._runs.clear()
                self._size = 0
                release_unused()
            yield PartitionContents(documents, terms.slice(first, last - first), starts, ids, frequencies, positions)

    def _postings(
        self,
        first: int,
        last: int,
        names: Sequence[NDArray[np.uint32]],
        bounds: NDArray[np.int64],
        token_bounds: NDArray[np.int64] | None,
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32] | None]:
        """Return the documents, frequencies and positions of the terms from `first` to `last` (exclusive).

        `names` has the ids of the documents of each batch.
        """
        ids, frequencies = unset(int(bounds[-1]), np.uint32), unset(int(bounds[-1]), np.uint32)
        positions = unset(0 if token_bounds is None else int(token_bounds[-1]), np.uint32)
        ends = bounds[:-1].copy()
        position_ends = np.empty(0, np.int64) if token_bounds is None else token_bounds[:-1].copy()
        for runs, ids_of_batch in zip(self._runs, names, strict=True):
            low, high = np.searchsorted(runs.terms, (first, last)).tolist()
            if low == high:
                continue
            of_runs = readonly(runs.data), readonly(runs.terms[low:high]), readonly(runs.starts[low:high])
            _check(sort.fill_runs(*of_runs, first, ids_of_batch, ends, ids, frequencies, position_ends, positions))
        kept = None if token_bounds is None else positions
        sort_postings(bounds, ids, frequencies, kept, token_bounds)
        return ids, frequencies, kept


def _joined(parts: Sequence[Documents]) -> Documents:
    row_ids = joined((part.row_ids for part in parts), np.uint64)
    lengths = joined((part.num_tokens for part in parts), np.uint32)
    levels = zip(*(part.elements for part in parts), strict=True)
    return Documents(row_ids, lengths, tuple(joined(level, np.uint32) for level in levels))


def _stretches(bounds: NDArray[np.int64], postings: int | None) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms, at least one. A single range covers all terms if `postings` is None."""
    count = len(bounds) - 1
    most = int(bounds[-1]) if postings is None else postings
    first = 0
    while first < count or not first:
        last = int(np.searchsorted(bounds, bounds[first] + most, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        if last == count:
            return
        first = last


def distinct_terms(groups: Sequence[pa.LargeBinaryArray]) -> tuple[pa.LargeBinaryArray, list[NDArray[np.int64]]]:
    """Return the distinct terms of several groups, in order of first occurrence.

    Returns:
        The distinct terms, and for each group the positions of its terms among the distinct terms.
    """
    encoded = pa.concat_arrays([pa.nulls(0, pa.large_binary()), *groups]).dictionary_encode()
    places = encoded.indices.to_numpy().astype(np.int64)
    ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
    return encoded.dictionary, np.split(places, ends)[: len(groups)]


def _own(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of numbers in Arrow's memory pool.

    The copies outlive their sources. Long-lived arrays in C's allocator would keep the allocator from returning memory
    to the system.
    """
    copy = unset(len(numbers), numbers.dtype)
    copy[:] = numbers
    return copy


def _check(outcome: int) -> None:
    if outcome != status.OK:
        raise InternalError("the tokens do not match their documents", found=f"status {outcome}")
