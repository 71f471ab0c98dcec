"""Names that a transaction has changed, which only its connection sees before COMMIT.

    {root}/__lance_duck/staged/{id}/{n}   a new table of the root, moved to {root}/{name}.lance at COMMIT
    {root}/{8 hex digits}_{object id}     a new table of a schema. COMMIT adds its row to `__manifest`

A new table is written like any other table, one version for each statement. COMMIT repeats the changes of names in
their order: those of the schema `main` one by one, all others as one version of `__manifest`.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final
from uuid import uuid4

from lance_duck.dataset import LanceDataset
from lance_duck.duck.databases.changed_names import ChangedNames
from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.databases.seen_names import SeenNames, conflict
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.tables.folder import Folder
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.duck.tables.namespace_folder import NamespaceFolder
from lance_duck.errors import (
    AlreadyExistsError,
    CommitConflictError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    UnsupportedError,
)
from lance_duck.namespaces import CatalogDraft, CatalogObject, DirectoryNamespace, ObjectKey
from lance_duck.namespaces.catalog_objects import VIEW
from lance_duck.namespaces.listing import NamedObject
from lance_duck.namespaces.names import TABLE, object_id
from lance_duck.store import join_uri, local_path
from lance_duck.store.local_write import move_folder
from lance_duck.verbs.pending_changes import PreparedChange
from lance_duck.wire.paths import STAGED_GROUPS, TABLE_SUFFIX

_WEEK: Final = 7 * 24 * 3600.0


@dataclass(frozen=True)
class NameChange:
    """A change of a name.

    Attributes:
        schema: The schema of the name.
        removes: The table that no longer has its name, or None.
        adds: The new name of a table, or None.
        in_manifest: Applies the change to the names in `__manifest`. None for tables of the root.
        in_folder: Applies the change of a table of the root to the folder, and to its row.
        move: The locations of a table of the root before and after the change. The second is None if it is dropped.
            None if its folder does not move.
        row: Applies the change of a table of the root to its row in `__manifest`, if it has one.
        published: Called after the change was published.
    """

    schema: DatabaseSchema
    removes: str | None = None
    adds: str | None = None
    in_manifest: Callable[[CatalogDraft], object] | None = None
    in_folder: Callable[[], object] | None = None
    move: tuple[str, str | None] | None = None
    row: Callable[[CatalogDraft], object] | None = None
    published: Callable[[], object] | None = None

    def __str__(self) -> str:
        if self.removes is None:
            return f"CREATE TABLE {self.adds}"
        return f"DROP TABLE {self.removes}" if self.adds is None else f"RENAME {self.removes} TO {self.adds}"


@dataclass
class DraftNames(ChangedNames):
    """The names that one transaction has changed, and how COMMIT publishes them.

    Attributes:
        changes: The changes, in order.
        keeps_files: Whether other processes may publish the changes, so that the files of new tables stay.
        _new: The new tables and their schemas, by location.
        _final: Locations of root tables at COMMIT that differ from those of their handles, by handle and name.
    """

    changes: list[NameChange] = field(default_factory=list)
    keeps_files: bool = False
    _new: dict[str, tuple[TableHandle, DatabaseSchema]] = field(default_factory=dict)
    _final: dict[tuple[str, str], str] = field(default_factory=dict)
    _sources: list[Any] = field(default_factory=list)
    _seen: SeenNames = field(default_factory=SeenNames)
    _root_tables: Collection[str] = ()

    def is_new(self, handle: TableHandle) -> bool:
        """Return whether the transaction has created a table."""
        return handle.place in self._new

    def place_of_new(self, schema: DatabaseSchema, name: str) -> tuple[str, Mapping[str, str] | None]:
        """Return the location of a new table that only this transaction sees, and the settings of its store.

        Raises:
            UnsupportedError: A name of the schema cannot be added in a transaction.
        """
        folder = schema.folder
        assert folder is not None
        if not isinstance(folder.namespace, DirectoryNamespace):
            raise UnsupportedError(
                "a table of a REST service cannot be created in a transaction",
                where=f"table {name}",
                remedy="COMMIT or ROLLBACK first",
            )
        if folder.parts:
            place = folder.namespace.place_of_new((*folder.parts, name))
            return place.location, place.storage_options or None
        if local_path(folder.uri) is None:
            raise UnsupportedError(
                "a table of main on an object store cannot be created in a transaction",
                where=f"table {name}",
                remedy="COMMIT or ROLLBACK first, or create it in another schema, where a name is a row",
            )
        staged = join_uri(folder.uri, STAGED_GROUPS)
        _remove_old(local_path(staged) or "")
        return join_uri(staged, str(uuid4())), folder.storage_options

    def stored_name(self, schema: DatabaseSchema, name: str) -> str:
        """Return the spelling that the name of a table has after the earlier changes."""
        added = [each.adds for each in self.changes if each.schema.place == schema.place and each.adds is not None]
        spelled = [each for each in added if folded(each) == folded(name)]
        return spelled[-1] if spelled else schema.stored_name(name)

    def create(self, schema: DatabaseSchema, name: str, handle: TableHandle) -> None:
        """Add a table that was written to a location of `place_of_new`."""
        folder = schema.folder
        assert folder is not None
        self._new[handle.place] = handle, schema
        self._show(schema, name, handle)
        if folder.parts:
            row = NamedObject(object_id((*folder.parts, name)), TABLE, handle.uri.rpartition("/")[2])
            self.changes.append(NameChange(schema, None, name, lambda draft: draft.add_table(row)))
        else:
            final = self._final[handle.place, name] = join_uri(folder.uri, name + TABLE_SUFFIX)
            move = handle.uri, final
            self.changes.append(NameChange(schema, None, name, None, lambda: _move(handle.uri, final), move))

    def rename(self, schema: DatabaseSchema, name: str, new_name: str) -> None:
        """Rename a table."""
        handle, folder, name = schema.find(name), schema.folder, self.stored_name(schema, name)
        assert handle is not None
        assert folder is not None
        self._show(schema, name, None)
        self._show(schema, new_name, handle)
        if folder.parts:
            old, new = (*folder.parts, name), (*folder.parts, new_name)
            self.changes.append(NameChange(schema, name, new_name, lambda draft: draft.rename_table(old, new)))
        else:
            uri = self._final.get((handle.place, name), handle.uri)
            target = self._final[handle.place, new_name] = folder.uri_after_rename(name, new_name, uri)
            rename, moves = partial(folder.rename, name, new_name, uri), target != uri
            self.changes.append(
                NameChange(
                    *(schema, name, new_name, None, rename),
                    move=(uri, target) if moves else None,
                    row=partial(_rename_row, name, new_name, moves=moves),
                )
            )

    def drop(self, schema: DatabaseSchema, name: str) -> None:
        """Drop a table."""
        handle, folder, name = schema.find(name), schema.folder, self.stored_name(schema, name)
        assert handle is not None
        assert folder is not None
        self._show(schema, name, None)
        if folder.parts:
            old = (*folder.parts, name)
            self.changes.append(NameChange(schema, name, None, lambda draft: draft.drop_table(old)))
        else:
            uri = self._final.get((handle.place, name), handle.uri)
            remove = partial(folder.drop, name, uri)
            self.changes.append(NameChange(schema, name, None, None, remove, (uri, None), partial(_drop_row, name)))

    def change_object(
        self,
        schema: DatabaseSchema,
        removed: ObjectKey | None,
        added: CatalogObject | None,
        apply: Callable[[CatalogDraft], object],
        published: Callable[[], object],
    ) -> None:
        """Add, replace or remove a view, a macro or a type.

        Args:
            schema: A schema of the database.
            removed: The object that no longer exists, or None.
            added: The object that exists afterwards, or None.
            apply: Applies the change to the names in `__manifest`.
            published: Called after the change was published.
        """
        folder = database_folder(schema)
        for key in (removed, None if added is None else added.key):
            if key is not None:
                self._seen.see_object(folder, key)
        if removed is not None:
            self.objects[removed] = None
        if added is not None:
            self.objects[added.key] = added
            self.names.append(added.name[-1])
        self.changes.append(NameChange(schema, in_manifest=apply, published=published))

    def create_schema(self, main: DatabaseSchema, schema: DatabaseSchema) -> None:
        """Add a schema."""
        assert schema.folder is not None
        parts = schema.folder.parts
        self.schemas[schema.place] = schema
        self.changes.append(
            NameChange(main, in_manifest=lambda draft: draft.create_namespace(parts, ignores_case=True))
        )

    def drop_schema(self, main: DatabaseSchema, schema: DatabaseSchema, *, cascades: bool) -> None:
        """Drop a schema. The conflicts of earlier changes of its tables are found in `__manifest`."""
        assert schema.folder is not None
        parts, place = schema.folder.parts, schema.place
        self._seen.see_schema(schema)
        self.schemas[place] = None
        self.tables |= {key: None for key in self.tables if key[0] == place}
        self.changes = [
            replace(each, removes=None, adds=None) if each.schema.place == place else each for each in self.changes
        ]
        self.changes.append(NameChange(main, in_manifest=lambda draft: draft.drop_namespace(parts, cascade=cascades)))

    def keep(self, source: Any) -> None:
        """Keep an object alive until the transaction ends."""
        self._sources.append(source)

    @contextmanager
    def undone_after_error(self) -> Iterator[None]:
        """Restore the names if the block fails."""
        before = [list(self.changes), dict(self.objects), dict(self.schemas), dict(self.tables), list(self.names)]
        try:
            yield
        except BaseException:
            self.changes, self.objects, self.schemas, self.tables, self.names = before  # type: ignore[assignment]
            raise

    def see(self, schema: DatabaseSchema, name: str, *, is_dropped: bool) -> None:
        """Remember a committed table before it is renamed or dropped."""
        handle = schema.find(name)
        if handle is not None and not self.is_new(handle):
            self._seen.see_table(schema, name, is_dropped=is_dropped)

    def check(self) -> None:
        """Check everything that `publish` can refuse, with the names of now.

        Raises:
            CommitConflictError: Another writer has changed the same names.
            UnsupportedError: The database cannot store the changes.
        """
        if not self.changes:
            return
        folder = database_folder(self.changes[0].schema)
        root = _by_folded(folder.tables(force=True)) if folder.missing() is None else {}
        self._seen.check(folder, lambda parts: root if parts == folder.parts else _by_folded(folder.tables_in(parts)))
        after = {folded(name): name for name in root}
        for change in self.changes:
            if change.in_folder is not None:
                _check_names(change, after)
        self._root_tables = after
        objects = {key.folded: each for key, each in (*folder.catalog.objects.items(), *self.objects.items())}
        for change in self.changes:
            key = ObjectKey(VIEW, (*folder.parts, folded(change.adds or "")))
            if change.in_folder is not None and change.adds is not None and objects.get(key) is not None:
                raise conflict("create", change.adds, change.schema, "created")
        if any(change.in_manifest is not None for change in self.changes):
            if not isinstance(folder.namespace, DirectoryNamespace):
                raise UnsupportedError(
                    "names of a REST service cannot be changed in a transaction",
                    where=folder.uri,
                    remedy="run the statement again, outside of a transaction",
                )
            with conflicts_of_names():
                folder.namespace.check_catalog(self._check_edits, lambda: after)

    def _check_edits(self, draft: CatalogDraft) -> None:
        """Apply the changes to a draft that is not committed. Raises CommitConflictError."""
        for change in self.changes:
            if change.in_manifest is None and change.removes is not None:
                with suppress(NotFoundError):  # most tables of the root do not have rows
                    draft.remove_table((change.removes,))
        for change in self.changes:
            if change.in_manifest is None:
                continue
            assert change.schema.folder is not None
            parts = change.schema.folder.parts
            if not draft.has_namespace(parts):
                raise CommitConflictError(
                    f'Transaction conflict - the schema "{parts[-1]}" has been dropped by another transaction',
                    remedy="nothing was committed: run the transaction again",
                )
            _check_names(change, {folded(name): name for name in draft.tables(parts)})
            change.in_manifest(draft)

    @property
    def has_many_steps(self) -> bool:
        """Whether the changes are more than one step of the folder or of `__manifest`."""
        in_manifest = [change for change in self.changes if change.in_manifest is not None]
        return len(self.changes) - len(in_manifest) + bool(in_manifest) > 1

    def publish(self) -> None:
        """Make the changes visible to everybody, as one step.

        Raises:
            CommitConflictError: Another writer has changed the same names.
        """
        edits = [change for change in self.changes if change.in_manifest is not None]
        with conflicts_of_names():
            for change in self.changes:
                if change.in_folder is not None:
                    change.in_folder()
            if edits:
                database_folder(edits[0].schema).namespace.change_catalog(self._edit)

    def _edit(self, draft: CatalogDraft) -> None:
        for change in self.changes:
            if change.in_manifest is not None:
                change.in_manifest(draft)

    def prepare(self, namespace: DirectoryNamespace) -> tuple[PreparedChange | None, CatalogDraft | None]:
        """Prepare the change of `__manifest`. Returns None twice if there is none."""
        edits = [edit for change in self.changes if (edit := change.in_manifest or change.row) is not None]
        has_rows = namespace.stamp() != 0  # a plain folder has no rows
        if not has_rows and all(change.in_manifest is None for change in self.changes):
            return None, None

        def edit_all(draft: CatalogDraft) -> None:
            for edit in edits:
                edit(draft)

        with conflicts_of_names():
            return namespace.prepare_catalog(edit_all, lambda: self._root_tables)

    def settle(self) -> None:
        """Open the changed tables again for all connections, after DuckDB has ended the transaction."""
        self.reopen()
        for change in self.changes:
            if change.published is not None:
                change.published()

    def reopen(self) -> None:
        """Open the tables again whose names the transaction has changed."""
        for schema in {change.schema.place: change.schema for change in self.changes}.values():
            schema.reopen([name for place, name in self.tables if place == schema.place])

    def discard(self) -> None:
        """Remove the files of new tables that are not published. Never raises."""
        for handle, schema in self._new.values():
            if self.keeps_files or _is_published(handle, schema):
                continue
            with suppress(LanceDuckError):
                _drop(handle)
            _remove_empty(handle.uri)

    def _show(self, schema: DatabaseSchema, name: str, handle: TableHandle | None) -> None:
        self.tables[schema.place, folded(name)] = handle
        self.names.append(name)


def _rename_row(name: str, new_name: str, draft: CatalogDraft, *, moves: bool) -> None:
    draft.follow_folder(name, new_name, new_name + TABLE_SUFFIX if moves else None)


def _drop_row(name: str, draft: CatalogDraft) -> None:
    with suppress(NotFoundError):  # most tables of the root do not have rows
        draft.remove_table((name,))


def database_folder(schema: DatabaseSchema) -> Folder:
    """Return the folder of the database of a schema."""
    folder = schema.folder
    assert folder is not None
    return (isinstance(folder, NamespaceFolder) and folder.parent) or folder


def _by_folded(tables: Mapping[str, str]) -> dict[str, str]:
    return {folded(name): uri for name, uri in tables.items()}


def _check_names(change: NameChange, names: dict[str, str]) -> None:
    """Check the names of a change, and change the names of a schema in lower case. Raises CommitConflictError."""
    if change.removes is not None and names.pop(folded(change.removes), None) is None:
        raise conflict("alter", change.removes, change.schema, "dropped")
    if change.adds is not None:
        if folded(change.adds) in names:
            raise conflict("create", change.adds, change.schema, "created")
        names[folded(change.adds)] = change.adds


@contextmanager
def conflicts_of_names() -> Iterator[None]:
    """Raise CommitConflictError for names that another writer has created or dropped."""
    try:
        yield
    except (AlreadyExistsError, NotFoundError, ReferencedError) as error:
        raise CommitConflictError(
            "another writer has changed the same names", where=error.where, found=error.what
        ) from error


def _move(start: str, end: str) -> None:
    """Move a new table to its name."""
    source, target = local_path(start), local_path(end)
    assert source is not None
    assert target is not None
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    move_folder(source, target)
    _remove_empty(start)


def _remove_empty(uri: str) -> None:
    """Remove the folders of staged tables if they are empty."""
    staged = os.path.dirname(local_path(uri) or "")
    if staged.endswith(STAGED_GROUPS):
        with suppress(OSError):
            os.rmdir(staged)
            os.rmdir(os.path.dirname(staged))


def _remove_old(staged: str) -> None:
    """Remove new tables of transactions that ended without COMMIT or ROLLBACK a week ago."""
    with suppress(OSError):
        for entry in os.scandir(staged):
            if time.time() - entry.stat().st_mtime > _WEEK:
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_published(handle: TableHandle, schema: DatabaseSchema) -> bool:
    """Return whether a schema lists a new table, under any name. COMMIT may have failed after it was listed."""
    assert schema.folder is not None
    if not schema.folder.parts:
        return False  # a published table of the root is at another location
    try:
        places = schema.folder.namespace.describe_tables(schema.folder.parts).values()
    except NotFoundError:
        return False
    except (LanceDuckError, OSError):
        return True
    return any(place.location == handle.uri for place in places)


def _drop(handle: TableHandle) -> None:
    LanceDataset.drop(handle.uri, storage_options=dict(handle.storage_options or {}))
