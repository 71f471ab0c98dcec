"""Applies DuckDB's settings enable_external_access, allowed_directories and allowed_paths to Lance tables.

    SET allowed_directories = ['/data'];  SET enable_external_access = false

Afterwards, statements can only access tables in the connected folders and in `/data`. DuckDB does not extend the
allowed locations while it runs. The restrictions therefore stay in effect.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

import duckdb

from lance_duck.redact import shown
from lance_duck.store import local_path

_IS_OPEN: Final = "SELECT system.main.current_setting('enable_external_access')"
_ALLOWED: Final = (
    "SELECT system.main.current_setting('allowed_directories'), system.main.current_setting('allowed_paths')"
)
_ANSWER: Final[ContextVar[dict[FileAccess, bool] | None]] = ContextVar("lance_duck_external_access", default=None)
"""DuckDB's decisions during the running statement. None outside statements."""


class FileAccess:
    """The locations that statements on one database instance may access.

    Args:
        cursor: Returns a cursor on the instance, which is closed afterwards.
        roots: Returns the locations of the connected folders and tables.
    """

    def __init__(
        self,
        cursor: Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]],
        roots: Callable[[], Iterable[str]],
    ) -> None:
        self._cursor = cursor
        self._roots = roots

    def check(self, uri: str) -> None:
        """Check that statements may access a location.

        Raises:
            duckdb.PermissionException: The location is outside the connected folders, and DuckDB's settings do not
            allow it.
        """
        if any(_is_within(uri, root) for root in self._roots()):
            return
        if self.is_open or any(_is_within(uri, root) for roots in self._setting(_ALLOWED) for root in roots or ()):
            return
        raise duckdb.PermissionException(
            f'Permission Error: Cannot access file "{shown(uri)}" - '
            "file system operations are disabled by configuration"
        )

    @property
    def is_open(self) -> bool:
        """Whether statements may access all locations."""
        answers = _ANSWER.get()
        if answers is None:
            return bool(self._setting(_IS_OPEN)[0])
        if self not in answers:
            answers[self] = bool(self._setting(_IS_OPEN)[0])
        return answers[self]

    def _setting(self, query: str) -> tuple[Any, ...]:
        with self._cursor() as cursor:
            settings: tuple[Any, ...] = cursor.execute(query).fetchall()[0]
            return settings


@contextmanager
def during_statement() -> Iterator[None]:
    """Ask DuckDB at most once for each database instance, while this thread runs one statement."""
    token = _ANSWER.set({})
    try:
        yield
    finally:
        with suppress(ValueError):  # after Ctrl-C before the body, the generator is closed in a different context
            _ANSWER.reset(token)


def _is_within(uri: str, root: str) -> bool:
    """Return whether a location is a folder or below it. Resolves symbolic links of local paths only."""
    path, folder = local_path(uri), local_path(root)
    if path is not None and folder is not None:
        return _begins(os.path.realpath(path), os.path.realpath(folder), os.sep)
    return path is folder is None and ".." not in uri.split("/") and _begins(uri, root.rstrip("/"), "/")


def _begins(path: str, folder: str, separator: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith(separator) else folder + separator)
