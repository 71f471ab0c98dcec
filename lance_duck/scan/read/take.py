"""Reads rows by position, address or row id, in the order of the arguments. Only the pages of these rows are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.limits import in_halves
from lance_duck.encoding.arrow.dictionaries import concatenate
from lance_duck.errors import ArrayLimitError, InvalidInputError, WrongTypeError
from lance_duck.rows import row_addresses, split_addresses
from lance_duck.scan.costs import FRAGMENTS_AT_ONCE
from lance_duck.scan.predicate.arrays import pick
from lance_duck.scan.projection import HIDDEN, Projection, Read, reads
from lance_duck.scan.read.assemble import assemble
from lance_duck.scan.read.column_cache import MOST_OF_ALL, DecodedColumn, DecodedColumns
from lance_duck.scan.read.fragment_reader import ColumnCache, Columns, FragmentReader, open_at_once
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.with_log import refuse_row_ids
from lance_duck.store.request import Request, gather, run
from lance_duck.wire.fragment import Fragment

_LARGEST_LISTED_ID: Final = 1 << 16
_PIECE_ROWS: Final = 1 << 17
"""Number of rows that are decoded at once for the cache of columns. This limits memory."""

Int64s = NDArray[np.int64]
Addresses = NDArray[np.uint64]


@dataclass(frozen=True)
class _FragmentTake:
    """Rows to take from one fragment."""

    reader: FragmentReader
    offsets: Int64s
    row_offset: int


class Taker:
    """Takes rows of a snapshot. Safe to use from several threads.

    Args:
        snapshot: The version of the table.
        columns: Cache of column readers.
        cache_bytes: Maximum size of decoded columns cached for later takes, in bytes. 0 disables the cache.
    """

    def __init__(self, snapshot: Snapshot, columns: ColumnCache, cache_bytes: int = MOST_OF_ALL) -> None:
        self._snapshot = snapshot
        self._columns = columns
        self._cache_bytes = cache_bytes
        self._fragments = snapshot.fragments
        self._readers: dict[int, FragmentReader] = {}
        self._bounds: Int64s | None = None
        self._last: tuple[Projection, Sequence[Read]] | None = None

    def by_position(self, positions: Iterable[int], projection: Projection) -> pa.RecordBatch:
        """Return rows by position among all live rows. Positions may be in any order and may repeat.

        Raises:
            InvalidInputError: A position is negative or past the last row.
        """
        row_positions = places(positions, "row positions")
        bounds = self._live_bounds()
        row_positions = _in_range(row_positions, int(bounds[-1]))
        owners = np.searchsorted(bounds, row_positions, side="right") - 1
        if len(owners) and _is_one(owners):
            index = int(owners[0])
            return self._living(index, row_positions - bounds[index], projection)
        offsets = np.empty(len(row_positions), np.int64)
        for index in distinct(owners).tolist():
            in_fragment = owners == index
            within = row_positions[in_fragment] - bounds[index]
            deletions = self._reader(index).deletions
            offsets[in_fragment] = within if deletions is None else deletions.nth_live(within)
        return self._take(owners, offsets, projection)

    def by_address(self, addresses: Iterable[int], projection: Projection) -> pa.RecordBatch:
        """Return live rows by address (fragment id * 2^32 + offset). Addresses may be in any order and may repeat.

        Raises:
            InvalidInputError: The fragment of an address does not exist, or the address is past the last row of its
                fragment.
        """
        ids, offsets = split_addresses(_unsigned(places(addresses, "row addresses"), "row addresses"))
        if len(ids) and _is_one(ids):
            return self._of_fragment(self._owner(int(ids[0])), offsets, projection)
        owners = self._owners(ids)
        readers = {index: self._reader(index) for index in set(owners.tolist())}
        if len(ids) and int(np.maximum.reduce(offsets)) < min(
            0 if reader.deletions is not None else reader.num_rows for reader in readers.values()
        ):
            return self._take(owners, offsets, projection)
        lives = np.ones(len(offsets), np.bool_)
        for index, reader in readers.items():
            in_fragment = owners == index
            lives[in_fragment] = self._lives(reader, offsets[in_fragment])
        return self._take(owners[lives], offsets[lives], projection)

    def _of_fragment(self, index: int, offsets: Int64s, projection: Projection) -> pa.RecordBatch:
        """Return the live rows at the given offsets of one fragment."""
        reader = self._reader(index)
        if reader.deletions is not None or int(np.maximum.reduce(offsets)) >= reader.num_rows:
            offsets = offsets[self._lives(reader, offsets)]
        return self._take(np.full(len(offsets), index, np.int64), offsets, projection)

    def by_row_id(self, row_ids: Iterable[int], projection: Projection) -> pa.RecordBatch:
        """Return rows by `_rowid`. These are stable row ids if the table has them, otherwise addresses.

        Stable row ids of rows that do not exist or are deleted are skipped.
        """
        refuse_row_ids(self._snapshot)
        index = self._snapshot.row_id_index
        if index is None:
            return self.by_address(row_ids, projection)
        addresses, lives = index.addresses(_unsigned(places(row_ids, "row ids"), "row ids"))
        return self.by_address(addresses[lives], projection)

    def in_fragment(self, fragment: Fragment, positions: Iterable[int], projection: Projection) -> pa.RecordBatch:
        """Return rows by position among the live rows of one fragment.

        Raises:
            InvalidInputError: A position is negative or past the last row.
        """
        index = self._owner(fragment.id)
        row_positions = _in_range(places(positions, "row positions"), self._reader(index).num_live_rows)
        return self._living(index, row_positions, projection)

    def table(
        self, take: Callable[[Any, Projection], pa.RecordBatch], rows: Iterable[int], projection: Projection
    ) -> pa.Table:
        """Return rows as a table, in several chunks if one array cannot hold a column.

        Args:
            take: `by_position`, `by_address`, `by_row_id`, or `in_fragment` with its fragment bound.
            rows: Positions, addresses or row ids.
            projection: Columns of the result.
        """
        return pa.Table.from_batches(self.batches(take, rows, projection))

    def batches(
        self, take: Callable[[Any, Projection], pa.RecordBatch], rows: Iterable[int], projection: Projection
    ) -> list[pa.RecordBatch]:
        """Return rows as one or more batches: see `table`."""
        rows = list(rows) if isinstance(rows, Iterator) else rows
        try:
            return [take(rows, projection)]
        except ArrayLimitError:
            numbers = places(rows, "rows")
        return in_halves(lambda start, stop: [take(numbers[start:stop], projection)], 0, len(numbers))

    def _living(self, index: int, row_positions: Int64s, projection: Projection) -> pa.RecordBatch:
        """Return rows by position among the live rows of one fragment. All positions must exist."""
        deletions = self._reader(index).deletions
        offsets = row_positions if deletions is None else deletions.nth_live(row_positions)
        return self._take(np.full(len(row_positions), index, np.int64), offsets, projection)

    def _take(self, owners: Int64s, offsets: Int64s, projection: Projection) -> pa.RecordBatch:
        """Take the rows at `offsets` in the fragments at positions `owners`."""
        reads = self._wanted(projection)
        cached = self._cached(reads, owners, offsets)
        if cached and len(cached) == len(projection.roots):
            return assemble(projection, cached, len(offsets))
        reads = [read for read in reads if read.name not in cached] if cached else reads
        columns = self._read_of_files(reads, owners, offsets, projection)
        return assemble(projection, columns | cached, len(offsets))

    def _cached(self, reads: Sequence[Read], owners: Int64s, offsets: Int64s) -> Columns:
        """Return the values of the columns that are cached in decoded form, by name."""
        columns = self.decoded.of_take(reads, len(offsets))
        if not columns:
            return {}
        rows = self._physical_bounds[owners] + offsets
        return {name: column.take(rows) for name, column in columns.items()}

    def decoded_columns(self, projection: Projection) -> Mapping[str, DecodedColumn] | None:
        """Return the columns of a projection by name, or None unless all of them are cached in decoded form."""
        reads = self._wanted(projection)
        columns = self.decoded.cached(reads)
        return columns if len(columns) == len(reads) else None

    @cached_property
    def row_shifts(self) -> Int64s | None:
        """int64, for each fragment id, what added to a row address returns the row's place in a decoded column.

        None if fragment ids are too large for an array of them.
        """
        ids = np.array(self._fragments.ids(), np.int64)
        if len(ids) and ids.max() > _LARGEST_LISTED_ID:
            return None
        shifts = np.zeros(int(ids.max(initial=0)) + 1, np.int64)
        shifts[ids] = self._physical_bounds - (ids << 32)
        return shifts

    @cached_property
    def decoded(self) -> DecodedColumns:
        """Cache of decoded columns of numbers and texts, for repeated takes."""
        return DecodedColumns(self._snapshot, self._whole, self._stored, self._cache_bytes)

    def _whole(self, read: Read) -> Iterator[pa.Array]:
        """Yield a column of all fragments, including deleted rows."""
        for reader in map(self._reader, range(len(self._fragments))):
            for start in range(0, reader.num_rows, _PIECE_ROWS):
                rows = slice(start, min(start + _PIECE_ROWS, reader.num_rows))
                yield run(reader.read([read], rows))[read.name]

    def _stored(self, read: Read) -> int:
        """Return the size of a column in the files of all fragments, in bytes."""
        return sum(self._reader(index).stored_bytes(read) for index in range(len(self._fragments)))

    @cached_property
    def _physical_bounds(self) -> Int64s:
        counts = np.array([self._snapshot.physical_rows(fragment) for fragment in self._fragments], np.int64)
        return np.cumsum(counts) - counts

    def _read_of_files(self, reads: Sequence[Read], owners: Int64s, offsets: Int64s, projection: Projection) -> Columns:
        keys = row_addresses(0, offsets) | (owners.astype(np.uint64) << np.uint64(32))
        ascending, back = _ascending(keys)
        shares = self._shares(*split_addresses(ascending), projection)
        columns: Columns = {}
        for first in range(0, len(shares), FRAGMENTS_AT_ONCE):
            open_at_once([share.reader for share in shares[first : first + FRAGMENTS_AT_ONCE]], reads)
            pieces = run(
                gather([_read(share, reads, projection) for share in shares[first : first + FRAGMENTS_AT_ONCE]])
            )
            columns = _joined([columns, *pieces] if columns else pieces)
        if not shares:
            columns = _none(reads, projection)
        return columns if back is None else {name: pick(array, back) for name, array in columns.items()}

    def _wanted(self, projection: Projection) -> Sequence[Read]:
        """Return the columns to read for a projection. The last result is cached."""
        last = self._last
        if last is None or last[0] is not projection:
            last = self._last = projection, reads(self._snapshot.schema, projection.paths, _forms(projection))
        return last[1]

    def _shares(self, owners: Int64s, offsets: Int64s, projection: Projection) -> list[_FragmentTake]:
        """Group rows by fragment. The rows are ordered by fragment and offset."""
        edges = [0, *(np.flatnonzero(owners[1:] != owners[:-1]) + 1).tolist()] if len(owners) else []
        numbered = any(path[0] in HIDDEN for path in projection.paths)
        return [
            _FragmentTake(
                self._reader(int(owners[begin])),
                offsets[begin:end],
                int(self._live_bounds()[owners[begin]]) if numbered else 0,
            )
            for begin, end in zip(edges, [*edges, len(owners)][1:], strict=True)
        ]

    def _owners(self, ids: Int64s) -> Int64s:
        """Return the fragment positions for fragment ids."""
        index_of = self._index_of
        owners = np.array([index_of.get(i, -1) for i in ids.tolist()], np.int64)
        if (owners < 0).any():
            raise InvalidInputError("the row address has a fragment that does not exist", found=int(ids[owners < 0][0]))
        return owners

    def _owner(self, fragment_id: int) -> int:
        """Return the fragment position for a fragment id."""
        index = self._index_of.get(fragment_id)
        if index is None:
            raise InvalidInputError("the row address has a fragment that does not exist", found=fragment_id)
        return index

    @cached_property
    def _index_of(self) -> dict[int, int]:
        return {fragment_id: index for index, fragment_id in enumerate(self._fragments.ids())}

    def _lives(self, reader: FragmentReader, offsets: Int64s) -> NDArray[np.bool_]:
        if len(offsets) and int(offsets.max()) >= reader.num_rows:
            where = f"fragment {reader.fragment.id}"
            raise InvalidInputError(
                "row offset", where=where, expected=f"< {reader.num_rows}", found=int(offsets.max())
            )
        return np.ones(len(offsets), np.bool_) if reader.deletions is None else ~reader.deletions.contains(offsets)

    def _live_bounds(self) -> Int64s:
        if self._bounds is None:
            counts = np.array(self._snapshot.row_counts(), np.int64)
            self._bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return self._bounds

    def _reader(self, index: int) -> FragmentReader:
        reader = self._readers.get(index)
        if reader is None:
            reader = self._readers[index] = FragmentReader(self._snapshot, self._fragments[index], self._columns)
        return reader


def places(values: Any, what: str) -> Int64s | Addresses:
    """Return the integers in a list, range, numpy array or Arrow array as int64, or as uint64 if they exceed int64.

    Raises:
        WrongTypeError: A value is not an integer.
        InvalidInputError: A value exceeds 64 bits, or is null.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        if values.null_count:
            raise InvalidInputError(f"null in {what}")
        values = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values.to_numpy()
    try:
        listed = values if isinstance(values, np.ndarray | Sequence) else list(values)
        items = np.asarray(listed)
    except (TypeError, ValueError, OverflowError) as error:
        raise _no_list(values, what) from error
    if items.size == 0 and not isinstance(values, str | bytes):
        return np.empty(0, np.int64)
    if items.ndim != 1 or items.dtype.kind not in "iu":
        return _large_places(values, listed, what)
    return items if items.dtype == np.uint64 else items.astype(np.int64)


def _no_list(values: Any, what: str) -> WrongTypeError:
    return WrongTypeError(f"bad {what}", expected="a list of whole numbers", found=type(values).__name__)


def _large_places(values: Any, listed: Any, what: str) -> Addresses:
    """Convert values to uint64 that numpy does not convert to integers: large 64-bit values, or an empty list."""
    if isinstance(values, str | bytes | Mapping) or np.ndim(listed) != 1:
        raise _no_list(values, what)
    numbers = listed.tolist() if isinstance(listed, np.ndarray) else listed
    for value in numbers:
        if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
            text = f"{value!r} of type {type(value).__name__}"
            raise WrongTypeError(f"bad {what}", expected="whole numbers", found=text)
        if not 0 <= value.__index__() < 1 << 64:
            raise InvalidInputError(f"bad {what}", expected="whole numbers from 0 to 2^64 - 1", found=value)
    return np.array(numbers, np.uint64)


def _unsigned(numbers: Int64s | Addresses, what: str) -> Addresses:
    """Return numbers as uint64. Raises InvalidInputError if one is negative."""
    if numbers.dtype != np.uint64 and len(numbers) and int(numbers.min()) < 0:
        raise InvalidInputError(f"bad {what}", expected="no negative number", found=int(numbers.min()))
    return numbers.view(np.uint64)


def _is_one(numbers: Int64s) -> bool:
    """Return whether all numbers are equal. There must be at least one number."""
    return bool(np.logical_and.reduce(numbers == numbers[0]))


def _ascending(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Int64s | None]:
    """Return the distinct keys in ascending order, and the index of each key in them.

    The indices are None if the keys are already distinct and ascending.
    """
    if (keys[1:] > keys[:-1]).all():
        return keys, None
    order = np.argsort(keys)
    ordered = keys[order]
    if not (ordered[1:] > ordered[:-1]).all():
        return np.unique(keys, return_inverse=True)
    back = np.empty(len(keys), np.int64)
    back[order] = np.arange(len(keys))
    return ordered, back


def row_positions(values: Any, count: int) -> Int64s:
    """Return row positions as int64, after checking them against `count` rows.

    Raises:
        InvalidInputError: A position is negative or past the last row.
    """
    return _in_range(places(values, "row positions"), count)


def _in_range(row_positions: Int64s | Addresses, count: int) -> Int64s:
    """Return the positions as int64. Raises InvalidInputError if one is negative or past the last row."""
    outside = (row_positions < 0) | (row_positions >= count)
    if outside.any():
        expected = f"0 to {count - 1}" if count else "no positions, because the table is empty"
        raise InvalidInputError("row position", expected=expected, found=int(row_positions[outside][0]))
    return row_positions.view(np.int64)


def _read(share: _FragmentTake, reads: Sequence[Read], projection: Projection) -> Request[Columns]:
    columns = yield from share.reader.read(reads, share.offsets)
    present = {read.name for read in reads}
    for name in dict.fromkeys(path[0] for path in projection.paths):
        if name not in present:
            columns[name] = share.reader.hidden(name, share.offsets, share.row_offset)
    return columns


def _joined(pieces: Sequence[Columns]) -> Columns:
    if len(pieces) == 1:
        return pieces[0]
    return {name: concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


def _none(columns: Sequence[Read], projection: Projection) -> Columns:
    hidden = {path[0]: pa.nulls(0, pa.uint64()) for path in projection.paths if path[0] in HIDDEN}
    return {**hidden, **{read.name: pa.nulls(0, read.arrow_type) for read in columns}}


def _forms(projection: Projection) -> dict[str, pa.DataType]:
    return {output.path[0]: output.field.type for output in projection.outputs if output.path and len(output.path) == 1}
