"""LanceFileSession: data files below one directory, without a table."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lance_duck.arguments import checked_calls
from lance_duck.errors import NotFoundError
from lance_duck.file.single import LanceFileReader
from lance_duck.file.single_writer import LanceFileWriter, file_place
from lance_duck.store import Store, copy_bytes, is_temporary, local_path, open_source, open_store


@dataclass(frozen=True)
class ListResult:
    """The directories and files directly in a directory, relative to the root of the session.

    Attributes:
        common_prefixes: Paths of the directories.
        objects: Paths of the files.
    """

    common_prefixes: list[str]
    objects: list[str]


@checked_calls
class LanceFileSession:
    """Reads and writes data files in one directory over one connection. All paths are relative to this root.

    Args:
        base_path: Path or URI of a directory.
        storage_options: Settings of the object store.

    Raises:
        UnsupportedError: The URI scheme is unknown.
        InvalidInputError: The URI or a setting is invalid. All methods raise it for a path that leaves the root.
    """

    def __init__(self, base_path: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> None:
        text = os.fspath(base_path)
        local = local_path(text)
        self._store: Store = open_store(text if local is None else os.path.abspath(local), storage_options)

    def open_reader(self, path: str, columns: Iterable[str] | None = None) -> LanceFileReader:
        """Open a data file. See `LanceFileReader`."""
        return LanceFileReader(path, columns=columns, store=self._store)

    def open_writer(
        self,
        path: str,
        *,
        schema: pa.Schema | None = None,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        max_page_bytes: int | None = None,
    ) -> LanceFileWriter:
        """Begin a data file. See `LanceFileWriter`."""
        return LanceFileWriter(
            path,
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            max_page_bytes=max_page_bytes,
            store=self._store,
        )

    def contains(self, path: str) -> bool:
        """Return whether a file exists."""
        return self._store.exists(path)

    def list(self, path: str | None = None) -> builtins.list[str]:
        """Return all files below a directory, at any depth, sorted by path. By default the whole root is listed."""
        return sorted(entry.path for entry in self._store.walk(path or "") if not is_temporary(entry.path))

    def list_with_delimiter(self, path: str | None = None) -> ListResult:
        """Return the directories and files directly in a directory, by default the root."""
        inside = (path or "").strip("/")
        begin = f"{inside}/" if inside else ""
        below = [file.removeprefix(begin) for file in self.list(inside)]
        folders = dict.fromkeys(name.partition("/")[0] for name in below if "/" in name)
        return ListResult([begin + name for name in folders], [begin + name for name in below if "/" not in name])

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return a byte range of a file.

        Raises:
            NotFoundError: The file does not exist.
            CorruptError: The range extends past the end of the file.
        """
        (content,) = self._store.open(path).read([(offset, length)])
        return content.tobytes()

    def delete_file(self, path: str) -> None:
        """Delete a file.

        Raises:
            NotFoundError: The file does not exist.
        """
        if not self._store.exists(path):
            raise NotFoundError("no such file", where=path)
        self._store.delete([path])

    def upload_file(self, local_path: str | os.PathLike[str], remote_path: str) -> None:
        """Copy a file from the local disk to the session.

        Raises:
            NotFoundError: The local file does not exist.
        """
        with self._store.create(remote_path) as sink:
            copy_bytes(open_source(os.path.abspath(local_path)), sink)

    def download_file(self, remote_path: str, local_path: str | os.PathLike[str]) -> None:
        """Copy a file from the session to the local disk.

        Raises:
            NotFoundError: The file does not exist.
        """
        source = self._store.open(remote_path)
        store, name = file_place(os.path.abspath(local_path), None)
        with store.create(name) as sink:
            copy_bytes(source, sink)
