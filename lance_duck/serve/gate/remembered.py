"""Runs a change once, even if the client repeats its request."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Final, TypeVar, cast

from lance_duck import forks

_SECONDS: Final = 600.0
_MOST: Final = 10_000

_T = TypeVar("_T")


class RememberedAnswers:
    """Answers of recent changes, by an identifier that repeated requests share. Errors are not kept."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._answers: OrderedDict[Hashable, tuple[float, Future[Any]]] = OrderedDict()

    def once(self, key: Hashable | None, run: Callable[[], _T]) -> _T:
        """Run a change, or return the answer of an earlier request with this key. A running one is awaited.

        Args:
            key: Identifier of the request. None runs the change.
            run: The change. If it fails, a repeated request runs it again.
        """
        if key is None:
            return run()
        while True:
            mine: Future[Any] = Future()
            with self._lock:
                self._forget()
                _, found = self._answers.setdefault(key, (time.monotonic(), mine))
            if found is mine:
                return self._run(key, mine, run)
            if found.exception() is None:
                return cast("_T", found.result())

    def _run(self, key: Hashable, mine: Future[Any], run: Callable[[], _T]) -> _T:
        try:
            answer = run()
        except BaseException as error:
            with self._lock:
                self._answers.pop(key, None)
            mine.set_exception(error)
            raise
        mine.set_result(answer)
        return answer

    def _forget(self) -> None:
        oldest = time.monotonic() - _SECONDS
        while self._answers:
            began, answer = next(iter(self._answers.values()))
            if not answer.done() or (began >= oldest and len(self._answers) < _MOST):
                break
            self._answers.popitem(last=False)
