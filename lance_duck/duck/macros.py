"""The SQL files that every connection loads."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import duckdb

_TEMPORARY = "CREATE OR REPLACE TEMP MACRO"
_LASTING = "CREATE OR REPLACE MACRO"


def load_macros(connection: duckdb.DuckDBPyConnection, *, for_all_cursors: bool = False) -> None:
    """Create the macros of sql/macros on a connection.

    Args:
        connection: Has the functions that the macros call.
        for_all_cursors: Put them into the current database, where all cursors see them, not into this session alone.
    """
    for text in macro_texts():
        connection.execute(text.replace(_TEMPORARY, _LASTING) if for_all_cursors else text)


def macro_texts() -> list[str]:
    """Return the contents of the files, in the order of their names."""
    files = [file for file in _folder().joinpath("macros").iterdir() if file.name.endswith(".sql")]
    return [file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name)]


def _folder() -> Traversable:
    """Return the SQL folder: inside the package when it is installed, beside it in a source tree."""
    packaged = resources.files("lance_duck.duck").joinpath("sql")
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "sql"
