"""The location of a new table: checks of its name, its schema and the folder at the location."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.databases.database_schema import DatabaseSchema, check_table_name
from lance_duck.duck.statement.clauses import TableName
from lance_duck.errors import AlreadyExistsError, UnsupportedError
from lance_duck.namespaces.names import TABLE, check_new
from lance_duck.store import local_path
from lance_duck.wire.paths import FOLDERS, VERSIONS


def place_of(session: ChangeSession, name: TableName) -> tuple[str, Mapping[str, str] | None]:
    """Return the existing or future location of a named table, and the settings of its store.

    Raises:
        UnsupportedError: No folder is connected.
    """
    session.refuse_in_transaction("CREATE TABLE")
    if name.path is not None:
        return name.path, session.catalog.options_for(name.path)
    schema = session.schema_of_new(name)
    check_has_folder(name, schema)
    assert schema is not None
    assert schema.folder is not None
    present = schema.find(name.name)
    if present is not None:  # the name may differ in case
        return present.uri, present.storage_options
    return schema.folder.place_of_new(name.name)


def check_has_folder(name: TableName, schema: DatabaseSchema | None) -> None:
    """Check that a table can be created in a schema, and that it can have its name.

    Raises:
        UnsupportedError: No folder is connected.
        InvalidInputError: The name is not valid.
    """
    if schema is None or schema.folder is None:
        raise UnsupportedError(
            "the connection does not have a folder for new tables",
            where=name.name,
            remedy="open lance_duck.connect(folder), ATTACH a folder, or name a path: CREATE TABLE 'x.lance'",
        )
    check_table_name(name.name)
    if schema.folder.parts:
        check_new((*schema.folder.parts, name.name), TABLE)


def check_place(uri: str) -> None:
    """Reject a new table at the path of a file, or in a folder with files that DROP TABLE would delete.

    Raises:
        AlreadyExistsError: The location is in use.
    """
    path = local_path(uri)
    if path is None or not os.path.exists(path):
        return
    if not os.path.isdir(path):
        raise AlreadyExistsError(
            "a file already has this path", where=uri, remedy="choose another name, or remove the file"
        )
    entries = {name for name in os.listdir(path) if not name.startswith(".")}
    others = sorted(entries - FOLDERS)
    if others and VERSIONS not in entries:
        raise AlreadyExistsError(
            "the folder of the new table contains other files",
            where=uri,
            found=", ".join(others[:5]),
            remedy="choose another name, or remove the folder",
        )
