"""The table `__manifest`. It lists names of tables and namespaces that folder names cannot express.

    column        | type, nulls                     | content
    object_id     | string, none                    | parts of the name, "$" between them; unenforced primary key
    object_type   | string, none                    | "namespace" or "table"
    location      | string                          | folder of a table, relative to the root
    metadata      | string                          | JSON object of properties
    base_objects  | list<object_id: string>         | null

It is a Lance table, `{root}/__manifest`, without the usual suffix. Every change is an Overwrite of all rows, based on
the version that was read. It is never rebased, because that would discard a concurrent Append. pylance and LanceDB
change the table in the same way. Unknown columns are preserved, and so are settings of the table, which store objects:
see `catalog_objects`. The same Overwrite changes rows and settings.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from lance_duck.commit import commit
from lance_duck.commit.operations import Overwrite, UpdateConfig, UpdateMap
from lance_duck.dataset import LanceDataset, dataset
from lance_duck.errors import AlreadyExistsError, CommitConflictError, CorruptError, NotFoundError, RetryableError
from lance_duck.namespaces.names import NAMESPACE
from lance_duck.retry import RetryPolicy
from lance_duck.snapshot import Location, Snapshot
from lance_duck.store import join_uri, local_path
from lance_duck.verbs.pending_changes import PreparedChange
from lance_duck.verbs.writing.settings import WriteSettings
from lance_duck.verbs.writing.staged import StagedRows, commit_created, stage_new
from lance_duck.wire.paths import VERSIONS
from lance_duck.write.inputs import reading

FOLDER: Final = "__manifest"
RETRIES: Final = 30
"""Maximum number of attempts of an Overwrite. After a lost race, the rows are read again, which takes about 10
ms because there are few rows.
"""
_SAME_TIME: Final = 100_000_000
"""Age in nanoseconds below which a folder may change again without a new modification time."""

_KEY: Final = {"lance-schema:unenforced-primary-key:position": "0"}
SCHEMA: Final = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata=_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)


@dataclass(frozen=True)
class NamedObject:
    """A row of `__manifest`: a namespace or a table.

    Attributes:
        object_id: Name of the object.
        object_type: "namespace" or "table".
        location: Folder of a table, relative to the root. None for namespaces.
        metadata: Properties as JSON, or None.
    """

    object_id: str
    object_type: str
    location: str | None = None
    metadata: str | None = None

    @classmethod
    def of_namespace(cls, object_id: str, properties: Mapping[str, str] | None) -> NamedObject:
        """Return the row of a namespace with properties."""
        return cls(object_id, NAMESPACE, None, json.dumps(dict(properties)) if properties else None)

    def properties(self) -> dict[str, str]:
        """Return the properties, strings by name. Raises CorruptError."""
        return {str(name): str(value) for name, value in self.metadata_values().items()}

    def metadata_values(self) -> dict[str, Any]:
        """Return the properties as stored. Raises CorruptError."""
        try:
            properties = json.loads(self.metadata) if self.metadata else {}
        except (ValueError, RecursionError) as error:
            raise CorruptError("the row metadata are not JSON", where=self.object_id, found=self.metadata) from error
        if not isinstance(properties, dict):
            raise CorruptError(
                "invalid row metadata", where=self.object_id, expected="a JSON object", found=self.metadata
            )
        return properties

    def row(self, schema: pa.Schema) -> pa.Table:
        """Return a table with the row. Unknown columns are null."""
        columns = {
            "object_id": self.object_id,
            "object_type": self.object_type,
            "location": self.location,
            "metadata": self.metadata,
        }
        return pa.Table.from_pylist([columns], schema=schema)


@dataclass(frozen=True)
class ListedNames:
    """The content of one version of `__manifest`.

    Attributes:
        rows: The rows by object id. Rows without a name are skipped.
        settings: The settings of the table. Objects are among them: see `catalog_objects`.
    """

    rows: Mapping[str, NamedObject] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ListingChange:
    """A change of `__manifest`.

    Attributes:
        removed: Object ids of rows to remove.
        added: Rows to add.
        settings: New values of settings, by key. A setting cannot be removed.
    """

    removed: Collection[str] = ()
    added: Sequence[NamedObject] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.settings)


class Listing:
    """The table `__manifest` of one folder.

    Args:
        root: URI of the folder.
        storage_options: Settings of the folder's store.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.uri = join_uri(root, FOLDER)
        self._options = storage_options

    def objects(self) -> Mapping[str, NamedObject]:
        """Return the rows by object id, or an empty dict if `__manifest` does not exist: see `names`."""
        return self.names().rows

    def names(self) -> ListedNames:
        """Return the rows and settings of the newest version. They are empty if `__manifest` does not exist.

        Raises:
            CorruptError: The table does not have the required columns.
        """
        table = self._open()
        return ListedNames() if table is None else self._names(table, table.scan().to_reader().read_all())

    def snapshot(self) -> Snapshot | None:
        """Return the newest version of the table, or None if it does not exist."""
        table = self._open()
        return None if table is None else table.handle.snapshot

    def stamp(self) -> object:
        """Return a value that changes with the newest version: see `Namespace.stamp`."""
        path = local_path(join_uri(self.uri, VERSIONS))
        if path is None:
            return None
        try:
            changed = os.stat(path).st_mtime_ns
        except OSError:
            return 0
        return changed if time.time_ns() - changed > _SAME_TIME else None

    def change(self, edit: Callable[[ListedNames], ListingChange]) -> None:
        """Change rows and settings as one version. An empty change does not make a version.

        Args:
            edit: Called with the names, and again after each lost race. Returns the change, or raises an error about
                the names.

        Raises:
            CommitConflictError: All attempts conflicted with other changes.
        """
        RetryPolicy(RETRIES).run(lambda _: self._change(edit), CommitConflictError)

    def forget(self, keys: Callable[[Mapping[str, str]], list[str]]) -> int:
        """Remove settings as one version, and return their number.

        Args:
            keys: Called with the settings, and again after each lost race. Returns the keys to remove.

        Raises:
            CommitConflictError: All attempts conflicted with other changes.
        """

        def attempt(_: int) -> int:
            snapshot = self.snapshot()
            gone = [] if snapshot is None else keys(snapshot.config)
            if snapshot is not None and gone:
                commit(snapshot, UpdateConfig(config_updates=UpdateMap(dict.fromkeys(gone))), retries=0)
            return len(gone)

        return RetryPolicy(RETRIES).run(attempt, CommitConflictError)

    def prepare(self, edit: Callable[[ListedNames], ListingChange]) -> PreparedChange | None:
        """Write the rows of a change that is committed later, directly after the newest version.

        Creates the table if it does not exist.

        Args:
            edit: See `change`.

        Returns:
            The change. None if it is empty.
        """
        table = self._open()
        if table is None:
            with suppress(RetryableError):
                self._create(self._staged(SCHEMA.empty_table(), None), self._settings, {})
            table = dataset(self.uri, storage_options=self._options)
        rows = table.scan().to_reader().read_all()
        change = edit(self._names(table, rows))
        if not change:
            return None
        snapshot = table.handle.snapshot
        staged = self._staged(_changed(rows, change), snapshot)
        return PreparedChange(snapshot, Overwrite(staged.schema, staged.fragments, change.settings), retries=0)

    def _change(self, edit: Callable[[ListedNames], ListingChange]) -> None:
        table = self._open()
        rows = SCHEMA.empty_table() if table is None else table.scan().to_reader().read_all()
        change = edit(ListedNames() if table is None else self._names(table, rows))
        if not change:
            return
        snapshot = None if table is None else table.handle.snapshot
        staged = self._staged(_changed(rows, change), snapshot)
        if snapshot is None:
            self._create(staged, self._settings, change.settings)
            return
        operation = Overwrite(staged.schema, staged.fragments, change.settings)
        staged.commit(lambda uuid: commit(snapshot, operation, retries=0, transaction_uuid=uuid))

    @property
    def _settings(self) -> WriteSettings:
        return WriteSettings(storage_options=self._options)

    def _staged(self, rows: pa.Table, snapshot: Snapshot | None) -> StagedRows:
        with reading(rows) as reader:
            return stage_new(reader, Location.of(self.uri, self._options), {}, self._settings, snapshot)

    def _create(self, staged: StagedRows, settings: WriteSettings, config: Mapping[str, str]) -> None:
        try:
            commit_created(staged, settings, config=config)
        except AlreadyExistsError as error:
            raise RetryableError("another writer made it", where=self.uri) from error

    def _open(self) -> LanceDataset | None:
        try:
            return dataset(self.uri, storage_options=self._options)
        except NotFoundError:
            return None

    def _names(self, table: LanceDataset, rows: pa.Table) -> ListedNames:
        columns = [field.name for field in SCHEMA][:4]
        if not set(columns) <= set(rows.schema.names):
            raise CorruptError("wrong columns", where=self.uri, expected=", ".join(columns), found=rows.schema.names)
        named = (NamedObject(**row) for row in rows.select(columns).to_pylist() if row["object_id"])
        return ListedNames({each.object_id: each for each in named}, table.handle.snapshot.config)


def _changed(rows: pa.Table, change: ListingChange) -> pa.Table:
    """Return the rows after a change."""
    keep = [object_id not in change.removed for object_id in rows["object_id"].to_pylist()]
    added = [each.row(rows.schema) for each in change.added]
    return pa.concat_tables([rows.filter(pa.array(keep, pa.bool_())), *added])
