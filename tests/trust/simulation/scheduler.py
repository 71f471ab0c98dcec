"""Run threads one at a time. At each pause, a seeded random generator chooses the next thread.

Threads pause at every request and every sleep. A run is therefore repeatable, unless the threads start further threads
outside a `ScheduledPool`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from random import Random
from typing import Any, Self


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
        self._threads: list[threading.Thread] = []
        self._turns: list[threading.Lock] = []
        self._ready: list[int] = []
        self._is_over = threading.Lock()
        self._errors: list[BaseException] = []

    def run(self, works: Sequence[Callable[[], Any]]) -> None:
        """Run functions until all have ended. Raises the first error."""
        self._is_over.acquire()
        for work in works:
            self.start(work)
        self._hand_over()
        self._is_over.acquire()
        for thread in self._threads:
            thread.join()
        self._is_over.release()
        while self.later:
            self._happen()
        if self._errors:
            raise self._errors[0]

    def start(self, work: Callable[[], Any]) -> None:
        """Let a new thread take part."""
        number, turn = len(self._turns), threading.Lock()
        turn.acquire()
        self._turns.append(turn)
        self._threads.append(threading.Thread(target=self._work, args=(work, number)))
        self._threads[-1].start()
        self._ready.append(number)

    def pause(self) -> None:
        """Let a random thread continue. Threads of other origin return immediately."""
        if not self.is_mine():
            return
        number = _SELF.number
        self.steps += 1
        if self.later and self._rng.random() < 0.2:
            self._happen()
        chosen = self._rng.choice(self._ready)
        if chosen != number:
            self._turns[chosen].release()
            self._turns[number].acquire()

    def is_mine(self) -> bool:
        """Return whether the current thread takes part."""
        return getattr(_SELF, "of", None) is self

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


class ScheduledPool:
    """Replaces a `ThreadPoolExecutor`, so that its threads take part.

    Args:
        scheduler: Scheduler of the threads that use the pool. The tasks of other threads run immediately.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._tasks: list[ScheduledTask] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks:
            task.wait()

    def submit(self, work: Callable[..., Any], *args: Any) -> ScheduledTask:
        """See `ThreadPoolExecutor.submit`."""
        task = ScheduledTask(self._scheduler)
        self._tasks.append(task)
        if self._scheduler.is_mine():
            self._scheduler.start(lambda: task.run(work, *args))
        else:
            task.run(work, *args)
        return task


class ScheduledTask:
    """A task of a `ScheduledPool`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._future: Future[Any] = Future()

    def run(self, work: Callable[..., Any], *args: Any) -> None:
        """Run the task, and keep its result or error."""
        try:
            self._future.set_result(work(*args))
        except BaseException as error:
            self._future.set_exception(error)

    def wait(self) -> None:
        """Let other threads continue until the task has ended."""
        while not self._future.done():
            self._scheduler.pause()

    def result(self) -> Any:
        """See `Future.result`."""
        self.wait()
        return self._future.result()


_SELF = threading.local()
