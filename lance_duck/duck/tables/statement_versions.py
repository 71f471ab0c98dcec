"""Ensures that a statement reads one version of each table, even if it looks up the table several times."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from typing import TypeVar

from lance_duck.dataset import LanceDataset
from lance_duck.groups.log import CommitLog
from lance_duck.groups.reading import ReadPoint

T = TypeVar("T")

_FOUND: ContextVar[dict[Hashable, LanceDataset] | None] = ContextVar("lance_duck_versions_found", default=None)
_POINT: ContextVar[ReadPoint | None] = ContextVar("lance_duck_read_point", default=None)
_LISTED: ContextVar[dict[str, int] | None] = ContextVar("lance_duck_listed_names", default=None)


def with_one_version(call: Callable[[], T]) -> T:
    """Run a statement. While it runs, `found_once` looks up each table only once.

    A nested statement looks up tables again. Lookups in threads that the statement starts are not cached.
    """
    return statement_context().run(call)


def statement_context() -> Context:
    """Return a context for one statement, as in `with_one_version`. It is cleaned up even after errors."""
    context = copy_context()
    context.run(_FOUND.set, {})
    context.run(_POINT.set, ReadPoint())
    return context


def listing_context() -> Context:
    """Return a context for one statement, for which the names of folders are also listed, as in `listing_names`."""
    context = statement_context()
    context.run(_LISTED.set, {})
    return context


def statement_point() -> ReadPoint:
    """Return the state of the commit logs that the statement reads. Outside statements, each lookup reads its own."""
    return _POINT.get() or ReadPoint()


def is_in_statement() -> bool:
    """Return whether a statement runs in this context."""
    return _POINT.get() is not None


@contextmanager
def listing_names() -> Iterator[None]:
    """While the context is open, the names of folders are listed for a statement."""
    token = _LISTED.set({})
    try:
        yield
    finally:
        with suppress(ValueError):  # after Ctrl-C before the body, the generator is closed in a different context
            _LISTED.reset(token)


def note_listed(log: CommitLog, number: int) -> None:
    """Remember the state of a folder of which the statement has listed the names."""
    listed = _LISTED.get()
    if listed is not None:
        listed[log.root] = number


def listed_state(log: CommitLog) -> int | None:
    """Return the state of a folder of which the statement has listed the names, or None."""
    return (_LISTED.get() or {}).get(log.root)


def found_once(key: Callable[[], Hashable], find: Callable[[], LanceDataset]) -> LanceDataset:
    """Return a table at the version that the statement reads. Outside statements, the table is looked up each time.

    Args:
        key: Returns the cache key: location and requested version.
        find: Looks up the table.
    """
    results = _FOUND.get()
    if results is None:
        return find()
    asked = key()
    dataset = results.get(asked)
    if dataset is None:
        dataset = results[asked] = find()
    return dataset
