"""The partitions of an index segment as document sets. They contain the live rows that the segment covers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.errors import CorruptError
from lance_duck.index.catalog import Segment
from lance_duck.index.inverted.open import InvertedSegment
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.search.best import best_documents
from lance_duck.index.inverted.search.counting import count_documents
from lance_duck.index.inverted.search.matching import WeightedTerms, matching_documents
from lance_duck.index.inverted.search.phrases import PhraseOrder, best_phrases
from lance_duck.index.inverted.settings import LIST_ELEMENT
from lance_duck.index.names import Follower
from lance_duck.index.search import ask, open_index
from lance_duck.kernels.jit import readonly
from lance_duck.scan.nearest.covered import CoveredRows
from lance_duck.scan.nearest.passing_rows import PassingRows
from lance_duck.scan.text.bm25 import Scores
from lance_duck.scan.text.places import Addresses, PostingList
from lance_duck.scan.text.query.vocabulary import matching_terms
from lance_duck.scan.text.query.words import Word
from lance_duck.snapshot import Snapshot
from lance_duck.text.elements import list_depth
from lance_duck.wire.below_lists import listed_field

MOST_WORDS: Final = 1 << 15
"""Maximum number of query words for `IndexedRows.scored`, which counts words in 16 bits."""


class BrokenSegmentError(Exception):
    """A search found that a segment is corrupt. The texts of its rows must be analysed instead.

    Attributes:
        segment: The segment.
        reason: The error that reading the segment raised.
    """

    def __init__(self, segment: Segment, reason: Exception) -> None:
        super().__init__(f"{segment}: {reason}")
        self.segment = segment
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Scoring:
    """The arguments for scoring the documents of a partition.

    Attributes:
        average: Average number of terms per document.
        mask: bool (documents,), whether to search the document. None searches all documents.
        most: Maximum number of best documents to find. None finds all documents.
    """

    average: np.float32
    mask: NDArray[np.bool_] | None
    most: int | None


class _BreakageWatch:
    """A context manager that converts any error of a segment to a BrokenSegmentError."""

    __slots__ = ("_segment",)

    def __init__(self, segment: Segment) -> None:
        self._segment = segment

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, BrokenSegmentError):
            raise BrokenSegmentError(self._segment, error) from error


class IndexedRows:
    """The documents of a partition in one version of the table: see `Place`. Safe to use from several threads.

    Statistics include only documents that optimizing the index would keep. They exclude fragments that the segment does
    not cover, and also deleted rows if the table has stable row ids or is read with its write-ahead log. Any error of
    the partition is raised as a BrokenSegmentError.

    Attributes:
        partition: The partition.
        addresses: uint64 (documents,), the row address of each document. Undefined if the row is deleted.
        lives: bool (documents,), whether the row is live and its fragment is covered by the segment.
    """

    def __init__(
        self, snapshot: Snapshot, segment: Segment, partition: InvertedPartition, left_out: NDArray[np.uint32]
    ) -> None:
        names = partition.documents.row_ids
        self._covered = CoveredRows(snapshot, segment, lambda: names)
        self.partition = partition
        self._segment = segment
        self.addresses: Addresses = self._covered.addresses
        self.lives: NDArray[np.bool_] = self._covered.lives
        stays = self.lives
        if not segment.by_row_id:
            stays = Follower(snapshot, segment, keeps_deleted=snapshot.log is None).follow(names)[1]
        self._leaves_out = bool(len(left_out)) and not segment.by_row_id
        if self._leaves_out:
            left = ~np.isin(names >> np.uint64(32), left_out)
            self.lives, stays = self.lives & left, stays & left
        self._stays = None if stays.all() else stays

    @property
    def elements(self) -> tuple[NDArray[np.uint32], ...]:
        """See `Place.elements`."""
        return self.partition.documents.elements

    @property
    def lengths(self) -> NDArray[np.uint32]:
        """See `Place.lengths`."""
        return self.partition.documents.num_tokens  # already in memory, like the row ids

    @cached_property
    def num_documents(self) -> int:
        """See `Place.num_documents`."""
        return self.partition.num_documents if self._stays is None else int(np.count_nonzero(self._stays))

    @cached_property
    def total_tokens(self) -> int:
        """See `Place.total_tokens`."""
        lengths = self.lengths if self._stays is None else self.lengths[self._stays]
        return int(lengths.sum(dtype=np.uint64))

    def matching(self, word: Word, most: int | None) -> Sequence[bytes]:
        """See `Place.matching`."""
        terms, limit = self._matching(word, most), most
        if self._stays is None:
            return terms
        while True:
            frequencies = self.frequencies(terms)
            staying = [term for term in terms if term in frequencies]
            if most is None or limit is None or len(staying) >= most or len(terms) < limit:
                return staying
            limit *= 4
            terms = self._matching(word, limit)

    def frequencies(self, terms: Iterable[bytes]) -> Mapping[bytes, int]:
        """See `Place.frequencies`."""
        listed = list(terms)
        with self._watched():
            counts = self.counts(listed, self.partition.term_ids(listed))
        return {term: count for term, count in zip(listed, counts, strict=True) if count}

    def counts(self, terms: Sequence[bytes], ids: NDArray[np.int64], lengths: list[int] | None = None) -> list[int]:
        """Return the document count of each term in statistics.

        Args:
            terms: The terms.
            ids: Id of each term, or -1 if the partition does not contain it.
            lengths: Result of `document_frequencies` for these ids, or None.

        Raises:
            CorruptError: The partition is corrupt.
            BrokenSegmentError: The postings are corrupt.
        """
        if self._stays is None:
            counts: list[int] = self.partition.document_frequencies(ids).tolist() if lengths is None else lengths
            return counts
        postings = self.postings(terms)
        return [int(self._stays[postings[term].documents].sum()) if term in postings else 0 for term in terms]

    def postings(self, terms: Iterable[bytes], with_positions: bool = False) -> Mapping[bytes, PostingList]:
        """See `Place.postings`."""
        listed = list(dict.fromkeys(terms))
        with self._watched():
            ids = self.partition.term_ids(listed)
            order = np.argsort(ids, kind="stable")[np.count_nonzero(ids < 0) :]
            if not len(order):
                return {}
            postings = self.partition.postings(ids[order])
            documents, frequencies = postings.decoded()
            positions = self._positions(ids[order], postings.bounds, frequencies) if with_positions else None
        ends = np.concatenate([[0], np.cumsum(frequencies, dtype=np.int64)])
        result = {}
        for place, low, high in zip(
            order.tolist(), postings.bounds[:-1].tolist(), postings.bounds[1:].tolist(), strict=True
        ):
            term_positions = None if positions is None else positions[ends[low] : ends[high]]
            result[listed[place]] = PostingList(
                documents[low:high].astype(np.int64), frequencies[low:high], term_positions
            )
        return result

    def allowed(self, filtered: PassingRows | None, fragments: frozenset[int] | None) -> NDArray[np.bool_] | None:
        """Return a mask of the documents to search, or None to search all documents.

        Args:
            filtered: Rows that pass a filter, or None if all rows pass.
            fragments: Ids of the fragments to search. None searches all fragments.
        """
        searched = frozenset(self._segment.fragments.tolist()) if fragments is None else fragments
        if filtered is None:
            mask = self._covered.allowed(None, searched)[0]
        else:
            owner = self._segment.uuid, self.partition.number
            mask = filtered.allowed(self._covered, owner, searched)[0]
        if self._leaves_out:
            return self.lives if mask is None else mask & self.lives
        return mask

    def weighted(
        self, slots: Sequence[Sequence[bytes]], weights: Mapping[bytes, np.float32], *, every: bool
    ) -> WeightedTerms:
        """Return terms with their weights, by their ids in the partition.

        Args:
            slots: Terms to which each query word expands.
            weights: The idf of each term.
            every: Whether a document must contain a term of each word.
        """
        listed = [(term, number) for number, slot in enumerate(slots) for term in slot]
        with self._watched():
            ids = self.partition.term_ids([term for term, _ in listed])
        in_index = np.flatnonzero(ids >= 0)
        return WeightedTerms(
            ids[in_index],
            np.array([weights[listed[i][0]] for i in in_index.tolist()], np.float32),
            np.array([listed[i][1] for i in in_index.tolist()], np.int64),
            len(slots),
            every,
        )

    def scored(self, terms: WeightedTerms, search: Scoring) -> tuple[NDArray[np.int64], Scores]:
        """Return matching documents and their scores.

        The result is either all documents, or only the best, with the highest score first. If many rows match, all
        documents are in the order of their addresses.
        """
        with self._watched():
            average = float(search.average)
            if search.most is None:
                return matching_documents(self.partition, terms, average, search.mask, self._row_order)
            return best_documents(self.partition, terms, average, self.keys, search.most, search.mask)

    def count(self, terms: WeightedTerms, mask: NDArray[np.bool_] | None) -> int:
        """Return the number of matching documents.

        Args:
            terms: The terms.
            mask: bool (documents,), whether to search the document. None searches all documents.
        """
        with self._watched():
            return count_documents(self.partition, terms, mask)

    def phrases(
        self, terms: WeightedTerms, search: Scoring, order: PhraseOrder
    ) -> tuple[NDArray[np.int64], Scores] | None:
        """Return documents that contain the terms in order, and their scores.

        The documents are unordered. See `scored`.

        Args:
            terms: A term for each word. A document must contain all of them.
            search: The documents to search, and the number of documents to find.
            order: Distance of each word from the previous word.

        Returns:
            The documents and their scores, or None if the positions of all documents must be read: see `best_phrases`.
        """
        with self._watched():
            average = float(search.average)
            return best_phrases(self.partition, terms, order, average, self.keys, search.most, search.mask)

    @property
    def row_ids(self) -> NDArray[np.uint64]:
        """`_rowid` of each document."""
        return self.partition.documents.row_ids if self._segment.by_row_id else self.addresses

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Sort keys for documents with equal scores: `_rowid`, or the rank of a list element by `_rowid`."""
        if not self.elements:
            return readonly(self.row_ids)
        order: list[NDArray[Any]] = [*reversed(self.elements), self.row_ids]
        keys = np.empty(len(self.row_ids), np.uint64)
        keys[np.lexsort(order)] = np.arange(len(keys), dtype=np.uint64)
        return readonly(keys)

    @cached_property
    def _row_order(self) -> Callable[[], NDArray[np.int64]] | None:
        """Function that returns all documents in the order of their addresses. None if they already have it."""
        if self.elements or (self.addresses[1:] >= self.addresses[:-1]).all():
            return None
        return lambda: self._by_address

    @cached_property
    def _by_address(self) -> NDArray[np.int64]:
        return np.argsort(self.addresses, kind="stable")

    def _positions(
        self, ids: NDArray[np.int64], bounds: NDArray[np.int64], frequencies: NDArray[np.uint32]
    ) -> NDArray[np.uint32] | None:
        return self.partition.positions(ids, bounds, frequencies) if self.partition.has_positions else None

    def _matching(self, word: Word, most: int | None) -> Sequence[bytes]:
        """Return the terms to which a word expands, including terms of ignored documents: see `matching`."""
        with self._watched():
            limit = self.partition.num_terms if most is None else most
            parts: list[list[bytes] | None] = []
            if word.term is not None and word.edits:
                text = word.term.decode("utf-8", "replace")
                parts.append(self.partition.near_terms(text, word.edits, word.fixed, limit))
            elif word.term is not None:
                parts.append([word.term] if self.partition.term_ids([word.term])[0] >= 0 else [])
            if word.beginning is not None:
                text = word.beginning.decode("utf-8", "replace")
                parts.append(self.partition.near_terms(text, 0, len(text), limit, is_open=True))
            matched = [part for part in parts if part is not None]
            if len(matched) < len(parts):
                return matching_terms(self.partition.sorted_terms.terms, word)
            return sorted({term for part in matched for term in part})

    def _watched(self) -> _BreakageWatch:
        return _BreakageWatch(self._segment)


def segment_rows(snapshot: Snapshot, segment: Segment) -> Sequence[IndexedRows]:
    """Return the document sets of a segment, one for each partition. They are computed once per version.

    Raises:
        BrokenSegmentError: The segment is corrupt.
    """

    def find() -> Sequence[IndexedRows]:
        try:
            index: Any = open_index(snapshot, segment)
            _check_levels(index, list_depth(listed_field(snapshot.schema, segment.field).type))
            rows = [IndexedRows(snapshot, segment, each, index.deleted_fragments) for each in index.partitions]
            if segment.by_row_id and not any(each.elements for each in rows):
                _check_once([each.addresses[each.lives] for each in rows])
            return rows
        except Exception as error:
            raise BrokenSegmentError(segment, error) from error

    result: Sequence[IndexedRows] = snapshot.derived(("text rows", segment.uuid), find)
    return result


def _check_once(addresses: Sequence[Addresses]) -> None:
    """Reject rows with several documents. pylance writes both if it merges the old and new text of an updated row."""
    listed = np.concatenate([np.empty(0, np.uint64), *addresses])
    if not (listed[1:] > listed[:-1]).all() and len(distinct(listed)) < len(listed):
        raise CorruptError("the index contains two entries for updated rows", remedy="build the index again")


def _check_levels(index: InvertedSegment, depth: int) -> None:
    """Raise an error if the list depth of the documents differs from the list depth of the column."""
    expected = depth if index.parameters.document_granularity == LIST_ELEMENT else 0
    for partition in index.partitions:
        if partition.num_levels != expected:
            raise CorruptError(
                "wrong list levels",
                where=f"partition {partition.number}",
                expected=expected,
                found=partition.num_levels,
            )


def set_aside(snapshot: Snapshot, broken: BrokenSegmentError) -> None:
    """Stop using a corrupt segment, and emit one IndexWarning."""

    def refuse(_: object) -> None:
        raise broken.reason

    ask(snapshot, broken.segment, refuse)
