"""State that a forked child must recreate. A fork copies all memory, but only the calling thread.

In the child, a lock that another thread held remains locked forever, and work by another thread never completes.
The function `count()` returns the number of forks between the first process and this process. The classes `Lock` and
`RLock` are unlocked in a child, even if a thread of the parent held them. The function `after_fork` registers functions
that repair a library's state.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import Any, Final

from lance_duck.errors import ForkedError

_PACKAGE: Final = __name__.partition(".")[0]

_count = 0
_renewing = threading.Lock()


def count() -> int:
    """Return the number of forks since the package was imported. It is 0 in the process that imported the package."""
    return _count


def after_fork(do: Callable[[], None]) -> None:
    """Run a function in each forked child before any other code of this package."""
    if hasattr(os, "register_at_fork"):  # does not exist on Windows
        os.register_at_fork(after_in_child=do)


def hold_over_forks(lock: Any) -> None:
    """Make forks wait for a library's re-entrant lock. In the child, the lock is free and its data is consistent."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def check_not_forked(born: int, what: str, where: object = None, *, remedy: str) -> None:
    """Check that work began in this process, not in a process from which it was forked.

    Args:
        born: Value of `count()` when the work began.
        what: The work that cannot continue.
        where: The file or object concerned, for the message.
        remedy: A suggestion for the caller.

    Raises:
        ForkedError: The work began before a fork.
    """
    if born != _count:
        raise ForkedError(what, where=where, remedy=remedy)


class Lock:
    """A `threading.Lock` for `with` statements. It is unlocked in a forked child.

    Attributes:
        was_held: Whether a thread of the parent held the lock during the fork. The guarded data may then be
            inconsistent. The code that repairs the data sets this to False.
    """

    __slots__ = ("_born", "_inner", "was_held")

    _make: Callable[[], Any] = staticmethod(threading.Lock)

    def __init__(self) -> None:
        self._inner = self._make()
        self._born = _count
        self.was_held = False

    def __enter__(self) -> None:
        if self._born != _count:
            with _renewing:
                if self._born != _count:
                    self.was_held |= not self._inner.acquire(blocking=False)
                    self._inner = self._make()
                    self._born = _count
        self._inner.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._inner.release()


class RLock(Lock):
    """A `threading.RLock` for `with` statements. It is unlocked in a forked child."""

    __slots__ = ()

    _make = staticmethod(threading.RLock)


def _begin_child() -> None:
    global _count, _renewing
    _count += 1
    _renewing = threading.Lock()
    if sys.version_info < (3, 12):
        _open_cached_properties()


def _open_cached_properties() -> None:
    """Unlock the locks of cached properties. Until Python 3.11, each property has a lock for its computation."""
    modules = [module for name, module in sys.modules.copy().items() if name.partition(".")[0] == _PACKAGE]
    for class_ in {each for module in modules for each in vars(module).values() if isinstance(each, type)}:
        for member in vars(class_).values():
            if isinstance(member, cached_property):
                member.lock = threading.RLock()  # type: ignore[attr-defined]


after_fork(_begin_child)
