"""Changes that lost a race are made again from the newest version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from lance_duck.errors import CommitConflictError, InvalidInputError, RetryableError, UnsupportedError
from lance_duck.retry import RetryPolicy
from lance_duck.snapshot import Snapshot

REFUSALS: Final = (CommitConflictError, InvalidInputError, UnsupportedError)
"""Errors of a commit after which there surely is no new version; of any other one nobody knows."""

_T = TypeVar("_T")


def run_again(
    snapshot: Snapshot, attempt: Callable[[Snapshot], _T], retries: int = 10, timeout: float | None = None
) -> _T:
    """Make a change, and make it again from the newest version as long as others come first.

    Args:
        snapshot: Version to begin with.
        attempt: Makes the change from a version and commits it.
        retries: How often to make it again.
        timeout: Seconds after which not to begin again.

    Raises:
        RetryableError: The error of the last attempt, which says who came first.
    """
    current = snapshot

    def once(number: int) -> _T:
        nonlocal current
        if number > 0:
            current = current.checkout()
        return attempt(current)

    return RetryPolicy(retries, timeout).run(once, RetryableError)
