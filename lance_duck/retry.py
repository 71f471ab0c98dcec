"""The retry policy: how often, for how long and after which waits a failed attempt is repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from lance_duck.lazy import modules

if TYPE_CHECKING:
    import tenacity
    from tenacity.stop import stop_base
else:
    tenacity = modules(globals(), "", "tenacity")

_T = TypeVar("_T")


@dataclass(frozen=True)
class RetryPolicy:
    """The number of repeated attempts, and the pauses before them.

    The wait before each retry is random, so that writers that collided once do not collide again: between 0 and
    `first_wait`, a bound that doubles with each retry up to `longest_wait`.

    Attributes:
        retries: Attempts after the first one.
        timeout: Seconds from the start of the first attempt, after which no other starts. None disables the limit.
        first_wait: Seconds. A commit to a local disk takes a few milliseconds, which is the time that a loser yields.
        longest_wait: Seconds. A commit to an object store takes up to about one.
    """

    retries: int
    timeout: float | None = None
    first_wait: float = 0.005
    longest_wait: float = 1.0

    def run(self, attempt: Callable[[int], _T], on: type[Exception] | tuple[type[Exception], ...]) -> _T:
        """Return the result of the first attempt that succeeds.

        Args:
            attempt: Called with the number of attempts before it; `retries` in the last one.
            on: Errors after which another attempt is made. The error of the last attempt is raised; any other error
                is raised at once.
        """
        begin = monotonic()
        try:
            return attempt(0)  # nearly always the only one, and done before a retry could be prepared
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
            return attempt(number)

        return retrying(again)
