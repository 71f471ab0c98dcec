"""The terms of a partition: an FST, or a sorted column in files of older writers. `layout` describes the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.files import SegmentFile
from lance_duck.index.inverted import layout
from lance_duck.index.inverted.codecs.arrays import bytes_and_offsets, joined_values
from lance_duck.index.inverted.codecs.fst import Fst, open_fst
from lance_duck.index.inverted.columns import numbers_without_nulls, read_columns, single
from lance_duck.kernels.keys.search import descent, find_bytes

_FST: Final = {layout.FST_BYTES: pa.large_binary(), layout.NEXT_ID: pa.uint32(), layout.TOTAL_LENGTH: pa.uint64()}
_ARROW: Final = {layout.TERM: pa.string(), layout.TERM_ID: pa.uint32()}


@dataclass(frozen=True, eq=False)
class SortedTerms:
    """Terms in order of their bytes.

    Attributes:
        terms: The terms, large_binary (UTF-8), distinct.
        ids: Id of each term, int64: the numbers below the term count, in any order.
    """

    terms: pa.LargeBinaryArray
    ids: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return int(self.terms.nbytes) + self.ids.nbytes

    def by_id(self) -> pa.LargeBinaryArray:
        """Return the terms in order of their ids."""
        order = np.empty(len(self.ids), np.int64)
        order[self.ids] = np.arange(len(self.ids))
        return self.terms.take(pa.array(order))


class Terms(Protocol):
    """The open terms of a partition."""

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""

    def find(self, terms: Sequence[bytes]) -> NDArray[np.int64]:
        """Return the id of each term, int64, or -1 if the partition does not contain it. Raises CorruptError."""

    def in_order(self) -> SortedTerms:
        """Return all terms. Raises CorruptError."""

    def near(self, word: str, edits: int, fixed: int, most: int, *, is_open: bool = False) -> list[bytes] | None:
        """Return terms near a word, see `Fst.near`. Returns None if all terms must be compared."""


@dataclass(frozen=True, eq=False)
class FstTerms:
    """Terms in an automaton."""

    fst: Fst
    num_bytes: int

    @property
    def nbytes(self) -> int:
        """See `Terms`."""
        return self.fst.nbytes

    def find(self, terms: Sequence[bytes]) -> NDArray[np.int64]:
        """See `Terms`."""
        return self.fst.find(terms)

    def in_order(self) -> SortedTerms:
        """See `Terms`."""
        return SortedTerms(*self.fst.terms(self.num_bytes))

    def near(self, word: str, edits: int, fixed: int, most: int, *, is_open: bool = False) -> list[bytes] | None:
        """See `Terms`."""
        return self.fst.near(word, edits, fixed, most, is_open=is_open)


@dataclass(frozen=True, eq=False)
class ArrowTerms:
    """Terms in a sorted column."""

    sorted_terms: SortedTerms

    @property
    def nbytes(self) -> int:
        """See `Terms`."""
        return self.sorted_terms.nbytes

    def find(self, terms: Sequence[bytes]) -> NDArray[np.int64]:
        """See `Terms`."""
        data, offsets = bytes_and_offsets(self.sorted_terms.terms)
        term_bytes, bounds = joined_values(terms)
        low, high = np.empty(len(terms), np.int64), np.empty(len(terms), np.int64)
        find_bytes(offsets, data, bounds, term_bytes, False, low)
        find_bytes(offsets, data, bounds, term_bytes, True, high)
        ids = np.full(len(terms), -1, np.int64)
        ids[high > low] = self.sorted_terms.ids[low[high > low]]
        return ids

    def in_order(self) -> SortedTerms:
        """See `Terms`."""
        return self.sorted_terms

    def near(self, word: str, edits: int, fixed: int, most: int, *, is_open: bool = False) -> None:
        """See `Terms`. Always returns None, because only older writers store terms in this form."""


def open_terms(file: SegmentFile, form: str, num_terms: int) -> Terms:
    """Read the terms of a partition.

    Args:
        file: The file of the terms.
        form: "fst" or "arrow".
        num_terms: Number of terms that have postings.

    Raises:
        CorruptError: The file does not have this form, or contains a different number of terms.
    """
    if form == layout.ARROW:
        return ArrowTerms(_arrow_terms(file, num_terms))
    data, count, size = (single(array, file.path) for array in read_columns(file, _FST))
    values, offsets = bytes_and_offsets(data)
    fst = open_fst(values[offsets[0] : offsets[1]].copy(), file.path)
    for number in (fst.num_terms, int(numbers_without_nulls(count)[0])):
        _check_count(number, num_terms, file.path)
    return FstTerms(fst, int(numbers_without_nulls(size)[0]))


def _arrow_terms(file: SegmentFile, num_terms: int) -> SortedTerms:
    texts, ids = read_columns(file, _ARROW)
    _check_count(len(texts), num_terms, file.path)
    terms = texts.cast(pa.large_binary())
    data, offsets = bytes_and_offsets(terms)
    at = descent(offsets, data)
    if at >= 0:
        raise CorruptError("the terms are not sorted", where=file.path, found=f"row {at}")
    places = numbers_without_nulls(ids).astype(np.int64)
    if len(places) and (places.max() >= len(places) or (np.bincount(places, minlength=len(places)) != 1).any()):
        raise CorruptError("invalid term ids", where=file.path, expected=f"each of 0 … {len(places) - 1} once")
    return SortedTerms(terms, places)


def _check_count(count: int, expected: int, where: str) -> None:
    if count != expected:
        raise CorruptError("wrong term count", where=where, expected=expected, found=count)
