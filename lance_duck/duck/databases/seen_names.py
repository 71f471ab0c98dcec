"""What a transaction has seen of the names that it changes. COMMIT compares it with the folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.tables.folder import Folder
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.errors import CommitConflictError, LanceDuckError, NotFoundError
from lance_duck.namespaces import CatalogObject, ObjectKey
from lance_duck.snapshot import Snapshot

_Parts = tuple[str, ...]


@dataclass(frozen=True)
class SeenTable:
    """A committed table that a transaction drops or renames.

    Attributes:
        schema: Its schema.
        name: Its name before the transaction.
        handle: The table.
        snapshot: The version that the transaction reads, or None if it cannot be read.
        is_dropped: Whether the transaction drops it.
    """

    schema: DatabaseSchema
    name: str
    handle: TableHandle
    snapshot: Snapshot | None
    is_dropped: bool

    def check(self) -> None:
        """Check that the table is still the same, and that its rows are known if it is dropped.

        Raises:
            CommitConflictError: Another writer has replaced the table, or changed its rows.
        """
        seen = self.snapshot
        if seen is None:
            return
        try:
            newest = self.handle.choice.open(self.handle.uri, self.handle.storage_options)
            if newest.version != seen.version:
                if self.is_dropped and newest.version > seen.version:
                    raise conflict("drop", self.name, self.schema, "changed")
                newest = newest.checkout_version(seen.version)
        except NotFoundError as error:
            raise conflict("alter", self.name, self.schema, "replaced") from error
        found = newest.handle.snapshot.manifest
        if (found.transaction_name, found.timestamp) != (seen.manifest.transaction_name, seen.manifest.timestamp):
            raise conflict("alter", self.name, self.schema, "replaced")


@dataclass
class SeenNames:
    """The committed tables, objects and schemas that a transaction changes, as it has seen them."""

    _tables: dict[str, SeenTable] = field(default_factory=dict)
    _objects: dict[ObjectKey, CatalogObject | None] = field(default_factory=dict)
    _dropped: dict[_Parts, set[str]] = field(default_factory=dict)

    def see_table(self, schema: DatabaseSchema, name: str, *, is_dropped: bool) -> None:
        """Remember the version of a table, before it is renamed or dropped."""
        handle = schema.find(name)
        assert handle is not None
        known = self._tables.get(handle.place)
        if known is None:
            snapshot = None
            with suppress(LanceDuckError):
                found = handle.current().handle.snapshot
                snapshot = found.base or found
            known = SeenTable(schema, name, handle, snapshot, is_dropped)
        self._tables[handle.place] = replace(known, is_dropped=is_dropped or known.is_dropped)

    def see_object(self, folder: Folder, key: ObjectKey) -> None:
        """Remember an object, before it is changed for the first time."""
        if key.folded not in self._objects:
            self._objects[key.folded] = _by_name(folder).get(key.folded)

    def see_schema(self, schema: DatabaseSchema) -> None:
        """Remember the content of a schema, before it is dropped."""
        assert schema.folder is not None
        parts = schema.folder.parts
        self._dropped[parts] = {folded(name) for name in (*schema.tables, *schema.broken_tables)}
        for key in schema.folder.catalog.objects:
            if _is_in(key, parts):
                self.see_object(schema.folder, key)
        for place, seen in self._tables.items():
            if seen.schema.place == schema.place:
                self._tables[place] = replace(seen, is_dropped=True)
        for name in schema.tables:
            handle = schema.find(name)
            if handle is not None and not handle.is_draft:
                self.see_table(schema, name, is_dropped=True)

    def check(self, folder: Folder, tables_in: Callable[[_Parts], Mapping[str, str]]) -> None:
        """Compare with the names of now.

        Args:
            folder: The folder of the database, just listed.
            tables_in: Returns the locations of the tables in a namespace, by name in lower case.

        Raises:
            CommitConflictError: Another writer has changed the tables, objects or schemas.
        """
        for table in self._tables.values():
            assert table.schema.folder is not None
            place = tables_in(table.schema.folder.parts).get(folded(table.name))
            if place is not None and place != table.handle.uri:
                raise conflict("alter", table.name, table.schema, "replaced")
            if place is not None:
                table.check()
        objects = _by_name(folder)
        for key, seen in self._objects.items():
            if objects.get(key) != seen:
                done = "created" if seen is None else "dropped" if key not in objects else "changed"
                raise CommitConflictError(
                    f'another writer has {done} the {key.kind.replace("_", " ")} "{key.name[-1]}"',
                    remedy="nothing was committed: run the transaction again",
                )
        for parts, names in self._dropped.items():
            new = [name for name in tables_in(parts) if name not in names]
            new += [key.name[-1] for key in objects if _is_in(key, parts) and key not in self._objects]
            if new:
                raise CommitConflictError(
                    f'another writer has created "{new[0]}" in the schema "{parts[-1]}" that is dropped',
                    remedy="nothing was committed: run the transaction again",
                )


def conflict(action: str, name: str, schema: DatabaseSchema, done: str) -> CommitConflictError:
    """Return the error for a table that another writer has changed."""
    return CommitConflictError(
        f'Transaction conflict - attempting to {action} table "{name}" in schema "{schema.name}" '
        f"- but this table has been {done} by another transaction already",
        remedy="nothing was committed: run the transaction again",
    )


def _is_in(key: ObjectKey, parts: _Parts) -> bool:
    """Return whether an object is directly in a namespace."""
    return key.folded.name[:-1] == tuple(map(folded, parts))


def _by_name(folder: Folder) -> dict[ObjectKey, CatalogObject]:
    return {key.folded: each for key, each in folder.catalog.objects.items()}
