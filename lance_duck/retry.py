"""The retry policy: number of retries, time limit, and waits between attempts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from lance_duck.lazy import modules

if TYPE_CHECKING:
    import tenacity
    from tenacity.stop import stop_base
else:
    tenacity = modules(globals(), "", "tenacity")

_T = TypeVar("_T")
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class RetryPolicy:
    """The number of repeated attempts, and the waits before them.

    The wait before the first retry is random, between 0 and `first_wait`. The upper bound doubles with each retry, up
    to `longest_wait`. Random waits prevent repeated collisions between writers.

    Attributes:
        retries: Number of attempts after the first attempt.
        timeout: Time after the start of the first attempt, in seconds. Later, no further attempt starts. None disables
            the limit.
        first_wait: Upper bound of the first wait, in seconds. A commit to a local disk takes a few milliseconds, and a
            writer that loses a race waits about as long.
        longest_wait: Upper bound of all waits, in seconds. A commit to an object store takes up to about one second.
    """

    retries: int
    timeout: float | None = None
    first_wait: float = 0.005
    longest_wait: float = 1.0

    def run(self, attempt: Callable[[int], _T], on: type[Exception] | tuple[type[Exception], ...]) -> _T:
        """Return the result of the first attempt that succeeds.

        Args:
            attempt: Called with the number of previous attempts, from 0 to `retries`.
            on: Errors that lead to another attempt. The error of the last attempt is raised. Any other error is
                raised immediately.
        """
        begin = monotonic()
        try:
            return attempt(0)  # usually the only attempt, before retries are prepared
        except on as error:
            first_error = error
        stop: stop_base = tenacity.stop_after_attempt(self.retries + 1)
        if self.timeout is not None:
            stop = stop | tenacity.stop_after_delay(self.timeout - (monotonic() - begin))
        retrying = tenacity.Retrying(
            stop=stop,
            wait=tenacity.wait_random_exponential(multiplier=self.first_wait, max=self.longest_wait),
            retry=tenacity.retry_if_exception_type(on),
            reraise=True,
        )

        def again() -> _T:
            number = int(retrying.statistics["attempt_number"]) - 1
            if number == 0:
                raise first_error
            _LOG.debug("retry %d after %s", number, type(first_error).__name__)
            return attempt(number)

        return retrying(again)
