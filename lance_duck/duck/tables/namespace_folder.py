"""Presents the tables of a namespace as a `Folder`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lance_duck.duck.tables.folder import Folder, catalog_with_warnings
from lance_duck.errors import AlreadyExistsError, LanceDuckError
from lance_duck.namespaces import DirectoryNamespace, Namespace


class NamespaceFolder(Folder):
    """The tables of one namespace, without the tables of its child namespaces.

    Args:
        namespace: The folder or service that contains the namespace.
        name: The parts of its name. () is the root.
        uri: Name of the namespace in messages.
        parent: The folder with the parent namespace, if it is also open.

    Attributes:
        parent: The folder with the parent namespace, or None.

    Raises:
        NotFoundError: The namespace does not exist.
    """

    def __init__(self, namespace: Namespace, name: tuple[str, ...], uri: str, parent: Folder | None = None) -> None:
        self.uri = uri
        self.storage_options = None
        self.namespace = namespace
        self.parts = name
        self.parent = parent
        self.tables(force=True)

    def tables(self, *, force: bool = False) -> dict[str, str]:
        """Return the current URI of each table, by table name. See `Folder.tables`."""
        if self.parent is not None:
            self.catalog = self.parent.catalog
        elif force or isinstance(self.namespace, DirectoryNamespace):
            self.catalog = catalog_with_warnings(self.namespace, self.parts)
        else:
            tables = {name: place for name, place in self.catalog.tables.items() if name[:-1] != self.parts}
            own = self.namespace.describe_tables(self.parts).items()
            self.catalog = replace(self.catalog, tables=tables | {(*self.parts, name): place for name, place in own})
        return self.tables_in(self.parts)

    def options_of(self, name: str) -> Mapping[str, str] | None:
        """Return the settings of the store of a table."""
        place = self.catalog.tables.get((*self.parts, name))
        return None if place is None else place.storage_options or None

    def place_of_new(self, name: str) -> tuple[str, Mapping[str, str] | None]:
        """Claim the name of a new table. Returns its location and the settings of its store."""
        try:
            place = self.namespace.declare_table((*self.parts, name))
        except AlreadyExistsError:  # declared but not written, because otherwise the table would be listed
            place = self.namespace.describe_table((*self.parts, name))
        return place.location, place.storage_options or None

    def abandon(self, name: str) -> None:
        """Release the name of a new table that was not written."""
        self.namespace.abandon_table((*self.parts, name))

    def drop(self, name: str, uri: str) -> None:
        """Remove a table with all its versions. Raises NotFoundError."""
        self.namespace.drop_table((*self.parts, name))

    def rename(self, name: str, new_name: str, uri: str) -> None:
        """Rename a table. See `Namespace.rename_table`."""
        self.namespace.rename_table((*self.parts, name), (*self.parts, new_name))

    def explain(self, name: str) -> LanceDuckError | None:
        """Return None. A namespace only lists tables."""
        return None

    def missing(self) -> LanceDuckError | None:
        """Return None. ATTACH already rejects a missing namespace."""
        return None

    def stamp(self) -> object:
        """Return a value that changes when tables are added or removed.

        Returns None if only a listing can detect changes.
        """
        return None if self.parent is None else self.parent.catalog
