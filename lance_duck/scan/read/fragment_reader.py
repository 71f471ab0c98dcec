"""Reads rows of one fragment by physical offset. Hidden columns are computed from the fragment's metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.cache import LruCache
from lance_duck.errors import CorruptError
from lance_duck.file.column import ColumnReader, Rows, open_column
from lance_duck.file.reader import LanceFile
from lance_duck.rows import DeletionVector, row_addresses
from lance_duck.scan.costs import LEAST_PAGE_BYTES
from lance_duck.scan.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ADDRESS, ROW_ID, Read
from lance_duck.scan.read.row_access import RowAccess, as_points, choose_row_access
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.overlays import with_overlays
from lance_duck.snapshot.with_log import refuse_row_ids
from lance_duck.store import local_path
from lance_duck.store.costs import REQUESTS_AT_ONCE
from lance_duck.store.request import ByteSource, Request, gather
from lance_duck.wire.fragment import Fragment

_CACHED_COLUMNS: Final = 1024
"""Maximum number of column readers that a version caches. Each takes a few kilobytes. This limits memory."""

Columns = dict[str, pa.Array]


class FragmentReader:
    """Reads rows of one fragment. Safe to use from several threads.

    Attributes:
        fragment: The fragment.
        num_rows: Number of physical rows in the fragment, including deleted rows.
        deletions: Deleted rows of the fragment, or None.
    """

    def __init__(self, snapshot: Snapshot, fragment: Fragment, columns: ColumnCache) -> None:
        self.fragment = fragment
        self.num_rows = snapshot.physical_rows(fragment)
        self._snapshot = snapshot
        self._columns = columns

    @property
    def deletions(self) -> DeletionVector | None:
        """Deleted rows, or None."""
        return self._snapshot.deletion_vector(self.fragment)

    @property
    def num_live_rows(self) -> int:
        """Number of rows that are not deleted."""
        return self._snapshot.num_rows(self.fragment)

    @property
    def is_remote(self) -> bool:
        """Whether opening a file takes a round trip."""
        return local_path(self._snapshot.uri) is None

    def open(self, columns: Sequence[Read]) -> None:
        """Open columns and their files, and read the deletion file, before the first `read` would do it."""
        _ = self.deletions
        for read in columns:
            self._columns.get(self.fragment, read, self._open)

    def is_open(self, columns: Sequence[Read]) -> bool:
        """Return whether all columns are open."""
        return all(self._columns.has(self.fragment, read) for read in columns)

    def stored_bytes(self, read: Read) -> int:
        """Return the size of a column in the fragment's files, in bytes.

        Each full page counts at least `LEAST_PAGE_BYTES`, because pages may be compressed well.
        """
        return self._columns.stored_bytes(self.fragment, read, self._count_stored)

    def read(self, columns: Sequence[Read], rows: Rows) -> Request[Columns]:
        """Read columns. The request returns their arrays by name."""
        readers = [self._columns.get(self.fragment, read, self._open) for read in columns]
        points = as_points(rows) if choose_row_access(rows, self.num_rows) is RowAccess.POINTS else None
        arrays = [None if points is None else reader.read_points(points) for reader in readers]
        missing = [place for place, array in enumerate(arrays) if array is None]
        if missing:
            pieces = yield from gather([readers[place].read(rows) for place in missing])
            for place, array in zip(missing, pieces, strict=True):
                arrays[place] = array
        return {read.name: array for read, array in zip(columns, arrays, strict=True)}

    def view(self, read: Read, rows: slice) -> Request[pa.Array]:
        """Read rows of a column. If a memory-mapped file stores them in Arrow's layout, they are not copied."""
        return (yield from self._columns.get(self.fragment, read, self._open).read(rows))

    def source_of(self, read: Read) -> ByteSource | None:
        """Return the file of a top-level column, or None if the column is in several files or in no file."""
        if self.fragment.overlays:
            return None
        place = self._locate(read.field.id)
        return None if place is None else place[0].source

    def is_dictionary(self, read: Read) -> bool:
        """Return whether every page of a column is dictionary-encoded."""
        return self._columns.get(self.fragment, read, self._open).is_dictionary()

    def has_no_nulls(self, read: Read) -> bool:
        """Return whether page metadata proves that a column is free of nulls, including deleted rows."""
        return self._columns.get(self.fragment, read, self._open).has_no_nulls()

    def has_no_null_items(self, read: Read) -> bool:
        """Return whether page metadata proves that vectors are free of null items, including deleted rows."""
        return self._columns.get(self.fragment, read, self._open).has_no_null_items()

    def hidden(self, name: str, rows: Rows, row_offset: int) -> pa.Array:
        """Read a hidden column, uint64.

        Args:
            name: One of `projection.HIDDEN`.
            rows: Physical offsets.
            row_offset: Number of live rows before this fragment in the table.
        """
        offsets = np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows
        if name in (ROW_ID, CREATED_AT, LAST_UPDATED_AT):
            refuse_row_ids(self._snapshot)
        if name in (ROW_ADDRESS, ROW_ID):
            ids = self._snapshot.row_ids(self.fragment) if name == ROW_ID else None
            return pa.array(row_addresses(self.fragment.id, offsets) if ids is None else ids.take(offsets))
        if name in (CREATED_AT, LAST_UPDATED_AT):
            return pa.array(self._versions(name, offsets))
        deletions = self.deletions
        num_deleted = 0 if deletions is None else np.searchsorted(deletions.deleted, offsets.astype(np.uint32))
        return pa.array((offsets - num_deleted + row_offset).astype(np.uint64))

    def _count_stored(self, read: Read) -> int:
        places = [self._locate(field.id) for field in read.field.walk()]
        pages = [page for place in places if place is not None for page in place[0].column(place[1]).pages]
        stored = sum(size for page in pages for _, size in page.buffers)
        return max(stored, (len(pages) - len(places)) * LEAST_PAGE_BYTES)

    def _versions(self, name: str, offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
        find = self._snapshot.created_at if name == CREATED_AT else self._snapshot.last_updated_at
        versions = find(self.fragment)
        return np.ones(len(offsets), np.uint64) if versions is None else versions.take(offsets)

    def _open(self, read: Read) -> ColumnReader:
        if not self.fragment.files and self.num_rows:  # the row count cannot be checked without files
            where = f"{self._snapshot.uri}, fragment {self.fragment.id}"
            raise CorruptError("the fragment has rows without a data file", where=where, found=self.num_rows)
        column = open_column(read.field, self._locate, self.num_rows, read.arrow_type)
        return with_overlays(self._snapshot, self.fragment, read.field, column)

    def _locate(self, field_id: int) -> tuple[LanceFile, int] | None:
        for data_file in self.fragment.files:
            if field_id in data_file.fields:
                file = self._snapshot.data_file(data_file)
                column = data_file.column_of(field_id)
                return None if column is None else (file, column)
        return None


def open_at_once(readers: Sequence[FragmentReader], columns: Sequence[Read]) -> None:
    """Open files of several fragments concurrently if each needs a round trip. Otherwise, `read` opens them."""
    if not readers or not readers[0].is_remote:
        return
    closed = [reader for reader in readers if not reader.is_open(columns)]
    if len(closed) > 1:
        with ThreadPoolExecutor(min(len(closed), REQUESTS_AT_ONCE), thread_name_prefix="lance_duck-open") as pool:
            list(pool.map(lambda reader: reader.open(columns), closed))


class ColumnCache:
    """Cache of a snapshot's column readers. The least recently used readers are dropped first. Thread-safe."""

    def __init__(self, limit: int = _CACHED_COLUMNS) -> None:
        self._readers: LruCache[ColumnReader] = LruCache(limit)
        self._sizes: LruCache[int] = LruCache(limit)

    def has(self, fragment: Fragment, read: Read) -> bool:
        """Return whether the reader of a column is cached."""
        return self._readers.find((fragment.id, read.key)) is not None

    def get(self, fragment: Fragment, read: Read, open_: Callable[[Read], ColumnReader]) -> ColumnReader:
        """Return the reader of a column. It is opened if it is not cached."""
        return self._readers.get((fragment.id, read.key), lambda: open_(read))

    def stored_bytes(self, fragment: Fragment, read: Read, count: Callable[[Read], int]) -> int:
        """Return the size of a column in its files, in bytes. It is counted on first use."""
        return self._sizes.get((fragment.id, read.key), lambda: count(read))
