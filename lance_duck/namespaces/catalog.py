"""The catalog of a folder: namespaces, tables and objects that one version of `__manifest` and the folders list."""

from __future__ import annotations

from collections.abc import Iterable

from lance_duck.errors import LanceDuckError
from lance_duck.namespaces import catalog_objects as objects
from lance_duck.namespaces.base import Catalog, TableDescription
from lance_duck.namespaces.catalog_objects import CatalogObject, ObjectKey
from lance_duck.namespaces.draft import namespace_row
from lance_duck.namespaces.folders import TableFolders
from lance_duck.namespaces.listing import ListedNames, NamedObject
from lance_duck.namespaces.names import DELIMITER, NAMESPACE, TABLE
from lance_duck.wire.paths import TABLE_SUFFIX

_Name = tuple[str, ...]


def catalog_of(
    parts: _Name, names: ListedNames, folders: TableFolders, listed: Iterable[str], depth: int = 1
) -> Catalog:
    """Return the content of a namespace and of the namespaces in it.

    Args:
        parts: Name of the namespace.
        names: The content of `__manifest`.
        folders: The folders of the root.
        listed: Tables of the root that exist as folders.
        depth: Number of levels of nested namespaces.

    Raises:
        NotFoundError: The namespace does not exist.
    """
    if parts:
        namespace_row(parts, names.rows)
    rows = {tuple(each.object_id.split(DELIMITER)): each for each in names.rows.values()}
    broken: dict[ObjectKey, str] = {}
    namespaces: dict[_Name, dict[str, str]] = {}
    if not parts:
        namespaces[()] = {}
    for name, row in sorted(rows.items(), key=lambda each: each[0]):
        is_inside = name[: len(parts)] == parts and len(name) <= len(parts) + depth and all(name)
        if is_inside and row.object_type == NAMESPACE:
            namespaces[name] = _properties(name, row, broken)
    tables: dict[_Name, TableDescription] = {}
    if not parts:
        tables |= {(table,): folders.place(table + TABLE_SUFFIX) for table in listed}
    for name, row in rows.items():
        if row.object_type == TABLE and name[:-1] in namespaces and name[-1]:
            try:
                tables[name] = folders.place(folders.inside(row.location or ""), row.properties())
            except LanceDuckError as error:
                broken[ObjectKey(TABLE, name)] = str(error)
    taken = {*tables, *(key.name for key in broken if key.kind == TABLE)}
    found = _objects(names, namespaces, taken, broken)
    return Catalog(namespaces, dict(sorted(tables.items())), found, broken)


def _properties(name: _Name, row: NamedObject, broken: dict[ObjectKey, str]) -> dict[str, str]:
    try:
        return row.properties()
    except LanceDuckError as error:
        broken[ObjectKey(NAMESPACE, name)] = str(error)
        return {}


def _objects(
    names: ListedNames, namespaces: Iterable[_Name], tables: Iterable[_Name], broken: dict[ObjectKey, str]
) -> dict[ObjectKey, CatalogObject]:
    """Return the objects in some namespaces, without those that cannot be read or that another name hides."""
    found: dict[ObjectKey, CatalogObject] = {}
    taken = {ObjectKey(objects.VIEW, name).folded for name in tables}
    for key, text in sorted(objects.stored_objects(names.settings)):
        if key.name[:-1] not in namespaces:
            continue
        each = objects.from_json(key, text)
        if isinstance(each, str):
            broken[key] = each
        elif key.folded in taken:
            broken[key] = "another table or object has this name, compared without case"
        else:
            found[key] = each
            taken.add(key.folded)
    return found
