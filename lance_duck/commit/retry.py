"""Retries: a change that lost a race is made again from the newest version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_random_exponential
from tenacity.stop import stop_base

from lance_duck.errors import RetryableError
from lance_duck.snapshot import Snapshot

_T = TypeVar("_T")
_FIRST_WAIT, _LONGEST_WAIT = 0.005, 1.0


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
        RetryableError: That of the last attempt: it says who came first.
    """
    stop: stop_base = stop_after_attempt(retries + 1)
    if timeout is not None:
        stop = stop | stop_after_delay(timeout)
    retrying = Retrying(
        stop=stop,
        wait=wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT),
        retry=retry_if_exception_type(RetryableError),
        reraise=True,
    )
    current = snapshot

    def once() -> _T:
        nonlocal current
        if retrying.statistics["attempt_number"] > 1:
            current = current.checkout()
        return attempt(current)

    return retrying(once)
