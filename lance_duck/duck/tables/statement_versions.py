"""One version of each table in a statement, however often and by whatever name it is looked up."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import Context, ContextVar, copy_context
from typing import TypeVar

from lance_duck.dataset import LanceDataset

T = TypeVar("T")

_FOUND: ContextVar[dict[Hashable, LanceDataset] | None] = ContextVar("lance_duck_versions_found", default=None)


def with_one_version(call: Callable[[], T]) -> T:
    """Run a statement in which `found_once` looks each table up only once.

    A nested statement looks tables up again. Look-ups in threads that the statement starts are not cached.
    """
    return statement_context().run(call)


def statement_context() -> Context:
    """Return a context for one statement, as `with_one_version` runs it: whatever ends it leaves nothing behind."""
    context = copy_context()
    context.run(_FOUND.set, {})
    return context


def found_once(key: Callable[[], Hashable], find: Callable[[], LanceDataset]) -> LanceDataset:
    """Return a table as the statement reads it; outside statements, as it is found.

    Args:
        key: Returns the cache key: location and requested version.
        find: Looks it up.
    """
    results = _FOUND.get()
    if results is None:
        return find()
    asked = key()
    dataset = results.get(asked)
    if dataset is None:
        dataset = results[asked] = find()
    return dataset
