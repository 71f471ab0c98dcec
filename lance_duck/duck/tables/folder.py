"""Folders of tables. For example, `dir/trips.lance` is the table `trips`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from lance_duck.dataset import LanceDataset
from lance_duck.errors import FormatError, InvalidInputError, LanceDuckError, NotFoundError, warn_of_table
from lance_duck.namespaces import Catalog, DirectoryNamespace, Namespace
from lance_duck.namespaces.folders import DEREGISTERED
from lance_duck.namespaces.listing import FOLDER as MANIFEST
from lance_duck.store.base import Store
from lance_duck.store.uri import checked_place, did_you_mean_path, join_uri, local_path, open_store
from lance_duck.verbs.versions.rename import rename_table
from lance_duck.wire.paths import TABLE_SUFFIX, VERSIONS

_PLAIN: Final = Catalog({(): {}}, {})
"""The catalog of a folder without `__manifest`."""


class Folder:
    """The tables below one folder or URI.

    Args:
        uri: The folder.
        storage_options: Settings of its object store.
        may_be_new: Accept a folder that does not exist. It is created with the first table.

    Raises:
        NotFoundError: The folder does not exist.
        InvalidInputError: The folder is a table itself.
    """

    def __init__(self, uri: str, storage_options: Mapping[str, str] | None = None, *, may_be_new: bool = False) -> None:
        checked_place(uri, storage_options)
        self.uri = uri.rstrip("/") or uri
        self.storage_options = storage_options
        self._may_be_new = may_be_new
        if self.uri.endswith(TABLE_SUFFIX):
            raise _is_a_table(uri)
        self._local = local_path(self.uri)
        self.parts: tuple[str, ...] = ()
        self.catalog = _PLAIN
        self.namespace: Namespace = DirectoryNamespace(self.uri, storage_options=storage_options)
        self._store: Store = open_store(self.uri, storage_options)
        if may_be_new and not self._exists():
            return
        if not self.tables() and VERSIONS in (self._store.folders() or ()):
            raise _is_a_table(self._store.uri)

    def tables(self, *, force: bool = False) -> dict[str, str]:
        """List the folder. Returns the current URI of each table, by table name.

        Args:
            force: Also list what only a service knows.
        """
        folders = self._store.folders()
        if folders is None:
            raise self._missing()
        if isinstance(self.namespace, DirectoryNamespace):
            self.namespace.log.note_folders(folders)
        self.catalog = self._catalog() if MANIFEST in folders else _PLAIN
        if self.catalog is not _PLAIN:
            return self.tables_in(self.parts)
        names = (name for name in folders if name.endswith(TABLE_SUFFIX) and name != TABLE_SUFFIX)
        tables = {name.removesuffix(TABLE_SUFFIX): join_uri(self.uri, name) for name in sorted(names)}
        return {name: uri for name, uri in tables.items() if not self._is_deregistered(name)}

    @property
    def schemas(self) -> list[str]:
        """The names of the namespaces directly in the folder when it was last listed. Each one is a schema."""
        return [name[-1] for name in self.catalog.namespaces if name != self.parts]

    def missing(self) -> LanceDuckError | None:
        """Return an error if the folder does not exist, otherwise None."""
        return self._missing() if self._store.folders() is None else None

    def _exists(self) -> bool:
        """Return whether the path exists, as a folder or a file."""
        return os.path.lexists(self._local) if self._local is not None else self._store.folders() is not None

    def _missing(self) -> NotFoundError:
        hint = "check the path; a first CREATE TABLE makes the folder" if self._may_be_new else "check the path"
        expected = "a folder of *.lance tables"
        if self._local is not None and os.path.lexists(self._local):
            remedy = f"SQL reads files by their paths: FROM '{self._local}'"
            return NotFoundError("not a folder", where=self.uri, expected=expected, found="a file", remedy=remedy)
        return NotFoundError(
            "no such folder", where=self.uri, expected=expected, remedy=did_you_mean_path(self.uri) or hint
        )

    def _catalog(self) -> Catalog:
        """Return the content of `__manifest`. If it cannot be read, its tables in the root are still listed."""
        try:
            return catalog_with_warnings(self.namespace, self.parts)
        except FormatError as error:
            warn_of_table(f"schemas, views, macros and types are not listed: {error}")
            return _PLAIN

    def tables_in(self, namespace: tuple[str, ...]) -> dict[str, str]:
        """Return the URIs of the tables that `catalog` has in a namespace, by name."""
        tables = self.catalog.tables.items()
        return {name[-1]: place.location for name, place in tables if name[:-1] == namespace}

    def options_of(self, name: str) -> Mapping[str, str] | None:
        """Return the settings of the store of a table."""
        return self.storage_options

    def place_of_new(self, name: str) -> tuple[str, Mapping[str, str] | None]:
        """Return the location of a new table, and the settings of its store."""
        return join_uri(self.uri, name + TABLE_SUFFIX), self.storage_options

    def abandon(self, name: str) -> None:
        """Release the location of a new table that was not written."""

    def drop(self, name: str, uri: str) -> None:
        """Remove a table with all its versions. Raises NotFoundError."""
        if self.catalog is _PLAIN:
            LanceDataset.drop(uri, storage_options=dict(self.storage_options or {}))
        else:
            self.namespace.drop_table((*self.parts, name))

    def rename(self, name: str, new_name: str, uri: str) -> None:
        """Rename a table: its folder if it is named after the table, otherwise only its row in `__manifest`."""
        target = self.uri_after_rename(name, new_name, uri)
        if target == uri:
            self.namespace.change_catalog(lambda draft: draft.rename_table((name,), (new_name,)))
            return
        rename_table(uri, target, self.storage_options)
        if self.catalog is not _PLAIN:
            self.namespace.change_catalog(lambda draft: draft.follow_folder(name, new_name, new_name + TABLE_SUFFIX))

    def uri_after_rename(self, name: str, new_name: str, uri: str) -> str:
        """Return the location that a table has after `rename`."""
        is_named = uri == join_uri(self.uri, name + TABLE_SUFFIX)
        return join_uri(self.uri, new_name + TABLE_SUFFIX) if is_named else uri

    def explain(self, name: str) -> LanceDuckError | None:
        """Return an error if the table's path is a file, otherwise None."""
        path = None if self._local is None else os.path.join(self._local, name + TABLE_SUFFIX)
        if path is None or "\0" in path or not os.path.isfile(path):
            return None
        return NotFoundError("this path is a file, not a table", where=path, expected="a directory")

    def _is_deregistered(self, name: str) -> bool:
        """Return whether a namespace has deregistered a table."""
        path = f"{name}{TABLE_SUFFIX}/{DEREGISTERED}"
        return self._store.exists(path) if self._local is None else os.path.exists(os.path.join(self._local, path))

    def stamp(self) -> object:
        """Return a value that changes when tables are added or removed.

        Returns None if only a listing can detect changes.
        """
        path = self._local
        if path is None:
            return None
        try:
            changed = os.stat(path).st_mtime_ns
        except OSError:
            return None
        if self.catalog is _PLAIN:
            return changed
        manifest = self.namespace.stamp()
        return None if manifest is None else (changed, manifest)


def catalog_with_warnings(namespace: Namespace, parts: tuple[str, ...]) -> Catalog:
    """Return the content of a namespace. Warns of names that cannot be read."""
    catalog = namespace.catalog(parts)
    for key, reason in catalog.broken.items():
        warn_of_table(f"{key} is skipped: {reason}")
    return catalog


def _is_a_table(place: str) -> InvalidInputError:
    return InvalidInputError(
        "this path is a table, not a folder of tables",
        where=place,
        remedy='pass the folder that contains it, or pass the table under a name: {"name": path}',
    )
