"""Requests of other threads to stop a statement, which its thread checks between steps.

    with interrupt: …              the thread of the statement
    interrupt.request()            another thread
    interrupts.check()             long loops of the statement
    interrupts.check_last()        directly before a change is published

Requests after `check_last` have no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar, Token
from typing import Final


class Stopped(Exception):  # noqa: N818
    """Another thread has asked the statement to stop, before it published a change. `Interrupt` replaces this error."""


class Interrupt:
    """A request to stop the statement of one connection.

    Args:
        error: Returns the error that the statement raises in place of `Stopped`.

    Attributes:
        is_requested: Whether the running statement is asked to stop.
        is_final: Whether the running statement publishes its change, and does not stop any more.
    """

    def __init__(self, error: Callable[[], Exception]) -> None:
        self.error = error
        self.is_requested = False
        self.is_final = False
        self._tokens: list[Token[Interrupt | None]] = []

    def request(self) -> None:
        """Ask the running statement to stop. A later statement is not affected."""
        if self._tokens:
            self.is_requested = True

    def __enter__(self) -> None:
        """Begin a statement. Statements may be nested."""
        if not self._tokens:
            self.is_requested = self.is_final = False
        self._tokens.append(_CURRENT.set(self))

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """End the statement. If it failed because of the request, raise the error of the request."""
        token = self._tokens.pop()
        with suppress(ValueError):  # after Ctrl-C, a statement may end in a different context
            _CURRENT.reset(token)
        is_stopped = self.is_requested and not self.is_final and isinstance(error, Exception)
        if is_stopped and not isinstance(error, type(stopped := self.error())):
            raise stopped from error


_CURRENT: Final[ContextVar[Interrupt | None]] = ContextVar("lance_duck_interrupt", default=None)


def check() -> None:
    """Raise Stopped if another thread has asked the statement of this thread to stop."""
    current = _CURRENT.get()
    if current is not None and current.is_requested and not current.is_final:
        raise Stopped


def check_last() -> None:
    """Like `check`, before the step that publishes a change. From then on, the statement does not stop."""
    check()
    current = _CURRENT.get()
    if current is not None:
        current.is_final = True
