"""A folder of tables as a namespace, in both forms of Lance's directory catalog.

    __manifest/       names of namespaces and tables: see `listing`
    {name}.lance/     a table of the root. `folders` describes the folders of all tables

Without nested namespaces, `__manifest` may be missing, and the folders alone define the tables. If it exists, tables of
the root also have rows. A row is added before the table's data is written, and removed before the data is removed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from lance_duck.arguments import checked_calls
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    UnsupportedError,
    warn_of_table,
)
from lance_duck.namespaces.base import Namespace, TableDescription
from lance_duck.namespaces.folders import TableFolders
from lance_duck.namespaces.listing import Listing, NamedObject
from lance_duck.namespaces.names import DELIMITER, NAMESPACE, TABLE, Name, check_new, name_parts, object_id
from lance_duck.store import join_uri
from lance_duck.wire.paths import TABLE_SUFFIX

_Edit = tuple[list[str], list[NamedObject]]
_Objects = Mapping[str, NamedObject]
"""Rows by object id."""


@checked_calls
class DirectoryNamespace(Namespace):
    """The tables of a folder, with the same names as in pylance, LanceDB and DuckDB's extension.

    Args:
        root: Path or URI of the folder. The first table creates it.
        manifest_enabled: Whether to store names in `__manifest`. False also disables nested namespaces. With None,
            names are stored if `__manifest` exists or a nested namespace is created.
        dir_listing_enabled: Whether folders `{name}.lance` without a row in `__manifest` are tables of the root.
        storage_options: Settings of the store.
    """

    def __init__(
        self,
        root: str,
        *,
        manifest_enabled: bool | None = None,
        dir_listing_enabled: bool = True,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root.rstrip("/") or root
        options = dict(storage_options or {})
        self._manifest_enabled = manifest_enabled
        self._folders = TableFolders(self.root, options, is_listing=dir_listing_enabled)
        self._listing = Listing(self.root, options or None)

    def __repr__(self) -> str:
        return f"DirectoryNamespace({self.root!r})"

    def list_namespaces(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the child namespaces, without the parent's name. Raises NotFoundError."""
        return _names_directly_in(name_parts(name), NAMESPACE, self._objects())

    def list_tables(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the tables in a namespace, without the namespace. Raises NotFoundError."""
        parts = name_parts(name)
        rows = _names_directly_in(parts, TABLE, self._objects())
        return rows if parts else sorted({*rows, *self._folders.listed()})

    def describe_namespace(self, name: Name) -> dict[str, str]:
        """Return the properties of a namespace. Raises NotFoundError."""
        parts = name_parts(name)
        return _namespace_row(parts, self._objects()).properties() if parts else {}

    def create_namespace(
        self, name: Name, properties: Mapping[str, str] | None = None, *, exist_ok: bool = False
    ) -> None:
        """Create a namespace: see `Namespace.create_namespace`."""
        parts = name_parts(name)
        check_new(parts, NAMESPACE)
        if self._manifest_enabled is False:
            raise UnsupportedError(
                "nested namespaces need manifest_enabled", where=self.root, remedy="pass manifest_enabled=True"
            )

        def edit(objects: dict[str, NamedObject]) -> _Edit:
            _check_parent_namespace(parts, objects)
            present = objects.get(object_id(parts))
            if present is None:
                return [], [NamedObject.of_namespace(object_id(parts), properties)]
            if present.object_type == NAMESPACE and exist_ok:
                return [], []
            raise AlreadyExistsError(f"a {present.object_type} of this name exists", where=object_id(parts))

        self._listing.change(edit)

    def drop_namespace(self, name: Name) -> None:
        """Drop an empty namespace. Raises NotFoundError, or ReferencedError if it is not empty."""
        parts = name_parts(name)
        check_new(parts, NAMESPACE)

        def edit(objects: dict[str, NamedObject]) -> _Edit:
            _namespace_row(parts, objects)
            if names := _names_below(parts, objects):
                raise ReferencedError("the namespace is not empty", where=object_id(parts), found=", ".join(names[:5]))
            return [object_id(parts)], []

        self._listing.change(edit)

    def describe_table(self, name: Name) -> TableDescription:
        """Return the location of a table. Raises NotFoundError."""
        parts = name_parts(name)
        row = self._objects().get(object_id(parts))
        if row is not None and row.object_type == TABLE:
            return self._place_of(row)
        if len(parts) == 1 and self._folders.is_listed(parts[0]):
            return self._folders.place(parts[0] + TABLE_SUFFIX)
        raise NotFoundError("no such table", where=object_id(parts) or "the root", expected=f"a table of {self.root}")

    def declare_table(self, name: Name) -> TableDescription:
        """Reserve a table name, and return the location for its first version. See `Namespace.declare_table`."""
        parts = name_parts(name)
        check_new(parts, TABLE)
        folder = self._folders.of_new(parts)
        if len(parts) == 1 and self._folders.is_listed(parts[0]):
            raise AlreadyExistsError("a table or namespace already has this name", where=object_id(parts))
        has_row = self._keeps_rows(parts)
        if has_row:
            self._add_row(NamedObject(object_id(parts), TABLE, folder))
        if not self._folders.reserve(folder) and not has_row:
            raise AlreadyExistsError("a table or namespace already has this name", where=object_id(parts))
        return self._folders.place(folder)

    def register_table(self, name: Name, location: str) -> None:
        """Register an existing table under a name: see `Namespace.register_table`."""
        parts = name_parts(name)
        check_new(parts, TABLE)
        if location.startswith("/") or "://" in location or os.path.isabs(location):
            raise InvalidInputError("invalid table location", expected="a folder, relative to the root", found=location)
        folder = self._folders.inside(location)
        if not self._folders.has_files(folder):
            raise NotFoundError("no such folder", where=join_uri(self.root, folder))
        if self._manifest_enabled is not False:
            self._add_row(NamedObject(object_id(parts), TABLE, folder))
        elif folder != "".join(parts) + TABLE_SUFFIX:
            raise UnsupportedError(
                "a table name that differs from its folder needs manifest_enabled",
                where=folder,
                remedy="pass manifest_enabled=True",
            )
        self._folders.register(folder)

    def deregister_table(self, name: Name) -> None:
        """Remove the name of a table, but keep the table's files. Raises NotFoundError."""
        parts = name_parts(name)
        place = self.describe_table(parts)
        self._remove_row(parts, place)
        if len(parts) == 1 and place.location == join_uri(self.root, parts[0] + TABLE_SUFFIX):
            self._folders.deregister(parts[0] + TABLE_SUFFIX)

    def drop_table(self, name: Name) -> None:
        """Drop a table with all its versions. Raises NotFoundError."""
        parts = name_parts(name)
        place = self.describe_table(parts)
        self._remove_row(parts, place)
        self._folders.remove(place, is_table=not self.is_declared_only(place))

    def rename_table(self, name: Name, new_name: Name) -> None:
        """Rename a table by changing its row in `__manifest`. The folder does not change.

        Raises:
            NotFoundError: The table, or the namespace of the new name, does not exist.
            AlreadyExistsError: The new name is taken.
            UnsupportedError: The table is in the root, so its folder determines its name.
        """
        old, new = name_parts(name), name_parts(new_name)
        check_new(new, TABLE)
        if len(old) == 1 or len(new) == 1:
            raise UnsupportedError(
                "a table in the root namespace cannot be renamed",
                where=object_id(old),
                remedy="copy it with deep_clone, then drop it",
            )

        def edit(objects: dict[str, NamedObject]) -> _Edit:
            row = objects.get(object_id(old))
            if row is None or row.object_type != TABLE:
                raise NotFoundError("no such table", where=object_id(old))
            _check_parent_namespace(new, objects)
            if object_id(new) in objects:
                raise AlreadyExistsError("a table or namespace already has this name", where=object_id(new))
            return [object_id(old)], [NamedObject(object_id(new), TABLE, row.location, row.metadata)]

        self._listing.change(edit)

    def describe_tables(self, name: Name = ()) -> dict[str, TableDescription]:
        """Return the locations of the tables directly in a namespace. Invalid rows are skipped with a warning."""
        parts, objects = name_parts(name), self._objects()
        listed = () if parts else self._folders.listed()
        places = {table: self._folders.place(table + TABLE_SUFFIX) for table in listed}
        for table in _names_directly_in(parts, TABLE, objects):
            row = objects[object_id((*parts, table))]
            try:
                places[table] = self._place_of(row)
            except LanceDuckError as error:
                warn_of_table(f"table {row.object_id} is skipped: {error}")
        return dict(sorted(places.items()))

    def abandon_table(self, name: Name) -> None:
        """Remove the name of a declared table that was not written. Ignores errors of the namespace."""
        parts = name_parts(name)
        with suppress(LanceDuckError):  # the caller reports the original error; the name remains declared
            place = self.describe_table(parts)
            if self.is_declared_only(place):
                self._remove_row(parts, place)
                self._folders.abandon(place)

    def discard(self, place: TableDescription) -> None:
        """Remove files written for a name that no longer exists. Ignores errors of the namespace."""
        with suppress(LanceDuckError):
            self._folders.remove(place, is_table=not self.is_declared_only(place))

    def _objects(self) -> dict[str, NamedObject]:
        return {} if self._manifest_enabled is False else self._listing.objects()

    def _keeps_rows(self, parts: tuple[str, ...]) -> bool:
        """Return whether a table with this name has a row in `__manifest`."""
        if len(parts) > 1 or self._manifest_enabled:
            return True
        return self._manifest_enabled is None and self._folders.has_manifest()

    def _add_row(self, row: NamedObject) -> None:
        def edit(objects: dict[str, NamedObject]) -> _Edit:
            _check_parent_namespace(name_parts(row.object_id), objects)
            if row.object_id in objects:
                raise AlreadyExistsError("a table or namespace already has this name", where=row.object_id)
            return [], [row]

        self._listing.change(edit)

    def _remove_row(self, parts: tuple[str, ...], place: TableDescription) -> None:
        """Remove a table's row if it still refers to this location. A different table may have taken the name."""

        def edit(objects: dict[str, NamedObject]) -> _Edit:
            row = objects.get(object_id(parts))
            if row is None or row.object_type != TABLE or join_uri(self.root, self._location(row)) != place.location:
                raise NotFoundError("the table no longer exists", where=object_id(parts))
            return [object_id(parts)], []

        if len(parts) > 1 or object_id(parts) in self._objects():
            self._listing.change(edit)

    def _place_of(self, row: NamedObject) -> TableDescription:
        return self._folders.place(self._location(row), row.properties())

    def _location(self, row: NamedObject) -> str:
        return self._folders.inside(row.location or "")


def _names_directly_in(parts: tuple[str, ...], object_type: str, objects: _Objects) -> list[str]:
    """Return the sorted names in a namespace, without the namespace. Raises NotFoundError."""
    if parts:
        _namespace_row(parts, objects)
    names = (tuple(each.object_id.split(DELIMITER)) for each in objects.values() if each.object_type == object_type)
    return sorted(name[-1] for name in names if name[:-1] == parts and name[-1])


def _namespace_row(parts: tuple[str, ...], objects: _Objects) -> NamedObject:
    """Return the row of a nested namespace. Raises NotFoundError."""
    row = objects.get(object_id(parts))
    if row is None or row.object_type != NAMESPACE:
        raise NotFoundError("no such namespace", where=object_id(parts))
    return row


def _check_parent_namespace(parts: tuple[str, ...], objects: _Objects) -> None:
    """Raise NotFoundError if the namespace of a name does not exist."""
    if len(parts) > 1:
        _namespace_row(parts[:-1], objects)


def _names_below(parts: tuple[str, ...], objects: _Objects) -> list[str]:
    """Return the names in a namespace, at any depth."""
    return [each for each in objects if each.startswith(object_id(parts) + DELIMITER)]
