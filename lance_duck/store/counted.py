"""Counts requests to object stores. See `telemetry.metrics` for the names."""

from __future__ import annotations

import re
from time import perf_counter
from types import TracebackType
from typing import Final

from lance_duck.errors import AlreadyExistsError, NotFoundError
from lance_duck.telemetry.metrics import (
    BYTES_READ,
    REQUEST_BYTES,
    REQUEST_ERRORS,
    REQUEST_SECONDS,
    REQUESTS,
    REQUESTS_IN_FLIGHT,
    RETRYABLE_RESPONSES,
    THROTTLES,
)

_ANSWERS: Final = (NotFoundError, AlreadyExistsError)
"""Errors that are normal responses of a store."""
_RETRYABLE: Final = re.compile(r"\b(408|429|5\d\d) [A-Z][a-z]")
_THROTTLED: Final = frozenset({"429", "503"})


class CountedRequests:
    """A context in which requests to an object store run.

    Args:
        operation: "get", "head", "list", "put", "copy" or "delete".
        where: URI of the object or bucket.
        requests: Number of requests that run concurrently.
    """

    __slots__ = ("_begin", "_labels", "_requests")

    def __init__(self, operation: str, where: str, requests: int = 1) -> None:
        self._labels = (operation, _scheme(where))
        self._requests = requests
        self._begin = 0.0

    def __enter__(self) -> None:
        REQUESTS_IN_FLIGHT.add(*self._labels, by=self._requests)
        self._begin = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        REQUEST_SECONDS.observe(perf_counter() - self._begin, *self._labels)
        REQUESTS_IN_FLIGHT.add(*self._labels, by=-self._requests)
        REQUESTS.add(*self._labels, by=self._requests)
        if isinstance(error, Exception) and not isinstance(error, _ANSWERS):
            REQUEST_ERRORS.add(*self._labels)
            response = _RETRYABLE.search(str(error))
            if response is not None:
                RETRYABLE_RESPONSES.add(response[1], self._labels[1])
                if response[1] in _THROTTLED:
                    THROTTLES.add(response[1], self._labels[1])


def count_bytes(operation: str, where: str, size: int) -> None:
    """Count transferred bytes. See `CountedRequests`."""
    REQUEST_BYTES.add(operation, _scheme(where), by=size)
    if operation == "get":
        BYTES_READ.add("store", by=size)


def _scheme(where: str) -> str:
    return where.partition(":")[0].lower()
