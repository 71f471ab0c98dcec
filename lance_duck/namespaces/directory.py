"""A folder of tables as a namespace, in both forms of Lance's directory catalog.

    __manifest/       names of namespaces and tables: see `listing`
    {name}.lance/     a table of the root. `folders` describes the folders of all tables

Without nested namespaces, `__manifest` may be missing, and the folders alone define the tables. If it exists, tables of
the root also have rows. A row is added before the table's data is written, and removed before the data is removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    UnsupportedError,
    warn_of_table,
)
from lance_duck.groups.log import CommitLog
from lance_duck.maintenance.validation.problems import Problem
from lance_duck.namespaces import catalog_objects as objects
from lance_duck.namespaces.base import Catalog, Namespace, TableDescription
from lance_duck.namespaces.catalog import catalog_of
from lance_duck.namespaces.draft import TAKEN, CatalogDraft, names_directly_in, namespace_row
from lance_duck.namespaces.folders import TableFolders
from lance_duck.namespaces.listing import FOLDER, ListedNames, Listing, ListingChange, NamedObject
from lance_duck.namespaces.names import NAMESPACE, TABLE, Name, check_new, name_parts, object_id
from lance_duck.store import join_uri, with_cache
from lance_duck.verbs.pending_changes import PreparedChange
from lance_duck.verbs.versions.rename import rename_table
from lance_duck.wire.paths import TABLE_SUFFIX

if TYPE_CHECKING:
    from lance_duck.groups import check as group_check
    from lance_duck.namespaces import check
else:
    group_check = lazy.modules(globals(), "lance_duck.groups", "check")
    check = lazy.modules(globals(), "lance_duck.namespaces", "check")


@checked_calls
class DirectoryNamespace(Namespace):
    """The tables of a folder, with the same names as in pylance, LanceDB and DuckDB's extension.

    Args:
        root: Path or URI of the folder. The first table creates it.
        manifest_enabled: Whether to store names in `__manifest`. False also disables nested namespaces. With None,
            names are stored if `__manifest` exists or a nested namespace is created.
        dir_listing_enabled: Whether folders `{name}.lance` without a row in `__manifest` are tables of the root.
        storage_options: Settings of the store.
        cache: A local folder that caches files of tables in object stores. Same as the storage option `cache`.

    Attributes:
        log: The commit log of the folder.
    """

    def __init__(
        self,
        root: str,
        *,
        manifest_enabled: bool | None = None,
        dir_listing_enabled: bool = True,
        storage_options: Mapping[str, str] | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self.root = root.rstrip("/") or root
        options = dict(with_cache(storage_options, cache) or {})
        self._manifest_enabled = manifest_enabled
        self._folders = TableFolders(self.root, options, is_listing=dir_listing_enabled)
        self._listing = Listing(self.root, options or None)
        self.log = CommitLog(self.root, options or None)

    def __repr__(self) -> str:
        return f"DirectoryNamespace({self.root!r})"

    def list_namespaces(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the child namespaces, without the parent's name. Raises NotFoundError."""
        return names_directly_in(name_parts(name), NAMESPACE, self._objects())

    def list_tables(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the tables in a namespace, without the namespace. Raises NotFoundError."""
        parts = name_parts(name)
        rows = names_directly_in(parts, TABLE, self._objects())
        return rows if parts else sorted({*rows, *self._folders.listed()})

    def describe_namespace(self, name: Name) -> dict[str, str]:
        """Return the properties of a namespace. Raises NotFoundError."""
        parts = name_parts(name)
        return namespace_row(parts, self._objects()).properties() if parts else {}

    def create_namespace(
        self, name: Name, properties: Mapping[str, str] | None = None, *, exist_ok: bool = False
    ) -> None:
        """Create a namespace: see `Namespace.create_namespace`."""
        parts = name_parts(name)

        def edit(draft: CatalogDraft) -> None:
            if not (exist_ok and draft.has_namespace(parts)):
                draft.create_namespace(parts, properties)

        check_new(parts, NAMESPACE)
        self.change_catalog(edit)

    def drop_namespace(self, name: Name, *, cascade: bool = False) -> None:
        """Drop a namespace: see `Namespace.drop_namespace`.

        Everything in it disappears in one version of `__manifest`. The files of its tables are removed afterwards.
        """
        self._change(lambda draft: draft.drop_namespace(name, cascade=cascade))

    def update_namespace(self, name: Name, properties: Mapping[str, str | None]) -> None:
        """Set properties of a namespace: see `Namespace.update_namespace`."""
        self._change(lambda draft: draft.update_namespace(name, properties))

    def catalog(self, name: Name = ()) -> Catalog:
        """Return the tables and objects of a namespace: see `Namespace.catalog`."""
        folders = self._folders.names()
        self.log.note_folders(folders)
        has_manifest = self._manifest_enabled is not False and FOLDER in folders
        names = self._listing.names() if has_manifest else ListedNames()
        return catalog_of(name_parts(name), names, self._folders, self._folders.listed(folders))

    def find_problems(self) -> list[Problem]:
        """Return the problems of `__manifest` and of the commit log. The tables are not read.

        Raises:
            StoreError: The folder cannot be read.
        """
        own = [] if self._manifest_enabled is False else check.folder_problems(self._listing, self._folders)
        return [*own, *group_check.log_problems(self.log)]

    def repair(self, *, dry_run: bool = False) -> list[Problem]:
        """Finish a commit of several tables, and remove rows of `__manifest` that newer versions of pylance refuse.

        pylance 4 to 6 could store versions of tables as rows of the type "table_version". The versions themselves are
        files in the folders of the tables, and stay.

        Args:
            dry_run: Only return the problems, without a commit.

        Returns:
            The problems that the repair removes.
        """
        problems: list[Problem] = []
        unfinished = group_check.repair_log(self.log, dry_run=dry_run)

        def edit(draft: CatalogDraft) -> None:
            problems[:] = check.version_rows(draft.remove_rows(check.TABLE_VERSION))

        if dry_run:
            edit(CatalogDraft(self._listing.names(), tuple, self._listing.uri))
        else:
            self.change_catalog(edit)
        return [*unfinished, *problems]

    def change_catalog(self, edit: Callable[[CatalogDraft], object]) -> None:
        """Change namespaces, views, macros and types in one version: see `Namespace.change_catalog`.

        The first change creates `__manifest`. Files of dropped tables are removed after the commit.
        """
        self._check_manifest_enabled()
        self._change(edit)

    def check_catalog(self, edit: Callable[[CatalogDraft], object], root_tables: Callable[[], Iterable[str]]) -> None:
        """Run a change of `change_catalog` on the newest names without a commit. Raises its errors.

        Args:
            edit: The change.
            root_tables: Returns the tables of the root after the change.
        """
        self._check_manifest_enabled()
        draft = CatalogDraft(self._listing.names(), root_tables, self._listing.uri)
        edit(draft)
        draft.change()

    def prepare_catalog(
        self, edit: Callable[[CatalogDraft], object], root_tables: Callable[[], Iterable[str]]
    ) -> tuple[PreparedChange | None, CatalogDraft]:
        """Prepare a change of names that is committed together with changes of tables.

        Args:
            edit: See `change_catalog`.
            root_tables: See `check_catalog`.

        Returns:
            The change of `__manifest`, or None if nothing changes. And the names after it.
        """
        self._check_manifest_enabled()
        drafts: list[CatalogDraft] = []

        def change(names: ListedNames) -> ListingChange:
            drafts.append(CatalogDraft(names, root_tables, self._listing.uri))
            edit(drafts[-1])
            return drafts[-1].change()

        return self._listing.prepare(change), drafts[-1]

    def remove_dropped(self, draft: CatalogDraft) -> None:
        """Remove the files of tables whose names a committed change has dropped."""
        for row in draft.dropped:
            with suppress(LanceDuckError, OSError):  # an invalid location, or a folder that cannot be removed now
                folder = self._location(row)
                if not self._folders.is_used(folder, draft.folders()):
                    self.discard(self._folders.place(folder))

    def _check_manifest_enabled(self) -> None:
        if self._manifest_enabled is False:
            raise UnsupportedError(
                "nested namespaces, views, macros and types need manifest_enabled",
                where=self.root,
                remedy="pass manifest_enabled=True",
            )

    def forget_removed_objects(self) -> int:
        """Remove the settings that say which objects were removed, and return their number.

        Raises:
            CommitConflictError: All attempts conflicted with other changes.
        """
        return self._listing.forget(objects.removed_settings)

    def stamp(self) -> object:
        """Return a value that changes with the names and objects in `__manifest`: see `Namespace.stamp`."""
        return self._listing.stamp()

    def describe_table(self, name: Name) -> TableDescription:
        """Return the location of a table. Raises NotFoundError."""
        parts = name_parts(name)
        row = self._objects().get(object_id(parts))
        if row is not None and row.object_type == TABLE:
            return self._place_of(row)
        if len(parts) == 1 and self._folders.is_listed(parts[0]):
            return self._folders.place(parts[0] + TABLE_SUFFIX)
        raise NotFoundError("no such table", where=object_id(parts) or "the root", expected=f"a table of {self.root}")

    def place_of_new(self, name: Name) -> TableDescription:
        """Return a location for a new table with this name, without claiming the name."""
        return self._folders.place(self._folders.of_new(name_parts(name)))

    def declare_table(self, name: Name) -> TableDescription:
        """Reserve a table name, and return the location for its first version. See `Namespace.declare_table`."""
        parts = name_parts(name)
        check_new(parts, TABLE)
        folder = self._folders.of_new(parts)
        if len(parts) == 1 and self._folders.is_listed(parts[0]):
            raise AlreadyExistsError(TAKEN, where=object_id(parts))
        has_row = self._keeps_rows(parts)
        if has_row:
            self._add_row(NamedObject(object_id(parts), TABLE, folder))
        if not self._folders.reserve(folder) and not has_row:
            raise AlreadyExistsError(TAKEN, where=object_id(parts))
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
        if folder == "".join(parts) + TABLE_SUFFIX:  # another name does not list the folder again
            self._folders.register(folder)

    def names_sharing(self, location: str) -> set[str]:
        """Return the ids of the tables that are at a location, inside it or around it.

        Args:
            location: A folder, relative to the root.

        Raises:
            InvalidInputError: The location is outside the root.
        """
        folder = self._folders.inside(location)
        found = set()
        for row in self._objects().values():
            with suppress(LanceDuckError):  # a row with an invalid location
                if row.object_type == TABLE and _overlap(self._location(row), folder):
                    found.add(row.object_id)
        top = folder.partition("/")[0].removesuffix(TABLE_SUFFIX)
        if _overlap(top + TABLE_SUFFIX, folder) and self._folders.is_listed(top):
            found.add(top)
        return found

    def deregister_table(self, name: Name) -> None:
        """Remove the name of a table, but keep the table's files. Raises NotFoundError."""
        parts = name_parts(name)
        place = self.describe_table(parts)
        self._remove_row(parts, place)
        if len(parts) == 1 and place.location == join_uri(self.root, parts[0] + TABLE_SUFFIX):
            self._folders.deregister(parts[0] + TABLE_SUFFIX)

    def drop_table(self, name: Name) -> None:
        """Drop a table with all its versions. Raises NotFoundError.

        If other names share the files, only the name is removed: see `names_sharing`.
        """
        parts = name_parts(name)
        place = self.describe_table(parts)
        row = self._objects().get(object_id(parts))
        location = parts[0] + TABLE_SUFFIX if row is None else self._location(row)
        if self.names_sharing(location) - {object_id(parts)}:
            self.deregister_table(parts)
            return
        self._remove_row(parts, place)
        self._folders.remove(place, is_table=not self.is_declared_only(place))

    def rename_table(self, name: Name, new_name: Name) -> None:
        """Rename a table by changing its row in `__manifest`. The folder of a table in the root is renamed, too.

        Raises:
            NotFoundError: The table, or the namespace of the new name, does not exist.
            AlreadyExistsError: The new name is taken.
            UnsupportedError: The table is in the root, and its folder cannot be renamed, or it would enter or leave the
                root.
        """
        old, new = name_parts(name), name_parts(new_name)
        check_new(new, TABLE)
        if len(old) == 1 and len(new) == 1:
            self._rename_in_root(old[0], new[0])
        elif len(old) == 1 or len(new) == 1:
            raise UnsupportedError(
                "a table cannot move into or out of the root namespace",
                where=object_id(old),
                remedy="copy it with deep_clone, then drop it",
            )
        else:
            self._change(lambda draft: draft.rename_table(old, new))

    def _rename_in_root(self, name: str, new_name: str) -> None:
        location = self.describe_table((name,)).location
        if new_name in self._objects() or self._folders.is_listed(new_name):
            raise AlreadyExistsError(TAKEN, where=new_name)
        if location != join_uri(self.root, name + TABLE_SUFFIX):
            self._change(lambda draft: draft.rename_table((name,), (new_name,)))
            return
        folder = new_name + TABLE_SUFFIX
        rename_table(location, join_uri(self.root, folder), self._folders.options)
        if name in self._objects():
            self._change(lambda draft: draft.follow_folder(name, new_name, folder))

    def describe_tables(self, name: Name = ()) -> dict[str, TableDescription]:
        """Return the locations of the tables directly in a namespace. Invalid rows are skipped with a warning."""
        parts, rows = name_parts(name), self._objects()
        listed = () if parts else self._folders.listed()
        places = {table: self._folders.place(table + TABLE_SUFFIX) for table in listed}
        for table in names_directly_in(parts, TABLE, rows):
            row = rows[object_id((*parts, table))]
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

    def _objects(self) -> Mapping[str, NamedObject]:
        return {} if self._manifest_enabled is False else self._listing.objects()

    def _keeps_rows(self, parts: tuple[str, ...]) -> bool:
        """Return whether a table with this name has a row in `__manifest`."""
        if len(parts) > 1 or self._manifest_enabled:
            return True
        return self._manifest_enabled is None and self._folders.has_manifest()

    def _add_row(self, row: NamedObject) -> None:
        self._change(lambda draft: draft.add_table(row))

    def _remove_row(self, parts: tuple[str, ...], place: TableDescription) -> None:
        """Remove a table's row if it still refers to this location. A different table may have taken the name."""

        def edit(draft: CatalogDraft) -> None:
            row = draft.remove_table(parts)
            if join_uri(self.root, self._location(row)) != place.location:
                raise NotFoundError("the table no longer exists", where=object_id(parts))

        if len(parts) > 1 or object_id(parts) in self._objects():
            self._change(edit)

    def _change(self, edit: Callable[[CatalogDraft], object]) -> None:
        """Commit the changes of a draft. Then remove the files of dropped tables."""
        drafts: list[CatalogDraft] = []

        def change(names: ListedNames) -> ListingChange:
            drafts.append(CatalogDraft(names, self._folders.listed, self._listing.uri))
            edit(drafts[-1])
            return drafts[-1].change()

        self._listing.change(change)
        self.remove_dropped(drafts[-1])

    def _place_of(self, row: NamedObject) -> TableDescription:
        return self._folders.place(self._location(row), row.properties())

    def _location(self, row: NamedObject) -> str:
        return self._folders.inside(row.location or "")


def _overlap(first: str, second: str) -> bool:
    """Return whether two folders are the same, or one is inside the other."""
    return f"{first}/".startswith(f"{second}/") or f"{second}/".startswith(f"{first}/")
