"""Small data files of neighbouring fragments, opened as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import pyarrow as pa

from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError
from lance_duck.file.column import ColumnReader, open_column
from lance_duck.file.joined import JoinedFile, join_files
from lance_duck.snapshot.costs import JOINED_BYTES
from lance_duck.snapshot.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.wire import paths
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.wire.schema import Field


class JoinedFiles:
    """The data files of several fragments, those at one place of each as one file. Safe to use from several threads.

    Args:
        snapshot: A version that has the fragments.
        fragments: The fragments, in order; their files have the same fields, in the same order.
        num_rows: Physical rows of each.

    Attributes:
        nbytes: Bytes of the files.
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
            key: Stands for the two others.
            field: The column.
            arrow_type: Form to give its values.

        Raises:
            CorruptError: A file is not what the manifest says, or no Lance file.
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


def joined_files(snapshot: Snapshot, fragments: Sequence[Fragment], num_rows: Sequence[int]) -> JoinedFiles:
    """Return the data files of fragments as one; the last ones stay open. See `JoinedFiles`."""
    kept: SizedCache[JoinedFiles] = snapshot.shared(
        "joined files", lambda: SizedCache(JOINED_BYTES, lambda files: files.nbytes)
    )
    # Another version may have other fields in the same files.
    shape = tuple([(file.fields, file.column_indices) for file in fragments[0].files])
    paths_of = tuple([(file.base_id, file.path) for fragment in fragments for file in fragment.files])
    key = shape, paths_of, tuple(num_rows)
    return kept.get(key, lambda: JoinedFiles(snapshot, fragments, num_rows))


def is_local(snapshot: Snapshot, data_file: DataFile) -> bool:
    """Return whether a data file lies on a local disk."""
    return local_path(snapshot.place(data_file.base_id)[0].uri) is not None


def _opener(snapshot: Snapshot, data_files: Sequence[DataFile], num_rows: Sequence[int]) -> Callable[[], JoinedFile]:
    """Return what opens small data files as one, in this order; each is read once, whole, and has rows of its own."""
    stores = [snapshot.place(file.base_id) for file in data_files]
    where, checksums = snapshot.uri, snapshot.store.checksums

    def open_() -> JoinedFile:
        contents = []
        for file, (store, base) in zip(data_files, stores, strict=True):
            path = paths.data_file(file.path, is_dataset_root=base is None or base.is_dataset_root)
            data = store.get(path)
            if len(data) != file.file_size:
                raise CorruptError(
                    "file has another size than its manifest says", where=path, expected=file.file_size, found=len(data)
                )
            contents.append((path, data))
        joined = join_files(where, contents, checksums=checksums)
        for (path, _), rows, expected in zip(contents, joined.rows, num_rows, strict=True):
            if rows != expected:
                raise CorruptError("rows of a data file", where=path, expected=expected, found=rows)
        return joined

    return open_
