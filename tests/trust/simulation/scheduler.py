"""Run threads one at a time. At each pause, a seeded random generator chooses the next thread.

Threads pause at every request and every sleep. A run is therefore repeatable, unless the threads start further threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from random import Random
from typing import Any


class Scheduler:
    """Runs several functions alternately, each in a thread.

    Args:
        rng: Random generator.

    Attributes:
        later: Delayed events. Each is called once, before `run` returns.
        steps: Number of pauses.
    """

    def __init__(self, rng: Random) -> None:
        self.later: list[Callable[[], Any]] = []
        self.steps = 0
        self._rng = rng
        self._turns: dict[int, threading.Lock] = {}
        self._ready: list[int] = []
        self._is_over = threading.Lock()
        self._errors: list[BaseException] = []

    def run(self, works: Sequence[Callable[[], Any]]) -> None:
        """Run functions until all have ended. Raises the first error."""
        self._is_over.acquire()
        threads = [threading.Thread(target=self._work, args=(work, number)) for number, work in enumerate(works)]
        for number, thread in enumerate(threads):
            self._turns[number] = threading.Lock()
            self._turns[number].acquire()
            thread.start()
        self._ready = list(self._turns)
        self._hand_over()
        self._is_over.acquire()
        for thread in threads:
            thread.join()
        self._is_over.release()
        while self.later:
            self._happen()
        if self._errors:
            raise self._errors[0]

    def pause(self) -> None:
        """Let a random thread continue. Threads of other origin return immediately."""
        number = getattr(_SELF, "number", None)
        if number is None or getattr(_SELF, "of", None) is not self:
            return
        self.steps += 1
        if self.later and self._rng.random() < 0.2:
            self._happen()
        chosen = self._rng.choice(self._ready)
        if chosen != number:
            self._turns[chosen].release()
            self._turns[number].acquire()

    def _happen(self) -> None:
        self.later.pop(self._rng.randrange(len(self.later)))()

    def _work(self, work: Callable[[], Any], number: int) -> None:
        _SELF.number, _SELF.of = number, self
        self._turns[number].acquire()
        try:
            work()
        except BaseException as error:
            self._errors.append(error)
        self._ready.remove(number)
        self._hand_over()

    def _hand_over(self) -> None:
        if self._ready:
            self._turns[self._rng.choice(self._ready)].release()
        else:
            self._is_over.release()


_SELF = threading.local()
