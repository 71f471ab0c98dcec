"""Several tables of a folder in one commit, for Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Unpack
from uuid import uuid4

from lance_duck.arguments import checked_call, checked_calls
from lance_duck.dataset import LanceDataset
from lance_duck.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    UnsupportedError,
)
from lance_duck.groups.pending import commit_together
from lance_duck.groups.reading import ReadPoint
from lance_duck.namespaces import CatalogDraft, DirectoryNamespace, TableDescription
from lance_duck.namespaces.catalog_objects import VIEW
from lance_duck.namespaces.listing import NamedObject
from lance_duck.namespaces.names import DELIMITER, TABLE, Name, check_new, name_parts, object_id
from lance_duck.namespaces.pending_names import PendingNames
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.store import join_uri, local_path
from lance_duck.verbs.change import transaction_properties
from lance_duck.verbs.pending_changes import PendingChanges
from lance_duck.verbs.versions.rename import check_renamable
from lance_duck.verbs.writing.settings import WriteArguments
from lance_duck.wire.paths import STAGED_GROUPS, TABLE_SUFFIX
from lance_duck.write_dataset import write_dataset


@checked_call
def transaction(
    folder: str | os.PathLike[str] | DirectoryNamespace,
    *,
    storage_options: Mapping[str, str] | None = None,
    message: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> FolderTransaction:
    """Begin a transaction that changes several tables of a folder in one commit.

    Used in a `with` statement, it commits at the end of the block, and discards everything after an error.
    `docs/guarantees.md` says who sees all changes at once.

    Args:
        folder: Path or URI of the folder, or its namespace.
        storage_options: Settings of the folder's store.
        message: Commit message of the new version of each table.
        properties: Properties of these versions, as strings.

    Raises:
        InvalidInputError: A property is not a string, or `storage_options` are given with a namespace.
    """
    if isinstance(folder, DirectoryNamespace):
        if storage_options is not None:
            raise InvalidInputError("storage_options", expected="None, because the namespace has its own")
        namespace = folder
    else:
        namespace = DirectoryNamespace(os.fspath(folder), storage_options=storage_options)
    return FolderTransaction(namespace, transaction_properties(message, properties))


@dataclass
class _OpenTable:
    """A table that the transaction has opened."""

    dataset: LanceDataset
    pending: PendingChanges


@checked_calls
class FolderTransaction:
    """Changes of tables of one folder that are committed together: see `transaction`.

    All tables are read in the state that the folder had when the transaction opened its first table. A name is a list
    of strings, or one string with "$" separators, as in namespaces.

    Attributes:
        versions: After the commit, the new version of each changed table, by name.
    """

    def __init__(self, namespace: DirectoryNamespace, properties: Mapping[str, str] | None = None) -> None:
        self.versions: dict[str, int] = {}
        self._namespace = namespace
        self._properties = properties
        self._point = ReadPoint()
        self._open: dict[str, _OpenTable] = {}
        self._new: dict[str, LanceDataset] = {}
        self._renamed: dict[str, str | None] = {}
        self._moved: dict[str, str] = {}
        self._names = PendingNames(namespace)
        self._is_over = False

    def __repr__(self) -> str:
        return f"FolderTransaction({self._namespace.root!r})"

    def __enter__(self) -> FolderTransaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_over:
            return
        if error is None:
            self.commit()
        else:
            self.rollback()

    def table(self, name: Name) -> LanceDataset:
        """Open a table. Changes through the returned dataset belong to the transaction.

        Rows, columns, and metadata of columns and of the table can be changed. Other changes, such as new indexes or a
        compaction, raise UnsupportedError. After the commit, the dataset reads the committed version.

        Raises:
            NotFoundError: The table does not exist.
        """
        self._check_open()
        key = object_id(name_parts(name))
        if key in self._new:
            return self._new[key]
        original = self._original(key)
        if original not in self._open:
            place = self._describe(original)
            base = self._version(place)
            pending = PendingChanges(base)
            opened = LanceDataset(place.location, table=TableScan(pending.collecting()))
            self._open[original] = _OpenTable(opened, pending)
        table = self._open[original]
        if table.dataset.handle.snapshot.manifest is not table.pending.current.manifest:
            table.dataset.handle.move_to(table.pending.collecting())  # another dataset has changed the table
        return table.dataset

    def __getitem__(self, name: Name) -> LanceDataset:
        """Open a table: see `table`."""
        return self.table(name)

    def create_table(self, name: Name, data: Any, **settings: Unpack[WriteArguments]) -> LanceDataset:
        """Write a new table, which nobody else sees before the commit.

        Args:
            name: Its name.
            data: Data in any form that `lance_duck.write_dataset` accepts.
            settings: Arguments of `write_dataset`.

        Raises:
            AlreadyExistsError: A table has this name.
            UnsupportedError: The table would be in the root of a folder on an object store.
        """
        self._check_open()
        parts = name_parts(name)
        key = object_id(parts)
        check_new(parts, TABLE)
        self._check_free(parts)
        location = self._namespace.place_of_new(parts).location
        target = location
        if len(parts) == 1:
            self._check_local(key)
            location = join_uri(self._namespace.root, f"{STAGED_GROUPS}/{uuid4()}")
            self._names.moved.append((location, target))
            self._names.created.add(parts[0])
        else:
            row = NamedObject(key, TABLE, target.rpartition("/")[2])
            self._names.add(lambda draft: draft.add_table(row))
        settings.setdefault("storage_options", dict(self._namespace.log.storage_options or {}) or None)
        try:
            self._new[key] = write_dataset(data, location, **settings)
        except BaseException:
            (self._names.moved if len(parts) == 1 else self._names.edits).pop()
            raise
        self._renamed.pop(key, None)
        return self._new[key]

    def drop_table(self, name: Name) -> None:
        """Drop a table at the commit.

        Raises:
            NotFoundError: The table does not exist.
            UnsupportedError: The table is in the root of a folder on an object store.
        """
        self._check_open()
        parts = name_parts(name)
        key = object_id(parts)
        if len(parts) == 1:
            self._check_local(key)
        location = self._location(parts)
        if key in self._new:
            del self._new[key]
        else:
            self._see(self._original(key), is_dropped=True)
        if len(parts) == 1:
            self._names.moved.append((location, None))
            if self._has_rows():
                self._names.add(lambda draft: _drop_row(draft, parts))
        else:
            self._names.add(lambda draft: draft.drop_table(parts))
        self._renamed[key] = None
        self._names.created.discard(key)

    def rename_table(self, name: Name, new_name: Name) -> None:
        """Rename a table at the commit, within its namespace.

        Raises:
            NotFoundError: The table does not exist.
            AlreadyExistsError: A table has the new name.
            UnsupportedError: The folder of the table cannot be renamed, or the new name is in another namespace.
        """
        self._check_open()
        old, new = name_parts(name), name_parts(new_name)
        if old[:-1] != new[:-1]:
            raise UnsupportedError("a table cannot move to another namespace", where=object_id(old))
        check_new(new, TABLE)
        self._check_free(new)
        location = self._location(old)
        if object_id(old) not in self._new:
            self._see(self._original(object_id(old)), is_dropped=False)
        if len(old) == 1:
            self._rename_folder(old, new, location)
        else:
            self._names.add(lambda draft: draft.rename_table(old, new))
        if object_id(old) in self._new:
            self._new[object_id(new)] = self._new.pop(object_id(old))
            self._renamed[object_id(old)] = None
            self._renamed.pop(object_id(new), None)
        else:
            original = self._original(object_id(old))
            self._renamed[object_id(old)] = None
            self._renamed[object_id(new)] = original

    def _rename_folder(self, old: tuple[str, ...], new: tuple[str, ...], location: str) -> None:
        """Rename a table of the root: its folder if it is named after the table, and its row if it has one."""
        self._check_local(object_id(old))
        is_named = location == self._folder(old)
        if is_named and object_id(old) not in self._new:
            check_renamable(self._describe(self._original(object_id(old))).location)
        target = self._folder(new) if is_named else location
        if is_named:
            self._names.moved.append((location, target))
        if self._has_rows():
            folder = new[0] + TABLE_SUFFIX if is_named else None
            self._names.add(lambda draft: draft.follow_folder(old[0], new[0], folder))
        self._moved[object_id(new)] = target

    def _folder(self, parts: tuple[str, ...]) -> str:
        return join_uri(self._namespace.root, parts[0] + TABLE_SUFFIX)

    def create_namespace(self, name: Name, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace at the commit. Raises AlreadyExistsError."""
        self._check_open()
        parts = name_parts(name)
        self._names.add(lambda draft: draft.create_namespace(parts, properties))

    def drop_namespace(self, name: Name, *, cascade: bool = False) -> None:
        """Drop a namespace at the commit.

        Args:
            name: Its name.
            cascade: Whether to drop its tables and objects, too. New tables of other writers are a conflict.

        Raises:
            NotFoundError: The namespace does not exist.
            ReferencedError: It is not empty, and `cascade` is not set.
        """
        self._check_open()
        parts = name_parts(name)
        names = {} if not cascade or not self._has_namespace(parts) else self._namespace.describe_tables(parts)
        for table in names:
            if object_id((*parts, table)) not in self._renamed:
                self._see(object_id((*parts, table)), is_dropped=True)
        known = {*names, *(name_parts(key)[-1] for key in self._new if name_parts(key)[:-1] == parts)}

        def drop(draft: CatalogDraft) -> None:
            new = [] if not draft.has_namespace(parts) else [each for each in draft.tables(parts) if each not in known]
            if cascade and new:
                raise AlreadyExistsError("another writer has created a table", where=object_id((*parts, new[0])))
            draft.drop_namespace(parts, cascade=cascade)

        self._names.add(drop)

    def commit(self) -> dict[str, int]:
        """Commit all changes, and return the new version of each changed table, by name.

        Raises:
            CommitConflictError: Other writers changed the same rows or names. Nothing was committed.
            PartlyCommittedError: Some tables have the changes, and others do not. The message names them.
            StoreError: The store failed.
        """
        self._check_open()
        self._is_over = True
        tables = [each.pending for each in self._open.values()]
        names = self._names if self._names else None
        try:
            after = commit_together(self._namespace.log, tables, names, self._properties)
        except BaseException as error:
            for table in self._open.values():
                table.dataset.handle.move_to(table.pending.base)
            if isinstance(error, CommitConflictError):
                self._drop_new()
            raise
        if names is not None:
            names.remove_dropped()
        named = {original: name for name, original in self._renamed.items() if original is not None}
        for (key, table), version in zip(self._open.items(), after, strict=True):
            name = named.get(key, key)
            table.dataset.handle.move_to(version)
            if name != key and DELIMITER not in name:
                self._reopen(table.dataset, name)
            if version.version != table.pending.base.version:
                self.versions[name] = version.version
        for name, table in self._new.items():
            if DELIMITER not in name:
                self._reopen(table, name)
            self.versions[name] = table.version
        return self.versions

    def _reopen(self, table: LanceDataset, name: str) -> None:
        """Let a dataset read a table of the root at its final location."""
        place = self._namespace.describe_table(name)
        table.handle.uri = place.location
        table.handle.move_to(open_snapshot(place.location, table.version, storage_options=dict(place.storage_options)))

    def _see(self, name: str, *, is_dropped: bool) -> None:
        """Remember the version of a table before it is dropped or renamed."""
        opened = self._open.pop(name, None) if is_dropped else self._open.get(name)
        place = self._describe(name)
        version = self._version(place) if opened is None else opened.pending.base
        if opened is not None and is_dropped:
            opened.pending.discard()
        self._names.see(name, version, place.location, is_dropped=is_dropped)

    def _describe(self, name: str) -> TableDescription:
        """Return the location of a table in the state that the transaction reads.

        Raises:
            NotFoundError: The table does not exist.
            RetryableError: Another writer has changed names since.
        """
        log = self._namespace.log
        self._point.begin(log)
        try:
            found = self._namespace.describe_table(name)
        except NotFoundError:
            self._point.check_names(log, moves=True)
            raise
        if DELIMITER in name:
            self._point.check_names(log, moves=False)
        return found

    def _has_namespace(self, parts: tuple[str, ...]) -> bool:
        try:
            self._namespace.describe_namespace(parts)
        except NotFoundError:
            return False
        return True

    def rollback(self) -> None:
        """Discard all changes."""
        self._check_open()
        self._is_over = True
        for table in self._open.values():
            table.pending.discard()
            table.dataset.handle.move_to(table.pending.base)
        self._drop_new()

    def _drop_new(self) -> None:
        for table in self._new.values():
            with suppress(LanceDuckError):
                LanceDataset.drop(table.uri, storage_options=dict(self._namespace.log.storage_options or {}))

    def _check_open(self) -> None:
        if self._is_over:
            raise InvalidInputError("the transaction has ended", where=repr(self), remedy="begin a new one")

    def _check_local(self, name: str) -> None:
        if local_path(self._namespace.root) is None:
            raise UnsupportedError(
                "a transaction cannot create, rename or drop a table in the root of a folder on an object store",
                where=name,
                remedy="use a namespace, where a name is a row",
            )

    def _check_free(self, parts: tuple[str, ...]) -> None:
        key = object_id(parts)
        is_free = key not in self._new and (key in self._renamed and self._renamed[key] is None)
        if not is_free and (key in self._new or key in self._renamed or self._exists(key)):
            raise AlreadyExistsError("a table of this name exists", where=key)
        if len(parts) == 1 and any(
            each.kind == VIEW and each.name == parts for each in self._namespace.catalog().objects
        ):
            raise AlreadyExistsError("a view of this name exists", where=key)

    def _exists(self, key: str) -> bool:
        try:
            self._namespace.describe_table(key)
        except NotFoundError:
            return False
        return True

    def _original(self, key: str) -> str:
        """Return the name that a table had before the transaction. Raises NotFoundError."""
        if key not in self._renamed:
            return key
        original = self._renamed[key]
        if original is None:
            raise NotFoundError("no such table", where=key, found="a table that the transaction dropped or renamed")
        return original

    def _location(self, parts: tuple[str, ...]) -> str:
        """Return where the folder of a table is after the changes so far."""
        key = object_id(parts)
        if len(parts) == 1 and (key in self._new or self._moved.get(key) is not None):
            return self._moved.get(key) or self._folder(parts)
        if key in self._new:
            return self._new[key].uri
        return self._describe(self._original(key)).location

    def _has_rows(self) -> bool:
        return self._namespace.stamp() != 0

    def _version(self, place: TableDescription) -> Snapshot:
        """Open a table in the state that the transaction reads."""
        found: list[Snapshot] = []

        def find() -> Snapshot:
            found.append(open_snapshot(place.location, storage_options=dict(place.storage_options)))
            return found[-1]

        version = self._point.version(self._namespace.log, find)
        return found[-1] if version is None else found[-1].checkout(version)


def _drop_row(draft: CatalogDraft, parts: tuple[str, ...]) -> None:
    with suppress(NotFoundError):  # most tables of the root do not have rows
        draft.remove_table(parts)
