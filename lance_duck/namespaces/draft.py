"""A change of the names and objects of a folder, which becomes one version of `__manifest`."""

from __future__ import annotations

import json
import posixpath
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache

from lance_duck.arguments import checked_calls
from lance_duck.errors import AlreadyExistsError, InvalidInputError, NotFoundError, ReferencedError
from lance_duck.namespaces import catalog_objects as objects
from lance_duck.namespaces.catalog_objects import CatalogObject, ObjectKey, ViewDefinition
from lance_duck.namespaces.listing import ListedNames, ListingChange, NamedObject
from lance_duck.namespaces.names import DELIMITER, NAMESPACE, TABLE, Name, check_new, name_parts, object_id
from lance_duck.scan.identifiers import folded

TAKEN = "a table or namespace already has this name"


@checked_calls
class CatalogDraft:
    """The names and objects of a folder, with changes that are not committed yet. Each method checks its change.

    Args:
        names: The committed names.
        root_tables: Called to list the tables of the root that do not have rows.
        where: The table `__manifest`, for messages.

    Attributes:
        dropped: Rows of tables whose files are removed after the commit.
    """

    def __init__(self, names: ListedNames, root_tables: Callable[[], Iterable[str]], where: str) -> None:
        self._before = names
        self._rows = dict(names.rows)
        self._settings: dict[str, str] = {}
        self._stored = dict(objects.stored_objects(names.settings))
        self._keys: defaultdict[ObjectKey, set[ObjectKey]] = defaultdict(set)
        for key in self._stored:
            self._keys[key.folded].add(key)
        self._root_tables = cache(lambda: [*root_tables()])
        self._where = where
        self.dropped: list[NamedObject] = []

    def change(self) -> ListingChange:
        """Return the difference to the committed names.

        Raises:
            AlreadyExistsError: A new view has the name of a table of the root.
        """
        self._check_root_views()
        before = self._before.rows
        removed = [each for each, row in before.items() if self._rows.get(each) != row]
        added = [row for each, row in self._rows.items() if before.get(each) != row]
        old = self._before.settings
        return ListingChange(removed, added, {k: v for k, v in self._settings.items() if old.get(k, "") != v})

    def namespaces(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the child namespaces of a namespace. Raises NotFoundError."""
        return names_directly_in(name_parts(name), NAMESPACE, self._rows)

    def tables(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the tables of a namespace that have rows. Raises NotFoundError."""
        return names_directly_in(name_parts(name), TABLE, self._rows)

    def objects(self) -> dict[ObjectKey, CatalogObject | str]:
        """Return the objects by key. Objects that cannot be read are replaced by the reason."""
        return {key: objects.from_json(key, text) for key, text in self._stored.items()}

    def has_namespace(self, name: Name) -> bool:
        """Return whether a namespace exists."""
        parts = name_parts(name)
        row = self._rows.get(object_id(parts))
        return not parts or (row is not None and row.object_type == NAMESPACE)

    def folders(self) -> set[str]:
        """Return the folders of the root that rows refer to."""
        return {posixpath.normpath(row.location).partition("/")[0] for row in self._rows.values() if row.location}

    def create_namespace(
        self, name: Name, properties: Mapping[str, str] | None = None, *, ignores_case: bool = False
    ) -> None:
        """Create an empty namespace: see `Namespace.create_namespace`.

        Args:
            name: Its name.
            properties: Its properties.
            ignores_case: Whether an existing namespace whose name differs only by case is an error.
        """
        parts = name_parts(name)
        check_new(parts, NAMESPACE)
        self._check_parent(parts)
        for other in self.namespaces(parts[:-1]) if ignores_case else ():
            if folded(other) == folded(parts[-1]):
                raise AlreadyExistsError("a namespace of this name exists", where=object_id((*parts[:-1], other)))
        present = self._rows.get(object_id(parts))
        if present is not None:
            raise AlreadyExistsError(f"a {present.object_type} of this name exists", where=object_id(parts))
        self._rows[object_id(parts)] = NamedObject.of_namespace(object_id(parts), properties)
        if objects.is_known_form(self._before.settings):
            for key in [each for each in self._stored if each.name[:-1] == parts]:
                self._store(key, "")  # left over: other libraries drop namespaces without their objects

    def drop_namespace(self, name: Name, *, cascade: bool = False) -> None:
        """Drop a namespace: see `Namespace.drop_namespace`."""
        parts = name_parts(name)
        check_new(parts, NAMESPACE)
        namespace_row(parts, self._rows)
        rows = names_below(parts, self._rows)
        keys = [key for key in self._stored if key.name[: len(parts)] == parts and len(key.name) > len(parts)]
        if (rows or keys) and not cascade:
            found = ", ".join([*rows, *map(str, keys)][:5])
            raise ReferencedError("the namespace is not empty", where=object_id(parts), found=found)
        for key in keys:
            self._store(key, "")
        gone = [self._rows.pop(each) for each in (*rows, object_id(parts))]
        self.dropped += [row for row in gone if row.object_type == TABLE]

    def update_namespace(self, name: Name, properties: Mapping[str, str | None]) -> None:
        """Set properties of a namespace. None removes one. Raises NotFoundError, or CorruptError for damaged ones."""
        row = namespace_row(name_parts(name), self._rows)
        values = {**row.metadata_values(), **properties}
        kept = {key: value for key, value in values.items() if value is not None}
        self._rows[row.object_id] = replace(row, metadata=json.dumps(kept) if kept else None)

    def add_table(self, row: NamedObject) -> None:
        """Add the row of a table. Raises AlreadyExistsError, or NotFoundError for the namespace."""
        parts = name_parts(row.object_id)
        self._check_parent(parts)
        if row.object_id in self._rows:
            raise AlreadyExistsError(TAKEN, where=row.object_id)
        self._check_no_view(parts)
        self._rows[row.object_id] = row

    def drop_table(self, name: Name) -> None:
        """Drop a table that has a row. Its files are removed after the commit. Raises NotFoundError."""
        self.dropped.append(self.remove_table(name))

    def remove_table(self, name: Name) -> NamedObject:
        """Remove the row of a table, but keep its files. Returns the row. Raises NotFoundError."""
        return self._rows.pop(self._table_row(name_parts(name)).object_id)

    def rename_table(self, name: Name, new_name: Name) -> None:
        """Rename a table that has a row: see `Namespace.rename_table`."""
        row, new = self._table_row(name_parts(name)), name_parts(new_name)
        check_new(new, TABLE)
        self._check_parent(new)
        if object_id(new) in self._rows or (len(new) == 1 and new[0] in self._root_tables()):
            raise AlreadyExistsError(TAKEN, where=object_id(new))
        self._check_no_view(new)
        del self._rows[row.object_id]
        self._rows[object_id(new)] = replace(row, object_id=object_id(new))

    def follow_folder(self, name: str, new_name: str, location: str | None = None) -> None:
        """Rename the row of a root table, if it has one, after the folder was renamed or registered elsewhere.

        A view with the new name does not prevent it: the folder hides the view already.

        Args:
            name: The name before.
            new_name: The name afterwards.
            location: The new folder. None keeps the location.
        """
        row = self._rows.get(name)
        if row is not None and row.object_type == TABLE:
            if new_name in self._rows:
                raise AlreadyExistsError(TAKEN, where=new_name)
            del self._rows[name]
            self._rows[new_name] = replace(row, object_id=new_name, location=location or row.location)

    def remove_rows(self, object_type: str) -> list[NamedObject]:
        """Remove all rows of a type, and return them."""
        removed = [row for row in self._rows.values() if row.object_type == object_type]
        for row in removed:
            del self._rows[row.object_id]
        return removed

    def put(self, new: CatalogObject, *, replace: bool = False) -> None:
        """Add an object.

        Args:
            new: The object. A view without a UUID or a time of creation gets them.
            replace: Whether it may replace an object of the same kind and name, compared without case.

        Raises:
            AlreadyExistsError: The name is taken. Tables and views share their names, which are compared without case.
            NotFoundError: The namespace of the name does not exist.
            InvalidInputError: The name or a field is invalid.
            UnsupportedError: A newer version of this package wrote objects.
        """
        objects.check_name(new.key)
        self._check_parent(new.name)
        same = self._same(new.key)
        if same and not replace:
            raise AlreadyExistsError(f"a {new.kind} of this name exists", where=object_id(same[0].name))
        self._check_free(new.key)
        for key in same:
            self._store(key, "")
        self._store(new.key, objects.to_json(_identified(new)))

    def remove(self, key: ObjectKey) -> None:
        """Remove an object, also one that cannot be read. ListedNames are compared without case.

        Raises:
            NotFoundError: There is no such object.
            UnsupportedError: A newer version of this package wrote objects.
        """
        for each in self._present(key):
            self._store(each, "")

    def rename(self, key: ObjectKey, new_name: Name) -> None:
        """Rename an object. Its definition does not change.

        Raises:
            NotFoundError: There is no such object, or the namespace of the new name does not exist.
            AlreadyExistsError: The new name is taken.
            InvalidInputError: The new name is invalid.
            UnsupportedError: A newer version of this package wrote objects.
        """
        present, new = self._present(key), ObjectKey(key.kind, name_parts(new_name))
        objects.check_name(new)
        self._check_parent(new.name)
        taken = [each for each in self._same(new) if each not in present]
        if taken:
            raise AlreadyExistsError(f"a {new.kind} of this name exists", where=object_id(taken[0].name))
        self._check_free(new)
        text = self._stored[present[0]]
        for each in present:
            self._store(each, "")
        self._store(new, text)

    def _store(self, key: ObjectKey, text: str) -> None:
        """Store the JSON of an object, or an empty string to remove it."""
        objects.check_form(self._before.settings, self._where)
        self._settings |= {objects.FORM_KEY: str(objects.FORM), key.setting: text}
        if text:
            self._stored[key] = text
            self._keys[key.folded].add(key)
        else:
            self._stored.pop(key, None)
            self._keys[key.folded].discard(key)

    def _same(self, key: ObjectKey) -> list[ObjectKey]:
        """Return the keys of objects with this kind and name. An exact match is first."""
        return sorted(self._keys[key.folded], key=lambda each: (each != key, each))

    def _present(self, key: ObjectKey) -> list[ObjectKey]:
        found = self._same(key)
        if not found:
            raise NotFoundError(f"no such {key.kind}", where=object_id(key.name))
        return found

    def _check_free(self, key: ObjectKey) -> None:
        """Raise AlreadyExistsError if a table has the name of a new view."""
        if key.kind != objects.VIEW:
            return
        *namespace, last = key.name
        for table in names_directly_in(tuple(namespace), TABLE, self._rows):
            if folded(table) == folded(last):
                raise AlreadyExistsError("a table of this name exists", where=object_id((*namespace, table)))

    def _check_root_views(self) -> None:
        """Check the new views of the root. A transaction may drop a view and create a table with its name."""
        stored = dict(objects.stored_objects(self._before.settings))
        new = [key for key in self._stored if key.kind == objects.VIEW and len(key.name) == 1 and key not in stored]
        names = {folded(key.name[0]) for key in new}
        for table in self._root_tables() if names else ():
            if folded(table) in names:
                raise AlreadyExistsError("a table of this name exists", where=table)

    def _check_no_view(self, parts: tuple[str, ...]) -> None:
        if same := self._same(ObjectKey(objects.VIEW, parts)):
            raise AlreadyExistsError("a view of this name exists", where=object_id(same[0].name))

    def _check_parent(self, parts: tuple[str, ...]) -> None:
        """Raise NotFoundError if the namespace of a name does not exist."""
        if len(parts) > 1:
            namespace_row(parts[:-1], self._rows)

    def _table_row(self, parts: tuple[str, ...]) -> NamedObject:
        row = self._rows.get(object_id(parts))
        if row is None or row.object_type != TABLE:
            raise NotFoundError("no such table", where=object_id(parts))
        return row


def _identified(new: CatalogObject) -> CatalogObject:
    """Return an object with all values that the caller may leave out."""
    if not isinstance(new, ViewDefinition):
        return new
    created = int(time.time() * 1000) if new.created_ms is None else new.created_ms
    return replace(new, uuid=new.uuid or str(uuid.uuid4()), created_ms=created)


def names_directly_in(parts: tuple[str, ...], object_type: str, rows: Mapping[str, NamedObject]) -> list[str]:
    """Return the sorted names in a namespace, without the namespace. Raises NotFoundError."""
    if parts:
        namespace_row(parts, rows)
    names = (tuple(each.object_id.split(DELIMITER)) for each in rows.values() if each.object_type == object_type)
    return sorted(name[-1] for name in names if name[:-1] == parts and name[-1])


def namespace_row(parts: tuple[str, ...], rows: Mapping[str, NamedObject]) -> NamedObject:
    """Return the row of a nested namespace. Raises NotFoundError, or InvalidInputError for the root."""
    if not parts:
        raise InvalidInputError("the root does not have a row", expected="a nested namespace")
    row = rows.get(object_id(parts))
    if row is None or row.object_type != NAMESPACE:
        raise NotFoundError("no such namespace", where=object_id(parts))
    return row


def names_below(parts: tuple[str, ...], rows: Mapping[str, NamedObject]) -> list[str]:
    """Return the object ids in a namespace, at any depth."""
    return [each for each in rows if each.startswith(object_id(parts) + DELIMITER)]
