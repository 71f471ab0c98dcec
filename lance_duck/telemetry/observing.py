"""Passes requests, statements, searches and commits to an observer, if one is connected.

Without one, they cost two calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol

from lance_duck.redact import shown

_NOTHING: Final[AbstractContextManager[None]] = nullcontext()


class Work(NamedTuple):
    """A statement, search or commit that an observer sees.

    Attributes:
        operation: Name of the operation, such as "SELECT".
        collection: Name of the table, or "" if it is unknown.
        namespace: Folder of the table without secrets, or "".
        text: Text of the statement without values, or "".
    """

    operation: str
    collection: str = ""
    namespace: str = ""
    text: str = ""


class ServedRequest(NamedTuple):
    """A request to a server, as an observer sees it.

    Attributes:
        method: A known HTTP method, or "_OTHER".
        path: Path without the query.
        scheme: "http" or "https".
        headers: Headers, with names in lower case.
    """

    method: str
    path: str
    scheme: str
    headers: Mapping[str, str]


class Observer(Protocol):
    """What sees each request, statement, search and commit."""

    def begin(self, work: Work) -> Any:
        """Return a mark that `end` gets. Never raises."""

    def leave(self, mark: Any) -> None:
        """See that later operations of this thread are no part of this one. Called on its thread. Never raises."""

    def end(self, work: Work, mark: Any, error: BaseException | None, seconds: float) -> None:
        """See the end of an operation, after `leave`, on any thread. Never raises."""

    def begin_request(self, request: ServedRequest) -> Any:
        """Return a mark that `end_request` gets. Never raises."""

    def end_request(self, mark: Any, route: str, status: int, error: BaseException | None) -> None:
        """See the end of an answer, in the context of `begin_request`. Never raises.

        Args:
            mark: The mark.
            route: Pattern of the path, or "" for an unknown path.
            status: HTTP status, or 0 without an answer.
            error: Why the request failed.
        """


_observer: Observer | None = None
_with_text = False


def connect(observer: Observer | None, *, with_text: bool = False) -> None:
    """Connect an observer in place of the current one. None disconnects it.

    Args:
        observer: The observer.
        with_text: Whether it gets the texts of statements.
    """
    global _observer, _with_text
    _observer, _with_text = observer, with_text


def wants_text() -> bool:
    """Return whether the observer gets the texts of statements."""
    return _with_text


def is_observed() -> bool:
    """Return whether an observer is connected."""
    return _observer is not None


def observed(operation: str, uri: str = "") -> AbstractContextManager[None]:
    """Return a context for a search or a commit.

    Args:
        operation: See `Work`.
        uri: URI of the table.
    """
    return _NOTHING if _observer is None else Observed(_observer, Work(operation, *_named(uri)))


def statement(work: Work) -> Observed | None:
    """Begin to observe a statement. Returns None without an observer."""
    return None if _observer is None else Observed(_observer, work).begun()


class ObservedRequest:
    """A request to a server. Operations belong to it that run in the same context until its end."""

    def __init__(self, request: ServedRequest) -> None:
        self._observer = _observer
        self._mark = None if _observer is None else _observer.begin_request(request)

    def end(self, route: str, status: int, error: BaseException | None) -> None:
        """See `Observer.end_request`."""
        if self._observer is not None:
            self._observer.end_request(self._mark, route, status, error)


class Observed:
    """The context of one operation."""

    def __init__(self, observer: Observer, work: Work) -> None:
        self._observer = observer
        self._work = work
        self._mark: Any = None
        self._begin = 0.0

    def begun(self) -> Observed:
        """Begin the operation, and return it."""
        self._mark = self._observer.begin(self._work)
        self._begin = perf_counter()
        return self

    def leave(self) -> None:
        """Let later operations of this thread be no part of this one."""
        self._observer.leave(self._mark)

    def end(self, error: BaseException | None, seconds: float) -> None:
        """End the operation, after `leave`."""
        self._observer.end(self._work, self._mark, error, seconds)

    def __enter__(self) -> None:
        self.begun()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.leave()
        self.end(error, perf_counter() - self._begin)


def _named(uri: str) -> tuple[str, str]:
    """Return the name of a table and its folder."""
    folder, _, name = shown(uri).rstrip("/").rpartition("/")
    return name.removesuffix(".lance"), folder
