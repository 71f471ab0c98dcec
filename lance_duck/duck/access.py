"""Applies DuckDB's settings enable_external_access, allowed_directories and allowed_paths to Lance tables.

    SET allowed_directories = ['/data'];  SET enable_external_access = false

Afterwards, statements can only access tables in the connected folders and in `/data`. DuckDB does not extend the
allowed locations while it runs. The restrictions therefore stay in effect. Confined connections (`confinement`) only
access the connected folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final

import duckdb

from lance_duck.duck.confinement import outside
from lance_duck.errors import InvalidInputError
from lance_duck.redact import shown
from lance_duck.store import local_path
from lance_duck.store.uri import object_place

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

    Attributes:
        is_confined: Whether the connections are confined to the connected folders and tables.
        log_rows: Which rows of write-ahead logs statements read: "flushed", "fresh", or None.
    """

    is_confined = False
    log_rows: str | None = None

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
            ConfinedError: The connection is confined, and the location is outside the connected folders.
            duckdb.PermissionException: The location is outside the connected folders, and DuckDB's settings do not
            allow it.
        """
        if any(_is_within(uri, root) for root in self._roots()):
            return
        if self.is_confined:
            raise outside(uri)
        if self.is_open or any(_is_within(uri, root) for roots in self._setting(_ALLOWED) for root in roots or ()):
            return
        raise duckdb.PermissionException(
            f'Permission Error: Cannot access file "{shown(uri)}" - '
            "file system operations are disabled by configuration"
        )

    def check_secret(self, scope: str) -> None:
        """Check that statements may create a secret for a location. Its endpoint may be any service.

        Raises:
            ConfinedError: The connection is confined.
            duckdb.PermissionException: See `check`.
        """
        if self.is_confined:
            raise outside(scope)
        self.check(scope)

    @property
    def is_open(self) -> bool:
        """Whether statements may access all locations."""
        if self.is_confined:
            return False
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
    """Return whether a location is a folder or below it. Resolves symbolic links of local paths only.

    Both are compared in the form in which the stores open them. Invalid locations are not within any folder.
    """
    try:
        path, folder = local_path(uri), local_path(root)
        if path is not None and folder is not None:
            return _begins(os.path.realpath(path), os.path.realpath(folder), os.sep)
        if path is not None or folder is not None:
            return False
        (bucket, names), (root_bucket, root_names) = object_place(uri), object_place(root)
    except (InvalidInputError, ValueError):
        return False
    return bucket == root_bucket and names[: len(root_names)] == root_names and not {".", ".."} & {*names}


def _begins(path: str, folder: str, separator: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith(separator) else folder + separator)
