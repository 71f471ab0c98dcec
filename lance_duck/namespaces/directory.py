"""A folder of tables as a namespace, in both forms of Lance's directory catalog.

    {name}.lance/                     a table of the root
    {name}.lance/.lance-reserved      its name is claimed, perhaps before there is a version
    {name}.lance/.lance-deregistered  it is not listed
    __manifest/                       names of namespaces and tables: see `listing`
    {8 hex digits}_{object id}/       a table of a namespace below the root

Without namespaces in the root there need be no `__manifest`: then folders alone say which tables there are. Where it
exists, tables of the root have rows, too. A new table has its row before its data, and loses it before them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

from lance_duck.arguments import checked_calls
from lance_duck.dataset import LanceDataset
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    UnsupportedError,
)
from lance_duck.namespaces.base import Namespace, TableDescription
from lance_duck.namespaces.listing import FOLDER, Listing, NamedObject
from lance_duck.namespaces.names import DELIMITER, NAMESPACE, TABLE, Name, check_new, name_parts, object_id
from lance_duck.store import Store, join_uri, open_store
from lance_duck.store.base import normal_path
from lance_duck.wire.paths import TABLE_SUFFIX

RESERVED: Final = ".lance-reserved"
DEREGISTERED: Final = ".lance-deregistered"
_ELSEWHERE: Final = frozenset("/\\\0")
"""Characters of paths that lead out of the root; no folder directly in it has them in its name."""
_Edit = tuple[list[str], list[NamedObject]]


@checked_calls
class DirectoryNamespace(Namespace):
    """The tables of a folder, which pylance, LanceDB and DuckDB's extension find by the same names.

    Args:
        root: Path or URI of the folder, which is made when the first table is.
        manifest_enabled: Whether names are kept in `__manifest`: True, for all tables; False, never, and there are no
            namespaces below the root; None, where there is one, or a namespace is made.
        dir_listing_enabled: Whether folders `{name}.lance` without a row are tables of the root.
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
        self._options = dict(storage_options or {})
        self._manifest_enabled = manifest_enabled
        self._lists_folders = dir_listing_enabled
        self._listing = Listing(self.root, self._options or None)

    def __repr__(self) -> str:
        return f"DirectoryNamespace({self.root!r})"

    def list_namespaces(self, name: Name = ()) -> list[str]:
        """Return the last parts of the names of the namespaces directly in one, in order. Raises NotFoundError."""
        return self._below(name_parts(name), NAMESPACE, self._objects())

    def list_tables(self, name: Name = ()) -> list[str]:
        """Return the last parts of the names of the tables directly in a namespace, in order. Raises NotFoundError."""
        parts = name_parts(name)
        rows = self._below(parts, TABLE, self._objects())
        return rows if parts else sorted({*rows, *self._folders()})

    def describe_namespace(self, name: Name) -> dict[str, str]:
        """Return the properties of a namespace. Raises NotFoundError."""
        parts = name_parts(name)
        return dict(self._namespace(parts, self._objects()).properties or {}) if parts else {}

    def create_namespace(
        self, name: Name, properties: Mapping[str, str] | None = None, *, exist_ok: bool = False
    ) -> None:
        """Make a namespace: see `Namespace.create_namespace`."""
        parts = name_parts(name)
        check_new(parts, NAMESPACE)
        if self._manifest_enabled is False:
            raise UnsupportedError(
                "namespaces below the root without __manifest", where=self.root, remedy="manifest_enabled=True"
            )

        def edit(objects: dict[str, NamedObject]) -> _Edit:
            self._check_parent(parts, objects)
            present = objects.get(object_id(parts))
            if present is None:
                return [], [NamedObject(object_id(parts), NAMESPACE, None, properties)]
            if present.object_type == NAMESPACE and exist_ok:
                return [], []
            raise AlreadyExistsError(f"a {present.object_type} of this name exists", where=object_id(parts))

        self._listing.change(edit)

    def drop_namespace(self, name: Name) -> None:
        """Remove an empty namespace. Raises NotFoundError, or ReferencedError where it is not empty."""
        parts = name_parts(name)
        check_new(parts, NAMESPACE)

        def edit(objects: dict[str, NamedObject]) -> _Edit:
            self._namespace(parts, objects)
            inside = [each for each in objects if each.startswith(object_id(parts) + DELIMITER)]
            if inside:
                raise ReferencedError("the namespace is not empty", where=object_id(parts), found=", ".join(inside[:5]))
            return [object_id(parts)], []

        self._listing.change(edit)

    def describe_table(self, name: Name) -> TableDescription:
        """Return where a table is. Raises NotFoundError."""
        parts = name_parts(name)
        row = self._objects().get(object_id(parts))
        if row is not None and row.object_type == TABLE:
            return self._place(self._location(row), row.properties)
        if len(parts) == 1 and self._is_listed(parts[0]):
            return self._place(parts[0] + TABLE_SUFFIX)
        raise NotFoundError("no such table", where=object_id(parts) or "the root", expected=f"a table of {self.root}")

    def declare_table(self, name: Name) -> TableDescription:
        """Claim the name of a table, and return where its first version goes: see `Namespace.declare_table`."""
        parts = name_parts(name)
        check_new(parts, TABLE)
        is_root = len(parts) == 1
        folder = parts[0] + TABLE_SUFFIX if is_root else f"{secrets.token_hex(4)}_{object_id(parts)}"
        if is_root and self._is_listed(parts[0]):
            raise AlreadyExistsError("the name is taken", where=object_id(parts))
        if self._keeps_rows(parts):
            self._add_row(NamedObject(object_id(parts), TABLE, folder))
        store = self._store(folder)
        store.delete([DEREGISTERED])
        try:
            store.put_if_absent(RESERVED, b"reserved")
        except AlreadyExistsError:  # of one that was declared and not written, or was taken from the list
            if is_root and not self._keeps_rows(parts):
                raise
        return self._place(folder)

    def register_table(self, name: Name, location: str) -> None:
        """Give a table that is there a name: see `Namespace.register_table`."""
        parts = name_parts(name)
        check_new(parts, TABLE)
        if location.startswith("/") or "://" in location:
            raise InvalidInputError("location of a table", expected="a folder, relative to the root", found=location)
        folder = self._folder_of_table(location)
        store = self._store(folder)
        if next(iter(store.walk()), None) is None:
            raise NotFoundError("no such folder", where=join_uri(self.root, folder))
        if self._manifest_enabled is not False:
            self._add_row(NamedObject(object_id(parts), TABLE, folder))
        elif folder != "".join(parts) + TABLE_SUFFIX:
            raise UnsupportedError(
                "another name than that of the folder, without __manifest",
                where=folder,
                remedy="manifest_enabled=True",
            )
        store.delete([DEREGISTERED])

    def deregister_table(self, name: Name) -> None:
        """Take the name of a table back, and leave its files. Raises NotFoundError."""
        parts = name_parts(name)
        place = self.describe_table(parts)
        self._remove_row(parts, place)
        if len(parts) == 1 and place.location == join_uri(self.root, parts[0] + TABLE_SUFFIX):
            self._store(parts[0] + TABLE_SUFFIX).put(DEREGISTERED, b"")

    def drop_table(self, name: Name) -> None:
        """Remove a table with all its versions. Raises NotFoundError."""
        parts = name_parts(name)
        place = self.describe_table(parts)
        self._remove_row(parts, place)
        self._remove_files(place)

    def rename_table(self, name: Name, new_name: Name) -> None:
        """Give a table another name, by its row alone; a table of the root keeps its folder.

        Raises:
            NotFoundError: There is no such table, or no namespace around the new name.
            AlreadyExistsError: The new name is taken.
            UnsupportedError: A table of the root, whose name is that of its folder.
        """
        old, new = name_parts(name), name_parts(new_name)
        check_new(new, TABLE)
        if len(old) == 1 or len(new) == 1:
            raise UnsupportedError(
                "rename of a table of the root, whose name is that of its folder",
                where=object_id(old),
                remedy="deep_clone it, and drop it",
            )

        def edit(objects: dict[str, NamedObject]) -> _Edit:
            row = objects.get(object_id(old))
            if row is None or row.object_type != TABLE:
                raise NotFoundError("no such table", where=object_id(old))
            self._check_parent(new, objects)
            if object_id(new) in objects:
                raise AlreadyExistsError("the name is taken", where=object_id(new))
            return [object_id(old)], [NamedObject(object_id(new), TABLE, row.location, row.properties)]

        self._listing.change(edit)

    def describe_tables(self, name: Name = ()) -> dict[str, TableDescription]:
        """Return where the tables directly in a namespace are, by the last parts of their names."""
        parts, objects = name_parts(name), self._objects()
        folders = {} if parts else {table: self._place(table + TABLE_SUFFIX) for table in self._folders()}
        rows = {table: objects[object_id((*parts, table))] for table in self._below(parts, TABLE, objects)}
        places = folders | {table: self._place(self._location(row), row.properties) for table, row in rows.items()}
        return dict(sorted(places.items()))

    def abandon_table(self, name: Name) -> None:
        """Take back the name of a table that was declared, and is not written. Raises no error of the namespace."""
        parts = name_parts(name)
        try:
            place = self.describe_table(parts)
            if self.is_declared_only(place):
                self._remove_row(parts, place)
                self._remove_files(place)
        except LanceDuckError:
            pass  # the first error is the one to tell; the name stays declared

    def _objects(self) -> dict[str, NamedObject]:
        return {} if self._manifest_enabled is False else self._listing.objects()

    def _below(self, parts: tuple[str, ...], object_type: str, objects: dict[str, NamedObject]) -> list[str]:
        if parts:
            self._namespace(parts, objects)
        names = (tuple(each.object_id.split(DELIMITER)) for each in objects.values() if each.object_type == object_type)
        return sorted(name[-1] for name in names if name[:-1] == parts)

    def _namespace(self, parts: tuple[str, ...], objects: dict[str, NamedObject]) -> NamedObject:
        row = objects.get(object_id(parts))
        if row is None or row.object_type != NAMESPACE:
            raise NotFoundError("no such namespace", where=object_id(parts), expected=f"a namespace of {self.root}")
        return row

    def _check_parent(self, parts: tuple[str, ...], objects: dict[str, NamedObject]) -> None:
        if len(parts) > 1:
            self._namespace(parts[:-1], objects)

    def _keeps_rows(self, parts: tuple[str, ...]) -> bool:
        """Return whether a table of this name has a row."""
        if len(parts) > 1 or self._manifest_enabled:
            return True
        return self._manifest_enabled is None and FOLDER in (self._store().folders() or ())

    def _add_row(self, row: NamedObject) -> None:
        def edit(objects: dict[str, NamedObject]) -> _Edit:
            self._check_parent(name_parts(row.object_id), objects)
            if row.object_id in objects:
                raise AlreadyExistsError("the name is taken", where=row.object_id)
            return [], [row]

        self._listing.change(edit)

    def _remove_row(self, parts: tuple[str, ...], place: TableDescription) -> None:
        """Remove the row of a table that is at this place; another of its name may have come meanwhile."""

        def edit(objects: dict[str, NamedObject]) -> _Edit:
            row = objects.get(object_id(parts))
            if row is None or row.object_type != TABLE or join_uri(self.root, self._location(row)) != place.location:
                raise NotFoundError("no such table any more", where=object_id(parts))
            return [object_id(parts)], []

        if len(parts) > 1 or object_id(parts) in self._objects():
            self._listing.change(edit)

    def _folders(self) -> list[str]:
        """Return the names of the folders of the root that are tables."""
        if not self._lists_folders:
            return []
        folders = self._store().folders() or ()
        names = [name.removesuffix(TABLE_SUFFIX) for name in folders if name.endswith(TABLE_SUFFIX)]
        return [name for name in names if name and not self._store(name + TABLE_SUFFIX).exists(DEREGISTERED)]

    def _is_listed(self, name: str) -> bool:
        """Return whether the folder of a table of the root has files, and is not taken from the list."""
        if not self._lists_folders or _ELSEWHERE & set(name):
            return False
        store = self._store(name + TABLE_SUFFIX)
        return next(iter(store.walk()), None) is not None and not store.exists(DEREGISTERED)

    def _location(self, row: NamedObject) -> str:
        return self._folder_of_table(row.location or "")

    def _folder_of_table(self, location: str) -> str:
        """Return a location without dot segments. Raises InvalidInputError for one outside, and for that of names."""
        folder = normal_path(location, self.root)
        if folder.partition("/")[0] == FOLDER:
            raise InvalidInputError("location of a table", expected=f"another folder than {FOLDER}", found=location)
        return folder

    def _place(self, folder: str, properties: Mapping[str, str] | None = None) -> TableDescription:
        return TableDescription(join_uri(self.root, folder), self._options, properties or {})

    def _remove_files(self, place: TableDescription) -> None:
        if self.is_declared_only(place):
            store = open_store(place.location, self._options or None)
            store.delete([entry.path for entry in store.walk()])
        else:
            LanceDataset.drop(place.location, storage_options=self._options or None)

    def _store(self, folder: str = "") -> Store:
        return open_store(join_uri(self.root, folder) if folder else self.root, self._options or None)
