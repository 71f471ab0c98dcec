"""The table `__manifest`. It lists names of tables and namespaces that folder names cannot express.

    column        | type, nulls                     | content
    object_id     | string, none                    | parts of the name, "$" between them; unenforced primary key
    object_type   | string, none                    | "namespace" or "table"
    location      | string                          | folder of a table, relative to the root
    metadata      | string                          | JSON object of properties
    base_objects  | list<object_id: string>         | null

It is a Lance table, `{root}/__manifest`, without the usual suffix. Every change is an Overwrite of all rows, based on
the version that was read. It is never rebased, because that would discard a concurrent Append. pylance and LanceDB
change the table in the same way. Unknown columns are preserved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset, dataset
from lance_duck.errors import AlreadyExistsError, CommitConflictError, CorruptError, NotFoundError, RetryableError
from lance_duck.fragment import write_fragments
from lance_duck.namespaces.names import NAMESPACE
from lance_duck.retry import RetryPolicy
from lance_duck.store import join_uri
from lance_duck.write_dataset import write_dataset

FOLDER: Final = "__manifest"
RETRIES: Final = 30
"""Maximum number of attempts of an Overwrite. After a lost race, the rows are read again, which takes about 10
ms because there are few rows.
"""

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
        try:
            properties = json.loads(self.metadata) if self.metadata else {}
        except (ValueError, RecursionError) as error:
            raise CorruptError("the row metadata are not JSON", where=self.object_id, found=self.metadata) from error
        if not isinstance(properties, dict):
            raise CorruptError(
                "invalid row metadata", where=self.object_id, expected="a JSON object", found=self.metadata
            )
        return {str(name): str(value) for name, value in properties.items()}

    def row(self, schema: pa.Schema) -> pa.Table:
        """Return a table with the row. Unknown columns are null."""
        columns = {
            "object_id": self.object_id,
            "object_type": self.object_type,
            "location": self.location,
            "metadata": self.metadata,
        }
        return pa.Table.from_pylist([columns], schema=schema)


class Listing:
    """The rows of `__manifest` in one folder.

    Args:
        root: URI of the folder.
        storage_options: Settings of the folder's store.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.uri = join_uri(root, FOLDER)
        self._options = storage_options

    def objects(self) -> dict[str, NamedObject]:
        """Return the rows by object id, or an empty dict if `__manifest` does not exist.

        Rows without a name are skipped.

        Raises:
            CorruptError: The table does not have the required columns.
        """
        table = self._open()
        return {} if table is None else self._objects(table.to_table())

    def change(self, edit: Callable[[dict[str, NamedObject]], tuple[list[str], list[NamedObject]]]) -> None:
        """Change the rows as one version.

        Args:
            edit: Called with the rows, and again after each lost race. Returns (object ids of rows to remove, rows to
                add), or raises an error about the rows.

        Raises:
            CommitConflictError: All attempts conflicted with other changes.
        """
        RetryPolicy(RETRIES).run(lambda _: self._change(edit), CommitConflictError)

    def _change(self, edit: Callable[[dict[str, NamedObject]], tuple[list[str], list[NamedObject]]]) -> None:
        table = self._open()
        rows = SCHEMA.empty_table() if table is None else table.to_table()
        gone, new = edit(self._objects(rows))
        keep = [object_id not in gone for object_id in rows["object_id"].to_pylist()]
        schema = SCHEMA if table is None else table.schema
        after = pa.concat_tables([rows.filter(pa.array(keep, pa.bool_())), *(each.row(schema) for each in new)])
        if table is None:
            self._create(after)
            return
        transaction: Any = write_fragments(
            after, self.uri, mode="overwrite", return_transaction=True, storage_options=self._options
        )
        LanceDataset.commit(
            self.uri, transaction.operation, table.version, storage_options=self._options, max_retries=0
        )

    def _create(self, rows: pa.Table) -> None:
        try:
            write_dataset(rows, self.uri, storage_options=self._options)
        except AlreadyExistsError as error:
            raise RetryableError("another writer made it", where=self.uri) from error

    def _open(self) -> LanceDataset | None:
        try:
            return dataset(self.uri, storage_options=self._options)
        except NotFoundError:
            return None

    def _objects(self, rows: pa.Table) -> dict[str, NamedObject]:
        names = [field.name for field in SCHEMA][:4]
        if not set(names) <= set(rows.schema.names):
            raise CorruptError("wrong columns", where=self.uri, expected=", ".join(names), found=rows.schema.names)
        return {
            row["object_id"]: NamedObject(row["object_id"], row["object_type"], row["location"], row["metadata"])
            for row in rows.select(names).to_pylist()
            if row["object_id"]
        }
