"""Small data files of one version, opened as one."""

from __future__ import annotations

from collections.abc import Sequence

from lance_duck.errors import CorruptError
from lance_duck.file.joined import JoinedFile, join_files
from lance_duck.snapshot.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.wire import paths
from lance_duck.wire.fragment import DataFile


def is_local(snapshot: Snapshot, data_file: DataFile) -> bool:
    """Return whether a data file lies on a local disk."""
    return local_path(snapshot.place(data_file.base_id)[0].uri) is not None


def open_joined(snapshot: Snapshot, data_files: Sequence[DataFile]) -> JoinedFile:
    """Open small data files as one, in this order. Each is read once, and whole.

    Raises:
        CorruptError: A file is not what the manifest says, or no Lance file.
        NotFoundError: A file does not exist.
        UnsupportedError: The files differ in version or columns.
    """
    contents = []
    for file in data_files:
        store, base = snapshot.place(file.base_id)
        path = paths.data_file(file.path, is_dataset_root=base is None or base.is_dataset_root)
        data = store.get(path)
        if len(data) != file.file_size:
            raise CorruptError(
                "file has another size than its manifest says", where=path, expected=file.file_size, found=len(data)
            )
        contents.append((path, data))
    return join_files(snapshot.uri, contents, checksums=snapshot.store.checksums)
