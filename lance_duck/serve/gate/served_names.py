"""The names of the served folder, and the tables that requests opened last."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from lance_duck.cache import LruCache
from lance_duck.dataset import LanceDataset
from lance_duck.errors import NotFoundError
from lance_duck.namespaces import DirectoryNamespace
from lance_duck.namespaces.base import TableDescription
from lance_duck.namespaces.names import Name
from lance_duck.scan.table_scan import TableScan
from lance_duck.serve.gate.refusals import ForbiddenError
from lance_duck.snapshot import Snapshot, Version
from lance_duck.store import local_path

_KEPT: Final = 32


class ServedNamespace(DirectoryNamespace):
    """A folder of tables that refuses tables behind symbolic links to places outside.

    Its methods raise ForbiddenError for such a table.

    The tables that were opened last share their open files and indexes with the next request. Each request reads the
    newest version.
    """

    def __init__(self, root: str, *, storage_options: Mapping[str, str] | None = None) -> None:
        super().__init__(root, storage_options=storage_options)
        self.close_tables()

    def close_tables(self) -> None:
        """Let go of the tables that were opened last, and of their memory."""
        self._opened: LruCache[Snapshot] = LruCache(_KEPT)

    def open_table(
        self, name: Name, version: Version | None = None, asof: datetime | str | None = None
    ) -> LanceDataset:
        """See `DirectoryNamespace.open_table`."""
        location, opened = self.describe_table(name).location, self._opened
        kept = opened.find(location)
        if kept is None:
            table = super().open_table(name, version, asof)
        else:
            try:
                # The table may have been replaced by one with the same version number.
                newest = kept.checkout() if version == kept.version else kept
                table = LanceDataset(location, table=TableScan(newest.checkout(version, asof)))
            except NotFoundError:
                opened.drop(location)  # somebody dropped the table, or the version
                raise
        if version is None and asof is None and table.handle.snapshot is not kept:
            opened.drop(location)
            opened.put(location, table.handle.snapshot)
        return table

    def tables(self, inside: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
        """Yield the names of all tables. Tables of a namespace come before the tables of its children."""
        yield from ((*inside, name) for name in self.list_tables(inside))
        for child in self.list_namespaces(inside):
            yield from self.tables((*inside, child))

    def describe_table(self, name: Name) -> TableDescription:
        """See `DirectoryNamespace.describe_table`."""
        return self._checked(super().describe_table(name))

    def place_of_new(self, name: Name) -> TableDescription:
        """See `DirectoryNamespace.place_of_new`."""
        return self._checked(super().place_of_new(name))

    def declare_table(self, name: Name) -> TableDescription:
        """See `DirectoryNamespace.declare_table`. Checks first, because a declaration writes a file."""
        self.place_of_new(name)
        return self._checked(super().declare_table(name))

    def discard(self, place: TableDescription) -> None:
        """See `DirectoryNamespace.discard`. Keeps files outside."""
        if self._is_inside(place):
            super().discard(place)

    def _checked(self, place: TableDescription) -> TableDescription:
        if not self._is_inside(place):
            raise ForbiddenError("the table is outside the served folder", remedy="serve the folder that contains it")
        return place

    def _is_inside(self, place: TableDescription) -> bool:
        """Return whether a table is in the folder. Object stores have no symbolic links."""
        path, root = local_path(place.location), local_path(self.root)
        if path is None or root is None:
            return True
        real = os.path.realpath(root)
        return os.path.commonpath((real, os.path.realpath(path))) == real
