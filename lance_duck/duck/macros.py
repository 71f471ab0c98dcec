"""The SQL files that every connection loads, and the parameter types of the functions that their macros call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import duckdb

_TEMPORARY = "CREATE OR REPLACE TEMP MACRO"
_LASTING = "CREATE OR REPLACE MACRO"
_MACROS = "macros"
_HISTORY = "history"

SEARCH_TYPES: Final[list[Any]] = [
    *("VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "BIGINT", "BIGINT", "BIGINT"),
    *("VARCHAR", "BOOLEAN", "VARCHAR", "BOOLEAN", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "DOUBLE", "VARCHAR"),
]
TEXT_TYPES: Final[list[Any]] = [
    *("VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "BOOLEAN", "VARCHAR"),
    *("VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR"),
]
HYBRID_TYPES: Final[list[Any]] = [
    *("VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "DOUBLE", "BIGINT", "VARCHAR"),
    *("BIGINT", "BIGINT", "BIGINT", "VARCHAR", "BOOLEAN", "BOOLEAN", "VARCHAR", "VARCHAR[]", "DOUBLE", "VARCHAR"),
]
HISTORY_TYPES: Final[list[Any]] = ["VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR[]", "VARCHAR[]", "VARCHAR"]


def load_macros(connection: duckdb.DuckDBPyConnection, *, for_all_cursors: bool = False) -> None:
    """Create the macros of sql/macros on a connection.

    Args:
        connection: Connection with the functions that the macros call.
        for_all_cursors: Whether to create the macros in the current database, where all cursors can use them.
            Otherwise, only this session can use them.
    """
    _load(connection.execute, _MACROS, for_all_cursors=for_all_cursors)


def load_history(run: Callable[[str], object], *, for_all_cursors: bool = False) -> None:
    """Create the macros of sql/history. They are created on demand, because they would slow down opening a connection.

    Args:
        run: Runs statements on a connection. It must have the functions that the macros call.
        for_all_cursors: See `load_macros`.
    """
    _load(run, _HISTORY, for_all_cursors=for_all_cursors)


def _load(run: Callable[[str], object], folder: str, *, for_all_cursors: bool) -> None:
    text = macro_text(folder)
    run(text.replace(_TEMPORARY, _LASTING) if for_all_cursors else text)


@cache
def macro_text(folder: str) -> str:
    """Return the statements of all files in a subfolder of sql, in file name order."""
    files = [file for file in _folder().joinpath(folder).iterdir() if file.name.endswith(".sql")]
    return "".join(file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name))


def _folder() -> Traversable:
    """Return the SQL folder: inside an installed package, or next to it in a source tree."""
    packaged = resources.files("lance_duck.duck").joinpath("sql")
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "sql"
