"""Repeats statements with 64-bit offsets if their data exceeds Arrow's 32-bit offsets.

A batch only contains more than 2 GiB of strings if they are very long. Wide offsets are not the default, because every
batch would then have to be cast. Streams of DuckDB 1.x always have them, because an overflow would end the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

import duckdb

from lance_duck.errors import LanceDuckError

_T = TypeVar("_T")

_SETTING: Final = "arrow_large_buffer_size"
_RAISES: Final = not duckdb.__version__.startswith("1.")


def run_with_wide_offsets(native: duckdb.DuckDBPyConnection, run: Callable[[bool], _T]) -> _T:
    """Run a function that reads Arrow data from DuckDB. If 32-bit offsets overflow, run it again with 64-bit offsets.

    Args:
        native: The connection, whose setting is restored.
        run: The function. Its argument is whether offsets are wide. After an error, it must not leave any data behind.

    Raises:
        Exception: Errors of the function. The first one is raised if the setting cannot be changed.
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


@contextmanager
def open_stream(native: duckdb.DuckDBPyConnection) -> Iterator[bool]:
    """Use wide offsets for a stream of Arrow batches, if narrow offsets could crash the process.

    DuckDB 1.x aborts the process when the offsets of a stream overflow. The setting is restored after the stream.

    Yields:
        Whether offsets are wide, although the user did not set them to be wide.
    """
    is_wide = not _RAISES and not _is_set_or_locked(native) and _set(native, True)
    try:
        yield is_wide
    finally:
        if is_wide:
            _set(native, False)


def _is_set_or_locked(native: duckdb.DuckDBPyConnection) -> bool:
    """Return whether the setting is set, or cannot be. An attempt to change it would then abort a transaction."""
    settings = (f"system.main.current_setting('{name}')" for name in (_SETTING, "lock_configuration"))
    rows = native.execute(f"SELECT {' OR '.join(settings)}").fetchall()
    return bool(rows[0][0])


def _set(native: duckdb.DuckDBPyConnection, is_wide: bool) -> bool:
    """Return whether the setting was changed. It cannot be changed in a failed transaction, or if it is locked."""
    with suppress(duckdb.Error):
        native.execute(f"SET {_SETTING} = {is_wide}")
        return True
    return False
