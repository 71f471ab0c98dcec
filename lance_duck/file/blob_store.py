"""The files that store the blobs of one data file: sidecars and external files.

data/{stem}.lance                                        the data file
data/{stem}/{id, 32 binary digits, reversed}.blob        sidecars: one large blob, or many packed end to end
_blobs/{uuid}.blob                                       blobs that all data files below the same root may share
{any URI}, or {name} below a base path of the table      external files, which the table does not own
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from lance_duck.cache import LruCache
from lance_duck.checksums.container import Checksums
from lance_duck.errors import CorruptError, NotFoundError
from lance_duck.file.costs import KEPT_BLOB_FILES
from lance_duck.store import ByteSource, Store
from lance_duck.store.checked import sidecar_source
from lance_duck.wire import paths

_MANAGED: Final = re.compile(rf"{paths.MANAGED_BLOBS}/[^/\\\x00]+\.blob")

External = Callable[[int, str], ByteSource]
"""Opens an external file, given a base path id and a name below that base path, or given 0 and a URI."""


class BlobStore:
    """Opens the blob files of one data file, and keeps the most recently used ones open.

    Safe to use from several threads.

    Args:
        store: Store of the data file.
        data_file: Name of the data file in the manifest.
        is_dataset_root: Whether the store is laid out like a table.
        open_external: Opens files that the table does not own.
        checksums: Reads the checksums of sidecars, by blob id. None if sidecars were written without checksums.
    """

    def __init__(
        self,
        store: Store,
        data_file: str,
        is_dataset_root: bool,
        open_external: External,
        checksums: Callable[[], Mapping[int, Checksums]] | None = None,
    ) -> None:
        self._store = store
        self._data_file = data_file
        self._is_dataset_root = is_dataset_root
        self._open_external = open_external
        self._read_checksums = checksums
        self._sidecars: LruCache[ByteSource] = LruCache(KEPT_BLOB_FILES)
        self._managed: LruCache[ByteSource] = LruCache(KEPT_BLOB_FILES)
        self._externals: LruCache[ByteSource] = LruCache(KEPT_BLOB_FILES)

    def sidecar(self, blob_id: int) -> ByteSource:
        """Open a sidecar.

        Raises:
            NotFoundError: The sidecar does not exist.
        """
        return self._sidecars.get(blob_id, lambda: self._open_sidecar(blob_id))

    @cached_property
    def checksums(self) -> Mapping[int, Checksums]:
        """Checksums of the sidecars, by blob id; empty if the sidecars were written without checksums.

        Raises:
            CorruptError: The data file, which stores the checksums, is damaged.
        """
        return {} if self._read_checksums is None else self._read_checksums()

    def sidecar_path(self, blob_id: int) -> str:
        """Return the path of a sidecar below the root of its table or base path."""
        return paths.blob_file(self._data_file, blob_id, is_dataset_root=self._is_dataset_root)

    def managed(self, base_id: int, name: str) -> ByteSource:
        """Open a managed blob file by its path relative to the root of the data file.

        Args:
            base_id: Id of a base path to search if the root does not contain the file, or 0.
            name: The path.

        Raises:
            NotFoundError: The file does not exist.
            CorruptError: The path is not a managed blob path.
        """
        if not _MANAGED.fullmatch(name):
            expected = f"{paths.MANAGED_BLOBS}/(name).blob"
            raise CorruptError("invalid blob path", where=self._data_file, expected=expected, found=name)
        return self._managed.get((base_id, name), lambda: self._open_managed(base_id, name))

    def external(self, base_id: int, name: str) -> ByteSource:
        """Open an external file, given a name below a base path, or given a URI if the id is 0.

        Raises:
            NotFoundError: The file does not exist.
            InvalidInputError: The name leaves its base path, or is not an absolute URI.
            CorruptError: The table does not have a base path with this id.
        """
        return self._externals.get((base_id, name), lambda: self._open_external(base_id, name))

    def _open_sidecar(self, blob_id: int) -> ByteSource:
        source = self._store.open(self.sidecar_path(blob_id))
        checksums = self.checksums.get(blob_id)
        return source if checksums is None else sidecar_source(source, checksums)

    def _open_managed(self, base_id: int, name: str) -> ByteSource:
        try:
            return self._store.open(name)
        except NotFoundError:
            if not base_id:
                raise
        return self._open_external(base_id, name)
