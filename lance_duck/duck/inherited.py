"""Rules for the use and release of DuckDB databases in a forked child."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any, Final
from weakref import WeakSet

import duckdb

from lance_duck import forks
from lance_duck.duck.changes.result import HeldResult
from lance_duck.duck.failures import raise_own


class Inherited:
    """A database, and whether this process may use it. Shared by all connections to the database.

    A forked child can use its copy of an in-memory database. Queries then run on the calling thread. It cannot use a
    database file, because both processes would change the file. It also cannot use a database that another thread was
    using during the fork, because the locks are never released.

    Args:
        file: Database file. Omitted for in-memory databases.
    """

    def __init__(self, file: str | None = None) -> None:
        self._file = file
        self._opened = forks.count()
        self._uses: list[None] = []
        self._is_checked = True
        _DATABASES.add(self)

    def use(self) -> Inherited:
        """Return a context manager for using the database.

        Raises:
            ForkedError: On entry, if a parent process opened the database and this process cannot use it.
        """
        return self

    def begun(self) -> list[None]:
        """Begin to use the database, like `use` but cheaper. To end the use, call `pop` on the returned list.

        A child that is forked in between can then detect that the database was in use.

        Raises the same errors as `use`.
        """
        if not self._is_checked:
            self._take_over()
        self._uses.append(None)
        return self._uses

    def __enter__(self) -> None:
        self.begun()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._uses.pop()

    @property
    def is_own(self) -> bool:
        """Whether this process opened the database.

        Other processes must not close it, because they would wait for missing threads.
        """
        return self._opened == forks.count()

    def _take_over(self) -> None:
        if self._file is not None or self._uses:
            what = "was in use when this process was forked off" if self._uses else "belongs to the parent process"
            where = f"database {self._file or ':memory:'}"
            forks.check_not_forked(self._opened, f"the connection {what}", where, remedy="connect again in the child")
        self._is_checked = True

    def forked(self) -> None:
        """Require a check at the next use whether this forked child may use the database."""
        self._is_checked = False


def guarded(method: Callable[..., Any], inherited: Inherited, count: HeldResult | None = None) -> Callable[..., Any]:
    """Wrap a method so that it raises lance_duck errors unchanged, even if rows are only read when fetched.

    Args:
        method: DuckDB's method.
        inherited: The database.
        count: Held result. While it exists, rows are fetched from it instead.
    """

    @wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        uses = inherited.begun()
        try:
            if count is not None and count.is_held:
                return count.fetched(method.__name__, method, args, options)
            return method(*args, **options)
        except duckdb.Error as error:
            raise_own(error)
            raise
        finally:
            uses.pop()

    return call


def leave_to_children(native: Any) -> None:
    """Keep a connection open in forked children until they exit.

    Closing its database would wait for missing threads.
    """
    _NATIVE.add(native)


_NATIVE: Final[WeakSet[Any]] = WeakSet()
_DATABASES: Final[WeakSet[Inherited]] = WeakSet()


def _leave_alone() -> None:
    for native in list(_NATIVE):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(native))
    for database in list(_DATABASES):
        database.forked()


forks.after_fork(_leave_alone)
