"""Ensures that a statement reads one version of each table, even if it looks up the table several times."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import Context, ContextVar, copy_context
from typing import TypeVar

from lance_duck.dataset import LanceDataset
from lance_duck.groups.reading import ReadPoint

T = TypeVar("T")

_FOUND: ContextVar[dict[Hashable, LanceDataset] | None] = ContextVar("lance_duck_versions_found", default=None)
_POINT: ContextVar[ReadPoint | None] = ContextVar("lance_duck_read_point", default=None)


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


def statement_point() -> ReadPoint:
    """Return the state of the commit logs that the statement reads. Outside statements, each lookup reads its own."""
    return _POINT.get() or ReadPoint()


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
