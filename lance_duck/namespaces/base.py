"""Base class of namespaces. Subclasses determine where tables and objects are listed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Unpack

from lance_duck.arguments import checked_calls, suggest_names
from lance_duck.dataset import LanceDataset, dataset
from lance_duck.errors import (
    AlreadyExistsError,
    IncompatibleError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
)
from lance_duck.namespaces.catalog_objects import CatalogObject, ObjectKey
from lance_duck.namespaces.draft import CatalogDraft
from lance_duck.namespaces.names import TABLE, Name, check_new, name_parts, object_id
from lance_duck.redact import shown
from lance_duck.snapshot import Location, Version
from lance_duck.verbs.writing.settings import WriteArguments
from lance_duck.write.inputs import reading
from lance_duck.write.vectors import vectors_by_name
from lance_duck.write_dataset import write_dataset

_MODES = ("create", "append", "overwrite")


@suggest_names
@dataclass(frozen=True)
class TableDescription:
    """The location and properties of a table.

    Attributes:
        location: URI of the table.
        storage_options: Settings of the table's store, including temporary credentials from a service.
        properties: Properties of the table, by name.
    """

    location: str
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    properties: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"TableDescription({shown(self.location)!r}, properties={dict(self.properties)})"


@suggest_names
@dataclass(frozen=True)
class Catalog:
    """The names and objects of a namespace and of its child namespaces.

    Attributes:
        namespaces: Properties of the namespace and of its children, by name.
        tables: Locations of their tables, by name.
        objects: Their views, macros and types, by kind and name.
        broken: Tables and objects that cannot be used, with the reason. Tables have the kind "table".
    """

    namespaces: Mapping[tuple[str, ...], Mapping[str, str]]
    tables: Mapping[tuple[str, ...], TableDescription]
    objects: Mapping[ObjectKey, CatalogObject] = field(default_factory=dict)
    broken: Mapping[ObjectKey, str] = field(default_factory=dict)


@checked_calls
class Namespace(ABC):
    """Tables and nested namespaces, by name.

    A name is a list of strings, or one string with "$" separators. The root is "".
    """

    @abstractmethod
    def list_namespaces(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the child namespaces, without the parent's name. Raises NotFoundError."""

    @abstractmethod
    def list_tables(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the tables in a namespace, without the namespace. Raises NotFoundError."""

    @abstractmethod
    def describe_namespace(self, name: Name) -> dict[str, str]:
        """Return the properties of a namespace. Raises NotFoundError."""

    @abstractmethod
    def create_namespace(
        self, name: Name, properties: Mapping[str, str] | None = None, *, exist_ok: bool = False
    ) -> None:
        """Create a namespace.

        Args:
            name: Name of the namespace.
            properties: Properties of the namespace, by name.
            exist_ok: Whether the namespace may exist already.

        Raises:
            AlreadyExistsError: The namespace exists.
            NotFoundError: The parent namespace does not exist.
        """

    @abstractmethod
    def drop_namespace(self, name: Name, *, cascade: bool = False) -> None:
        """Drop a namespace.

        Args:
            name: Name of the namespace.
            cascade: Whether to also drop the tables, objects and namespaces in it.

        Raises:
            NotFoundError: The namespace does not exist.
            ReferencedError: The namespace is not empty, and `cascade` is not set.
        """

    @abstractmethod
    def update_namespace(self, name: Name, properties: Mapping[str, str | None]) -> None:
        """Set properties of a namespace, such as its comment.

        Args:
            name: Name of the namespace, except the root.
            properties: New values by name. None removes a property. Other properties are kept.

        Raises:
            NotFoundError: The namespace does not exist.
            UnsupportedError: The namespace is behind a REST service.
        """

    def catalog(self, name: Name = ()) -> Catalog:
        """Return the tables, views, macros and types of a namespace and of its child namespaces.

        A folder is listed once. Views, macros and types of REST services are not listed.

        Raises:
            NotFoundError: The namespace does not exist.
        """
        parts = name_parts(name)
        names = [parts, *((*parts, child) for child in self.list_namespaces(parts))]
        namespaces = {each: self.describe_namespace(each) if each else {} for each in names}
        tables = {(*each, table): place for each in names for table, place in self.describe_tables(each).items()}
        return Catalog(namespaces, tables)

    def objects(self, name: Name = ()) -> dict[ObjectKey, CatalogObject]:
        """Return the views, macros and types of a namespace. Those that cannot be read are skipped: see `catalog`.

        Raises:
            NotFoundError: The namespace does not exist.
        """
        parts = name_parts(name)
        return {key: each for key, each in self.catalog(parts).objects.items() if key.name[:-1] == parts}

    @abstractmethod
    def change_catalog(self, edit: Callable[[CatalogDraft], object]) -> None:
        """Change namespaces, views, macros and types in one version.

        Args:
            edit: Called with a draft of the catalog, and again after each lost race. It changes the draft, or raises
                an error to change nothing.

        Raises:
            UnsupportedError: The namespace is behind a REST service.
            CommitConflictError: All attempts conflicted with other changes.
        """

    def stamp(self) -> object:
        """Return a value that changes with the names and objects in `__manifest`, or None if only a listing can tell.

        Folders of the root that are not in `__manifest` do not change it.
        """
        return None

    @abstractmethod
    def describe_table(self, name: Name) -> TableDescription:
        """Return the location of a table. Raises NotFoundError."""

    @abstractmethod
    def declare_table(self, name: Name) -> TableDescription:
        """Reserve a table name, and return the location for the table's first version.

        Raises:
            AlreadyExistsError: The name is taken.
            NotFoundError: The namespace does not exist.
        """

    @abstractmethod
    def register_table(self, name: Name, location: str) -> None:
        """Register an existing table under a name.

        Args:
            name: The name.
            location: The folder of the table, relative to the root of the namespace.

        Raises:
            AlreadyExistsError: The name is taken.
            NotFoundError: The folder, or the namespace of the name, does not exist.
        """

    @abstractmethod
    def deregister_table(self, name: Name) -> None:
        """Remove the name of a table, but keep the table's files. Raises NotFoundError."""

    @abstractmethod
    def drop_table(self, name: Name) -> None:
        """Drop a table with all its versions. Raises NotFoundError."""

    @abstractmethod
    def rename_table(self, name: Name, new_name: Name) -> None:
        """Rename a table.

        Raises:
            NotFoundError: The table, or the namespace of the new name, does not exist.
            AlreadyExistsError: The new name is taken.
            UnsupportedError: The namespace cannot rename tables.
        """

    def namespace_exists(self, name: Name) -> bool:
        """Return whether a namespace exists."""
        try:
            self.describe_namespace(name)
        except NotFoundError:
            return False
        return True

    def table_exists(self, name: Name) -> bool:
        """Return whether a table exists or is declared."""
        try:
            self.describe_table(name)
        except NotFoundError:
            return False
        return True

    def open_table(
        self, name: Name, version: Version | None = None, asof: datetime | str | None = None
    ) -> LanceDataset:
        """Open a table. `version` and `asof` work as in `lance_duck.dataset`. Raises NotFoundError."""
        place = self.describe_table(name)
        return dataset(place.location, version, asof=asof, storage_options=place.storage_options or None)

    def create_table(
        self, name: Name, data: Any, mode: str = "create", **settings: Unpack[WriteArguments]
    ) -> LanceDataset:
        """Write data to a table with this name.

        In a new table, a column of float lists becomes a float32 vector column if its name contains "vector" or
        "embedding", as in LanceDB. `vector_columns` overrides this rule: `vector_columns=[]` does not convert any
        lists.

        Args:
            name: Name of the table.
            data: Data in any form that `lance_duck.write_dataset` accepts.
            mode: "create", "append" or "overwrite", as for `write_dataset`.
            settings: Arguments of `write_dataset`; storage_options default to the namespace's options.

        Raises:
            AlreadyExistsError: The name is taken, and the mode is "create".
            NotFoundError: The namespace does not exist.
            IncompatibleError: The table was dropped during the write. Its files are removed.
        """
        if mode not in _MODES:
            raise InvalidInputError("mode", expected=", ".join(_MODES), found=mode)
        parts = name_parts(name)
        check_new(parts, TABLE)
        place, is_new = self._claim(parts, must_be_new=mode == "create")
        settings.setdefault("storage_options", dict(place.storage_options) or None)
        try:
            with reading(data) as rows:
                if settings.get("vector_columns") is None and (
                    mode != "append" or is_new or self.is_declared_only(place)
                ):
                    rows, settings["vector_columns"] = vectors_by_name(rows)
                table = write_dataset(rows, place.location, mode=mode, **settings)
        except BaseException as error:
            if isinstance(error, LanceDuckError) and self._is_gone(parts, place):
                raise self._dropped(parts, place) from error
            if is_new:
                self.abandon_table(parts)
            raise
        if self._is_gone(parts, place):
            raise self._dropped(parts, place)
        return table

    def _is_gone(self, parts: tuple[str, ...], place: TableDescription) -> bool:
        """Return whether a table name was removed, or now refers to a different table."""
        try:
            return _uri(self.describe_table(parts)) != _uri(place)
        except NotFoundError:
            return True
        except LanceDuckError:
            return False  # the namespace did not answer, so the table is kept

    def _dropped(self, parts: tuple[str, ...], place: TableDescription) -> IncompatibleError:
        self.discard(place)
        return IncompatibleError("the table was dropped or renamed during the write", where=object_id(parts))

    def _claim(self, parts: tuple[str, ...], *, must_be_new: bool) -> tuple[TableDescription, bool]:
        """Return the location of an existing or new table, and whether this call claimed its name."""
        try:
            return self.declare_table(parts), True
        except AlreadyExistsError as error:
            try:
                place = self.describe_table(parts)
            except NotFoundError:
                raise error from None  # a view or a namespace has the name
            if must_be_new and not self.is_declared_only(place):
                remedy = 'mode="append" adds rows, mode="overwrite" replaces them'
                raise AlreadyExistsError("the table already exists", where=object_id(parts), remedy=remedy) from error
            return place, False

    def is_declared_only(self, place: TableDescription) -> bool:
        """Return whether a table has a name, but no version yet."""
        try:
            dataset(place.location, storage_options=place.storage_options or None)
        except NotFoundError:
            return True
        return False

    def describe_tables(self, name: Name = ()) -> dict[str, TableDescription]:
        """Return the locations of the tables in a namespace, by their names without the namespace."""
        parts = name_parts(name)
        return {table: self.describe_table((*parts, table)) for table in self.list_tables(parts)}

    @abstractmethod
    def discard(self, place: TableDescription) -> None:
        """Remove files written for a name that no longer exists. Ignores errors of the namespace."""

    @abstractmethod
    def abandon_table(self, name: Name) -> None:
        """Remove the name of a declared table that was not written. Ignores errors of the namespace."""


def _uri(place: TableDescription) -> str:
    """Normalize the URI of a table, because services use both `file:///t.lance` and `/t.lance`."""
    return Location.of(place.location, place.storage_options).uri.rstrip("/")
