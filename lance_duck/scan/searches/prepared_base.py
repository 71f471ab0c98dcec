"""Base class of prepared searches and filters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar
from weakref import WeakSet

from lance_duck.errors import InvalidInputError
from lance_duck.forks import Lock
from lance_duck.redact import shown
from lance_duck.scan.table_scan import HasTable, TableScan

_ALIVE: Final[WeakSet[Prepared[Any]]] = WeakSet()
_ALIVE_LOCK: Final = Lock()


class _OfVersion(Protocol):
    """The part that depends on the version of the table."""

    @property
    def table(self) -> TableScan: ...

    @property
    def nbytes(self) -> int: ...


_V = TypeVar("_V", bound=_OfVersion)


class Prepared(ABC, Generic[_V]):
    """A search or filter that is prepared once, and again for each new version of a dataset, until it is closed.

    Args:
        handle: The dataset.
        what: What is prepared, for messages.
        where: Name of the method that prepares it.
    """

    def __init__(self, handle: HasTable, what: str, where: str) -> None:
        self._handle: HasTable | None = handle
        self._what = what
        self._where = where
        self._uri = handle.table.snapshot.uri
        self._current: _V | None = None

    @abstractmethod
    def _made(self, table: TableScan) -> _V:
        """Prepare for a version."""

    def _start(self) -> None:
        """Prepare for the first time, which raises the errors of the arguments."""
        self._version()
        with _ALIVE_LOCK:
            _ALIVE.add(self)

    def _version(self) -> _V:
        """Return what is prepared for the version that the dataset has now."""
        handle, current = self._handle, self._current
        if handle is None:
            raise InvalidInputError("it is closed", where=self._where)
        if current is None or current.table is not handle.table:
            current = self._current = self._made(handle.table)
        return current

    @property
    def nbytes(self) -> int:
        """Size of the open index and of the row addresses that the object refers to, in bytes."""
        current = self._current
        return 0 if current is None else current.nbytes

    def belongs_to(self, handle: HasTable) -> bool:
        """Return whether the object is open, and reads the versions of a handle."""
        return self._handle is handle

    def close(self) -> None:
        """Release the memory. The object cannot be used any more."""
        self._handle = self._current = None

    def __enter__(self) -> Self:
        """Return the object."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the object."""
        self.close()

    def __repr__(self) -> str:
        """Return a short description."""
        state = ", closed" if self._handle is None else f" of {self._what} in {shown(self._uri)}"
        return f"<{type(self).__name__}{state}>"


def prepared_bytes(handle: HasTable) -> int:
    """Return the total size that the prepared searches of a dataset refer to, in bytes: see `nbytes`."""
    with _ALIVE_LOCK:
        searches = list(_ALIVE)
    return sum(each.nbytes for each in searches if each.belongs_to(handle))
