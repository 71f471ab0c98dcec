"""Relations of the rows of `__manifest`: which names are in which namespace."""

from __future__ import annotations

from collections.abc import Mapping

from lance_duck.errors import NotFoundError
from lance_duck.namespaces.listing import NamedObject
from lance_duck.namespaces.names import DELIMITER, NAMESPACE, object_id

Objects = Mapping[str, NamedObject]
"""Rows by object id."""


def names_directly_in(parts: tuple[str, ...], object_type: str, objects: Objects) -> list[str]:
    """Return the last parts of the names directly in a namespace, in order; raises NotFoundError."""
    if parts:
        namespace_row(parts, objects)
    names = (tuple(each.object_id.split(DELIMITER)) for each in objects.values() if each.object_type == object_type)
    return sorted(name[-1] for name in names if name[:-1] == parts and name[-1])


def namespace_row(parts: tuple[str, ...], objects: Objects) -> NamedObject:
    """Return the row of a nested namespace; raises NotFoundError."""
    row = objects.get(object_id(parts))
    if row is None or row.object_type != NAMESPACE:
        raise NotFoundError("no such namespace", where=object_id(parts))
    return row


def check_parent_namespace(parts: tuple[str, ...], objects: Objects) -> None:
    """Raise NotFoundError for a name in a namespace that does not exist."""
    if len(parts) > 1:
        namespace_row(parts[:-1], objects)


def names_below(parts: tuple[str, ...], objects: Objects) -> list[str]:
    """Return the names in a namespace, at any depth."""
    return [each for each in objects if each.startswith(object_id(parts) + DELIMITER)]
