"""Exact search: threads compare vectors with the queries, block by block.

A block is a slice of a column page. The vectors of a memory-mapped file are therefore compared without a copy. This
also applies with a filter, unless only a few rows pass.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import LanceDuckError
from lance_duck.file.column import Rows
from lance_duck.rows import row_addresses
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import (
    BLOCK_BYTES,
    JOINED_FRAGMENTS,
    JOINED_ROWS,
    SMALL_BATCH_BYTES,
    SMALL_BATCH_ROWS,
    SPARSE_SHARE,
)
from lance_duck.scan.nearest.best import Neighbours, TopK, joined_neighbours, ranked_neighbours
from lance_duck.scan.nearest.blocks import Block, block_of
from lance_duck.scan.nearest.compare import Question
from lance_duck.scan.nearest.options import VectorColumn
from lance_duck.scan.predicate.arrays import descend
from lance_duck.scan.projection import ROW_ADDRESS, Read, reads
from lance_duck.scan.read.fixed_rows import FixedRows, fixed_rows
from lance_duck.scan.read.fragment_reader import ColumnCache, FragmentReader, open_at_once
from lance_duck.scan.read.joined_fragments import JoinedFragments, joinable_groups, may_join_columns, shape_of
from lance_duck.scan.read.ordered import map_ordered
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.store.costs import REQUESTS_AT_ONCE
from lance_duck.store.request import gather, run
from lance_duck.wire.fragment import Fragment

Offsets = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Piece:
    """Rows of one or several fragments: the rows at `offsets`, or all rows from start to stop - 1.

    They may include deleted rows.
    """

    reader: FragmentReader | JoinedFragments
    start: int
    stop: int
    offsets: Offsets | None = None
    whole: bool = True


@dataclass(frozen=True, eq=False)
class Exact:
    """Exact search of the vectors of a column.

    Attributes:
        snapshot: The version of the table.
        columns: Cache of column readers.
        column: The vector column.
        workers: Thread count. None means one per core.
    """

    snapshot: Snapshot
    columns: ColumnCache
    column: VectorColumn
    workers: int | None = None

    def search(self, fragments: Sequence[Fragment], rows: RowSet | None, question: Question) -> Neighbours:
        """Return the nearest live rows of fragments.

        Args:
            fragments: Fragments to search.
            rows: Addresses of the rows that may be found. None means all rows.
            question: Queries, metric and k.
        """
        best = TopK(len(question.queries), question.k)
        self.open([each for each in fragments if rows is None or each.id in rows.parts])
        look: Callable[[_Piece], Neighbours] = partial(self._near, self._read(), question, best)
        for result in self._mapped(look, self._pieces(fragments, rows)):
            best.add(result)
        return best.neighbours()

    def rerank(self, question: Question, candidates: Neighbours) -> Neighbours:
        """Rank candidates by their exact distances, and return the k nearest of each query.

        A row that is a candidate of several queries is read only once.
        """
        order = np.argsort(candidates.addresses, kind="stable")
        pairs = candidates.queries[order], candidates.addresses[order]
        in_place = None if self.is_remote else self._in_place(question, *pairs)
        if in_place is not None:
            return in_place
        rows = RowSet.of(pairs[1])
        fragments = [self.snapshot.fragment(i) for i in rows.fragment_ids]
        self.open(fragments)
        look: Callable[[_Piece], Neighbours] = partial(self._pairs, self._read(), question, *pairs)
        best = TopK(len(question.queries), question.k)
        best.add(joined_neighbours([*self._mapped(look, self._pieces(fragments, rows))]))
        return best.neighbours()

    def vectors(self, rows: RowSet) -> tuple[pa.Array, NDArray[np.uint64]]:
        """Return the vectors and addresses of the live rows among `rows`, read in one round of requests."""
        read, fragments = self._read(), [self.snapshot.fragment(i) for i in rows.fragment_ids]
        self.open(fragments)
        requests, addresses = [], []
        for fragment in fragments:
            reader, offsets = FragmentReader(self.snapshot, fragment, self.columns), rows.offsets(fragment.id)
            if reader.deletions is not None:
                offsets = offsets[~reader.deletions.contains(offsets)]
            requests.append(reader.read([read], offsets))
            addresses.append(row_addresses(fragment.id, offsets))
        columns = [descend(each[read.name], self.column.names[1:]) for each in run(gather(requests))]
        return pa.concat_arrays(columns), np.concatenate(addresses)

    def open(self, fragments: Sequence[Fragment]) -> None:
        """Open the column in several fragments. If each needs a round trip, they are opened concurrently."""
        if self.is_remote:
            open_at_once([FragmentReader(self.snapshot, each, self.columns) for each in fragments], [self._read()])

    @cached_property
    def is_remote(self) -> bool:
        """Whether vectors are read from an object store."""
        return local_path(self.snapshot.uri) is None

    def _mapped(self, look: Callable[[_Piece], Neighbours], pieces: Iterator[_Piece]) -> Iterator[Neighbours]:
        """Yield the neighbours in each piece. Pieces are compared in parallel."""
        if self.is_remote and self.workers is None:
            return map_ordered(look, pieces, workers=REQUESTS_AT_ONCE, at_once=True)
        return map_ordered(look, pieces, workers=self.workers)

    def _in_place(self, question: Question, queries: Offsets, addresses: NDArray[np.uint64]) -> Neighbours | None:
        """Return the k nearest rows from memory-mapped files, or None if a fragment's vectors are not plain.

        `queries` and `addresses` are pairs of a query and a live row, ordered by row.
        """
        keys = addresses >> np.uint64(32)
        cuts = np.flatnonzero(keys[1:] != keys[:-1]) + 1 if len(keys) and keys[0] != keys[-1] else np.empty(0, np.int64)
        edges = [0, *cuts.tolist(), len(keys)]
        work: list[tuple[FixedRows, slice]] = []
        for start, stop in pairwise(edges):
            fixed = self._fixed(int(keys[start])) if stop > start else None
            if fixed is None:
                return None
            steps = range(start, stop, SMALL_BATCH_ROWS)
            work += [(fixed, slice(at, min(at + SMALL_BATCH_ROWS, stop))) for at in steps]

        def look(piece: tuple[FixedRows, slice]) -> Neighbours:
            fixed, span = piece
            in_span, which = addresses[span], queries[span]
            numbers, starts = fixed.look((in_span & np.uint64(0xFFFFFFFF)).view(np.int64), self.column.dtype)
            near = Neighbours(which, question.distances_at(numbers, starts, which), in_span)
            absent = np.isnan(near.distances)
            return near.where(~absent) if np.logical_or.reduce(absent) else near

        found = [look(work[0])] if len(work) == 1 else [*map_ordered(look, iter(work), workers=self.workers)]
        return ranked_neighbours(joined_neighbours(found), len(question.queries), question.k)

    def _fixed(self, fragment_id: int) -> FixedRows | None:
        """Return a fragment's vectors in the memory-mapped file, or None if they are not plain."""

        def find() -> FixedRows | None:
            fragment = self.snapshot.fragment(fragment_id)
            reader = FragmentReader(self.snapshot, fragment, self.columns)
            width = self.column.dim * self.column.dtype.itemsize
            if len(self.column.names) > 1:
                return None
            fixed = fixed_rows(reader, self._read(), self._page_ends(fragment, reader.num_rows), width)
            return fixed if fixed is not None and fixed.holds(self.column.dtype) else None

        return self.snapshot.derived(("fixed rows", self.column.path, fragment_id), find)

    def _pairs(
        self, read: Read, question: Question, queries: Offsets, addresses: NDArray[np.uint64], piece: _Piece
    ) -> Neighbours:
        """Return the distances of a piece's rows to the queries for which they are candidates."""
        block, places, pair_places = self._load(read, piece)
        low = np.searchsorted(addresses, pair_places, "left")
        counts = np.searchsorted(addresses, pair_places, "right") - low
        pairs = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        which = np.ascontiguousarray(queries[pairs])
        within = np.arange(len(pair_places)) if places is None else places
        distances = question.distances(block, np.repeat(within, counts), which)
        return Neighbours(which, distances, addresses[pairs]).where(~np.isnan(distances))

    def _near(self, read: Read, question: Question, best: TopK, piece: _Piece) -> Neighbours:
        block, places, addresses = self._load(read, piece)
        return question.near(block, places, addresses, best.limits)

    def _load(self, read: Read, piece: _Piece) -> tuple[Block, Offsets | None, NDArray[np.uint64]]:
        """Return a block of vectors, the indices of the piece's rows in it (None for all), and the row addresses."""
        reader, deletions, offsets = piece.reader, piece.reader.deletions, piece.offsets
        if offsets is None and deletions is not None and deletions.count_in(piece.start, piece.stop):
            offsets = deletions.live_offsets(piece.start, piece.stop)
        elif offsets is not None and deletions is not None:
            offsets = offsets[~deletions.contains(offsets)]
        rows = slice(piece.start, piece.stop) if piece.whole or offsets is None else offsets
        array = _values(reader, read, rows)
        block = block_of(descend(array, self.column.names[1:]), self.column)
        row_offsets = np.arange(piece.start, piece.stop) if offsets is None else offsets
        places = offsets - piece.start if piece.whole and offsets is not None else None
        if isinstance(reader, FragmentReader):
            return block, places, row_addresses(reader.fragment.id, row_offsets)
        return block, places, reader.hidden(ROW_ADDRESS, row_offsets, 0).to_numpy()

    def _pieces(self, fragments: Sequence[Fragment], rows: RowSet | None) -> Iterator[_Piece]:
        readers = [
            FragmentReader(self.snapshot, each, self.columns)
            for each in fragments
            if rows is None or each.id in rows.parts
        ]
        for group in self._groups(readers):
            if len(group) == 1:
                yield from self._alone(group[0], rows)
                continue
            joined = JoinedFragments(self.snapshot, group)
            yield _Piece(joined, 0, joined.num_rows, None if rows is None else joined.offsets_of(rows))

    def _groups(self, readers: Sequence[FragmentReader]) -> Iterator[Sequence[FragmentReader]]:
        """Yield fragments in groups that are read together."""
        if len(readers) == 1 or not may_join_columns([self._read()]):
            return ([reader] for reader in readers)
        find = shape_of(self.snapshot)

        def shape(reader: FragmentReader) -> Hashable | None:
            return find(reader.fragment) if reader.num_rows <= JOINED_ROWS else None

        return joinable_groups(readers, shape, lambda reader: reader.num_rows, first=JOINED_FRAGMENTS)

    def _alone(self, reader: FragmentReader, rows: RowSet | None) -> Iterator[_Piece]:
        fragment = reader.fragment
        if rows is None:
            yield from (_Piece(reader, start, stop) for start, stop in self._ranges(fragment, reader.num_rows))
            return
        offsets = rows.offsets(fragment.id)
        if len(offsets) * SPARSE_SHARE < reader.num_rows:
            yield from self._few(reader, offsets)
            return
        for start, stop in self._ranges(fragment, reader.num_rows):
            in_piece = offsets[np.searchsorted(offsets, start) : np.searchsorted(offsets, stop)]
            if len(in_piece):
                # An object store merges requests for nearby rows. The whole range would only be more bytes.
                whole = not self.is_remote and len(in_piece) * SPARSE_SHARE >= stop - start
                yield _Piece(reader, start, stop, in_piece, whole)

    def _few(self, reader: FragmentReader, offsets: Offsets) -> Iterator[_Piece]:
        for first in range(0, len(offsets), SMALL_BATCH_ROWS):
            yield _Piece(reader, 0, reader.num_rows, offsets[first : first + SMALL_BATCH_ROWS], False)

    def _ranges(self, fragment: Fragment, count: int) -> Iterator[tuple[int, int]]:
        """Yield row ranges. Each is within one page, unless pages are small."""
        width = self.column.dim * self.column.dtype.itemsize
        most, least = max(1, BLOCK_BYTES // width), max(1, SMALL_BATCH_BYTES // width)
        start = 0
        for end in self._page_ends(fragment, count):
            if end - start < least and end < count:
                continue
            parts = max(1, -(-(end - start) // (2 * most)))
            step = -(-(end - start) // parts)
            while start < end:
                yield start, min(start + step, end)
                start = min(start + step, end)

    def _page_ends(self, fragment: Fragment, count: int) -> list[int]:
        """Return the end of each of the column's pages, in rows, or only `count` if pages do not contain all rows."""
        field = self.snapshot.schema.by_path(self.column.path)
        for data_file in fragment.files:
            column = data_file.column_of(field.id) if field.id in data_file.fields else None
            if column is not None:
                pages = self.snapshot.data_file(data_file).column(column).pages
                ends: list[int] = np.cumsum([page.num_rows for page in pages]).tolist()
                if ends and ends[-1] == count:
                    return ends
        return [count]

    def _read(self) -> Read:
        forms: dict[str, Any] = {self.column.names[0]: self.column.form} if len(self.column.names) == 1 else {}
        (read,) = reads(self.snapshot.schema, [self.column.names], forms)
        return read


def _values(reader: FragmentReader | JoinedFragments, read: Read, rows: Rows) -> pa.Array:
    try:
        return run(reader.read([read], rows))[read.name]
    except LanceDuckError:
        if isinstance(reader, FragmentReader):
            raise
        # Reading the fragments one by one succeeds, or raises the error. Joined fragments are always read whole.
        return pa.concat_arrays([_values(each, read, slice(0, each.num_rows)) for each in reader.readers])
