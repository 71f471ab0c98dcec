"""Statements again with 64-bit offsets, if DuckDB cannot give their rows to Arrow with 32-bit ones.

One batch of DuckDB's holds more than 2 GiB of strings only if these are very long. So offsets are not wide from the
beginning, which would make every batch be cast.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import duckdb

from lance_duck.errors import LanceDuckError

_T = TypeVar("_T")

_SETTING: Final = "arrow_large_buffer_size"


def run_with_wide_offsets(native: duckdb.DuckDBPyConnection, run: Callable[[bool], _T]) -> _T:
    """Run a function that asks DuckDB for Arrow data; once again, with wide offsets, if narrow ones overflow.

    Args:
        native: The connection, whose setting is restored.
        run: Takes whether offsets are wide. It leaves nothing behind when it fails.

    Raises:
        Exception: Those of the function; the first one if the setting cannot be changed.
    """
    try:
        return run(False)
    except (duckdb.Error, LanceDuckError, OSError) as error:
        if _SETTING not in str(error) or not _set(native, True):
            raise
    try:
        return run(True)
    finally:
        _set(native, False)


def _set(native: duckdb.DuckDBPyConnection, is_wide: bool) -> bool:
    """Return whether the setting could be changed: it cannot in a transaction that has failed, or if it is locked."""
    with suppress(duckdb.Error):
        native.execute(f"SET {_SETTING} = {is_wide}")
        return True
    return False
