"""The names that the current transaction has changed, for lookups of names by its connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.namespaces import CatalogObject, ObjectKey

Place = tuple[str, str]
"""A database and a schema, in lower case."""


@dataclass
class ChangedNames:
    """Changed names of tables, schemas, views, macros and types.

    Attributes:
        tables: Tables by schema and name in lower case. None if the transaction has removed the name.
        objects: Views, macros and types by key. None if the transaction has removed them.
        schemas: Schemas (`DatabaseSchema`) by database and name. None if the transaction has dropped them.
        names: Names of tables and objects that the transaction has created or renamed.
    """

    tables: dict[tuple[Place, str], TableHandle | None] = field(default_factory=dict)
    objects: dict[ObjectKey, CatalogObject | None] = field(default_factory=dict)
    schemas: dict[Place, Any] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    @contextmanager
    def seen(self) -> Iterator[None]:
        """While the context is open, lookups by this thread see the changed names."""
        token = _CHANGED.set(self)
        try:
            yield
        finally:
            _CHANGED.reset(token)

    def find(self, place: Place, name: str) -> tuple[TableHandle | None] | None:
        """Return a tuple with the table of a changed name, or with None if the name was removed.

        Returns None if the name was not changed.
        """
        key = (place, folded(name))
        return (self.tables[key],) if key in self.tables else None

    def names_in(self, place: Place) -> list[str]:
        """Return the changed names of tables in a schema, in lower case."""
        return [name for schema, name in self.tables if schema == place]


_CHANGED: ContextVar[ChangedNames | None] = ContextVar("lance_duck_changed_names", default=None)


def changed_names() -> ChangedNames | None:
    """Return the names that the current transaction has changed. Returns None outside transactions."""
    return _CHANGED.get()
