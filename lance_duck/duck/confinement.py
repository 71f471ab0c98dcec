"""Confines the SQL of a connection to the tables that the host program connected.

    ld.connect(folder, confined=True)

Three parts close the connection:

- DuckDB's settings refuse its own files, databases, extensions and Python variables. `lock` sets and locks them.
- `access.FileAccess` refuses Lance tables outside the connected folders. Every path of a statement passes it.
- `refused_error` turns DuckDB's own refusals into the error of this package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

import duckdb

from lance_duck.errors import ConfinedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.store import local_path

_LOCK: Final = (
    "SET autoinstall_known_extensions = false; SET autoload_known_extensions = false; "
    "SET enable_external_access = false; SET lock_configuration = true"
)
"""DuckDB 1 would download extensions even without external access."""
_TABLES: Final = "a connected table, by its name or by a path inside its folder"
_LOCKED: Final = re.compile(r'configuration option "(.+?)" - the configuration has been locked')
_PATH: Final = re.compile(r'Cannot access (?:file|directory) "(.+?)"')
_MISSING: Final = re.compile(
    r"Table with name ((?:(?!Table with name )[^/\\])*+[/\\](?:(?!Table with name ).)*?) does not exist!", re.DOTALL
)
"""The name contains no second begin, so that the time is linear."""
_EXTENSION: Final = re.compile(r"requires the extension \w+ to be loaded|Missing Extension Error")
_LOGGING: Final = re.compile(r"\b(?:enable|disable)_(?:logging|profiling)\b|\btruncate_duckdb_logs\b", re.IGNORECASE)
"""Functions of DuckDB 1 that change the whole database, although its settings are locked."""


def lock(native: duckdb.DuckDBPyConnection) -> None:
    """Close and lock the settings of the connection's database instance. They cannot be opened again."""
    native.execute(_LOCK)


def check_locked_functions(sql: object) -> None:
    """Check that a statement does not call a function of DuckDB 1 that changes the locked configuration.

    Raises:
        ConfinedError: The text contains the name of such a function.
    """
    found = None if SPEAKS_SOURCE or not isinstance(sql, str) else _LOGGING.search(sql)
    if found is not None:
        raise _locked(found[0])


def outside(place: str | None) -> ConfinedError:
    """Return the error for a location outside the connected folders. It does not depend on what the location has.

    Args:
        place: The location as the statement names it. None if the statement does not name it.
    """
    return ConfinedError("the connection is confined to its tables", where=place, expected=_TABLES)


def refused_error(error: duckdb.Error, statement: object) -> ConfinedError | None:
    """Return the error of this package for a refusal by DuckDB. Returns None for all other errors.

    Args:
        error: DuckDB's error.
        statement: The text that was run. The new error only repeats locations that occur in it.
    """
    message = str(error)
    if (locked := _LOCKED.search(message)) is not None:
        return _locked(locked[1])
    found = _PATH.search(message) or _MISSING.search(message)
    if found is None and not isinstance(error, duckdb.PermissionException) and not _EXTENSION.search(message):
        return None
    is_named = found is not None and isinstance(statement, str) and found[1] in statement
    return outside(found[1] if is_named and found is not None else None)


def _locked(name: str) -> ConfinedError:
    return ConfinedError(
        "the settings of a confined connection are locked",
        where=name,
        expected="a setting of lance_duck, search_path or schema",
        remedy="the host program passes other settings as connect(config=…)",
    )


def fixed_places(tables: Any) -> Any:
    """Return the argument `tables` of `connect` with absolute local paths, which a later chdir does not change."""
    if isinstance(tables, str | os.PathLike):
        return _absolute(os.fspath(tables))
    if isinstance(tables, Mapping):
        return {
            name: _absolute(os.fspath(table)) if isinstance(table, str | os.PathLike) else table
            for name, table in tables.items()
        }
    return tables


def _absolute(place: str) -> str:
    path = local_path(place) if place else None
    return place if path is None else os.path.abspath(path)
