"""Shared code of all changes: committing an operation, transaction properties, retries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from lance_duck import lazy
from lance_duck.errors import InvalidInputError
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.handle import Handle
from lance_duck.wire.transaction import COMMIT_MESSAGE

if TYPE_CHECKING:
    from lance_duck import commit as commits
    from lance_duck.commit import operations
else:
    commits = lazy.modules(globals(), "lance_duck", "commit")
    operations = lazy.modules(globals(), "lance_duck.commit", "operations")


def commit_change(
    handle: Handle,
    make: Callable[[Snapshot], operations.Operation],
    message: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Commit the operation that `make` builds from a version, and move the handle to the result.

    If another change was committed first, the operation is rebuilt from the newest version.
    """
    texts = transaction_properties(message, properties)
    handle.move_to(
        commits.run_again(handle.snapshot, lambda snapshot: commits.commit(snapshot, make(snapshot), properties=texts))
    )


def transaction_properties(message: str | None, properties: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the transaction properties, including the message. Returns None if both are empty.

    Raises:
        InvalidInputError: A key or a value is not a string.
    """
    if message is None and not properties:
        return None
    result = dict(properties or {})
    if message is not None:
        result[COMMIT_MESSAGE] = message
    for name, value in result.items():
        if not _is_text(name) or not _is_text(value):
            raise InvalidInputError("not a string", where="transaction_properties", found=f"{name!r}: {value!r}")
    return result


def check_patience(retries: int, timeout: timedelta) -> None:
    """Raise InvalidInputError for an invalid retry count or time limit."""
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidInputError("conflict_retries", expected="0 or more", found=repr(retries))
    if not isinstance(timeout, timedelta):
        raise InvalidInputError("retry_timeout", expected="a timedelta", found=type(timeout).__name__)


def _is_text(value: object) -> bool:
    """Return whether a value is a string without lone surrogates."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False
