"""Reads adjacent small fragments as one, because opening a small fragment takes longer than decoding its rows.

`file.joined` opens the data files as one file, and `encoding.layouts.alike` decodes pages of one layout as one page.
`FragmentReader` is the reference implementation. It reads fragments that cannot be joined. If a joined read fails, it
reads the fragments again to raise their errors. For measurements, see `docs/decisions/joined-fragments.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError
from lance_duck.file.column import ColumnReader, Rows, open_column
from lance_duck.file.joined import JoinedFile, join_files
from lance_duck.rows import DeletionVector
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import GROWTH, JOINED_FILE_BYTES, JOINED_FRAGMENTS, JOINED_ROWS
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.predicate.arrays import keep
from lance_duck.scan.projection import Read
from lance_duck.scan.read.fragment_reader import Columns, FragmentReader
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.store.request import Request, gather, is_watched
from lance_duck.wire import paths
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.wire.schema import Field

_T = TypeVar("_T")


class JoinedFragments:
    """Reads rows of several fragments as if they were one. Safe to use from several threads.

    Args:
        snapshot: The version.
        readers: The fragments, in order. `shape_of` gives the same key for all of them.

    Attributes:
        readers: The fragments.
        num_rows: Number of physical rows in all fragments.
    """

    def __init__(self, snapshot: Snapshot, readers: Sequence[FragmentReader]) -> None:
        self.readers = readers
        rows = [reader.num_rows for reader in readers]
        self._bounds = [*accumulate(rows, initial=0)]
        self.num_rows = self._bounds[-1]
        self._files = _joined_files(snapshot, [reader.fragment for reader in readers], rows)

    @cached_property
    def deletions(self) -> DeletionVector | None:
        """Deleted rows, or None."""
        vectors = [(reader.deletions, base) for reader, base in zip(self.readers, self._bounds, strict=False)]
        deleted = [vector.deleted + np.uint32(base) for vector, base in vectors if vector is not None]
        return DeletionVector(np.concatenate(deleted)) if deleted else None

    @property
    def live_rows(self) -> list[int]:
        """Number of live rows per fragment."""
        return [reader.num_live_rows for reader in self.readers]

    def read(self, columns: Sequence[Read], rows: Rows) -> Request[Columns]:
        """Read columns. The request returns their arrays by name."""
        readers = [self._files.column(read.key, read.field, read.arrow_type) for read in columns]
        arrays = yield from gather([reader.read(slice(0, self.num_rows)) for reader in readers])
        if not isinstance(rows, slice):
            mask = np.zeros(self.num_rows, np.bool_)
            mask[rows] = True
            selected = pa.array(mask)
            arrays = [keep(array, selected) for array in arrays]
        elif rows.stop - rows.start < self.num_rows:
            arrays = [array.slice(rows.start, rows.stop - rows.start) for array in arrays]
        return {read.name: array for read, array in zip(columns, arrays, strict=True)}

    def offsets_of(self, rows: RowSet) -> NDArray[np.int64]:
        """Return the offsets of rows, counted from the first row of the first fragment."""
        bases = zip(self.readers, self._bounds, strict=False)
        return np.concatenate([rows.offsets(reader.fragment.id) + base for reader, base in bases])

    def hidden(self, name: str, rows: Rows, row_offset: int) -> pa.Array:
        """Read a hidden column: see `FragmentReader.hidden`."""
        offsets = np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows
        cuts = np.searchsorted(offsets, self._bounds).tolist()
        pieces = []
        for place, reader in enumerate(self.readers):
            in_fragment = offsets[cuts[place] : cuts[place + 1]] - self._bounds[place]
            pieces.append(reader.hidden(name, in_fragment, row_offset))
            row_offset += reader.num_live_rows
        return pa.concat_arrays(pieces)


def may_join(plan: ScanPlan) -> bool:
    """Return whether fragments of a plan may be read together: see `may_join_columns`."""
    return not plan.include_deleted and may_join_columns((*plan.first_reads, *plan.later_reads))


def may_join_columns(reads: Sequence[Read]) -> bool:
    """Return whether columns of several fragments may be read together.

    This is not possible if a column contains blobs, which are stored in separate files, or dictionaries, which may
    differ between fragments. It is also not possible while reads are counted, because each read must be counted
    separately.
    """
    fields = [field for read in reads for field in read.field.walk()]
    if is_watched() or any(field.blob_version for field in fields):
        return False
    return not any(_has_dictionary(read.arrow_type) for read in reads)


def shape_of(snapshot: Snapshot) -> Callable[[Fragment], Hashable | None]:
    """Return a function that maps a fragment to its join key, or None for a large fragment.

    Fragments with equal keys may be joined.
    """
    local: dict[int | None, bool] = {}

    def shape(fragment: Fragment) -> Hashable | None:
        parts = []
        if fragment.overlays:
            return None
        for file in fragment.files:
            if not file.column_indices or not file.file_size or file.file_size > JOINED_FILE_BYTES:
                return None
            if file.base_id not in local:
                local[file.base_id] = _is_local(snapshot, file)
            if not local[file.base_id]:
                return None
            parts.append((file.fields, file.column_indices, file.file_version))
        return tuple(parts) or None

    return shape


def joinable_groups(
    items: Iterable[_T], shape: Callable[[_T], Hashable | None], rows: Callable[[_T], int], first: int
) -> Iterator[list[_T]]:
    """Yield fragments in groups that may be joined. Later groups are larger.

    Args:
        items: The fragments, in any form.
        shape: Returns the join key of a fragment, or None if it must be read alone.
        rows: Returns the number of rows of a fragment.
        first: Maximum number of fragments in the first group.
    """
    held: list[_T] = []
    most, total, held_shape = first, 0, None
    for item in items:
        found = shape(item)
        is_full = len(held) == most or total + rows(item) > JOINED_ROWS
        if held and (found is None or found != held_shape or is_full):
            most = min(GROWTH * most, JOINED_FRAGMENTS)
            yield held
            held, total = [], 0
        held.append(item)
        total += rows(item)
        held_shape = found
        if found is None:
            yield held
            held, total = [], 0
    if held:
        yield held


def _has_dictionary(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return True
    return any(_has_dictionary(type_.field(place).type) for place in range(type_.num_fields))


class _JoinedFiles:
    """The data files of several fragments. Files with the same fields are joined. Safe to use from several threads.

    Args:
        snapshot: A version that contains the fragments.
        fragments: The fragments, in order. Their files have the same fields, in the same order.
        num_rows: Number of physical rows in each fragment.

    Attributes:
        nbytes: Size of the files, in bytes.
    """

    def __init__(self, snapshot: Snapshot, fragments: Sequence[Fragment], num_rows: Sequence[int]) -> None:
        self._fields_of = fragments[0].files
        self._num_rows = sum(num_rows)
        places = [[fragment.files[place] for fragment in fragments] for place in range(len(self._fields_of))]
        self._open_at = [_opener(snapshot, files, num_rows) for files in places]
        self._opened: dict[int, JoinedFile] = {}
        self._columns: dict[Hashable, ColumnReader] = {}
        self.nbytes = sum(file.file_size or 0 for files in places for file in files)

    def column(self, key: Hashable, field: Field, arrow_type: pa.DataType) -> ColumnReader:
        """Return the reader of a top-level column.

        Args:
            key: Cache key for the other two arguments.
            field: The column.
            arrow_type: Type of the arrays that the reader returns.

        Raises:
            CorruptError: A file contradicts the manifest, or is not a Lance file.
            NotFoundError: A file does not exist.
            UnsupportedError: The files differ in version or columns.
        """
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = open_column(field, self._locate, self._num_rows, arrow_type)
        return column

    def _locate(self, field_id: int) -> tuple[JoinedFile, int] | None:
        for place, data_file in enumerate(self._fields_of):
            if field_id in data_file.fields:
                column = data_file.column_of(field_id)
                return None if column is None else (self._file(place), column)
        return None

    def _file(self, place: int) -> JoinedFile:
        file = self._opened.get(place)
        if file is None:
            file = self._opened[place] = self._open_at[place]()
        return file


def _joined_files(snapshot: Snapshot, fragments: Sequence[Fragment], num_rows: Sequence[int]) -> _JoinedFiles:
    """Return the joined data files of fragments. The last results are cached."""
    kept: SizedCache[_JoinedFiles] = snapshot.shared(
        "joined files", lambda: SizedCache(JOINED_FRAGMENTS * JOINED_FILE_BYTES, lambda files: files.nbytes)
    )
    # In a different version, the same files may have different fields.
    shape = tuple([(file.fields, file.column_indices) for file in fragments[0].files])
    paths_of = tuple([(file.base_id, file.path) for fragment in fragments for file in fragment.files])
    key = shape, paths_of, tuple(num_rows)
    return kept.get(key, lambda: _JoinedFiles(snapshot, fragments, num_rows))


def _is_local(snapshot: Snapshot, data_file: DataFile) -> bool:
    """Return whether a data file is on a local disk."""
    return local_path(snapshot.place(data_file.base_id)[0].uri) is not None


def _opener(snapshot: Snapshot, data_files: Sequence[DataFile], num_rows: Sequence[int]) -> Callable[[], JoinedFile]:
    """Return a function that reads small data files completely, and opens them as one file, in this order."""
    stores = [snapshot.place(file.base_id) for file in data_files]
    where, checksums = snapshot.uri, snapshot.store.checksums

    def open_() -> JoinedFile:
        contents = []
        for file, (store, base) in zip(data_files, stores, strict=True):
            path = paths.data_file(file.path, is_dataset_root=base is None or base.is_dataset_root)
            data = store.get(path)
            if len(data) != file.file_size:
                raise CorruptError(
                    "the file size differs from the manifest", where=path, expected=file.file_size, found=len(data)
                )
            contents.append((path, data))
        joined = join_files(where, contents, checksums=checksums)
        for (path, _), rows, expected in zip(contents, joined.rows, num_rows, strict=True):
            if rows != expected:
                raise CorruptError("wrong row count in a data file", where=path, expected=expected, found=rows)
        return joined

    return open_
