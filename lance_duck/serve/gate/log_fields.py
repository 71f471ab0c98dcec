"""The name of the caller as a field of log records.

with caller_in_logs("ana"): …                       records of the thread get the field
_LOG.info("…", extra={USER_NAME: "ana"})            a record outside
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Final

USER_NAME: Final = "user.name"
"""OpenTelemetry's name of the field."""
_CALLER: Final[ContextVar[str | None]] = ContextVar("lance_duck_caller", default=None)


@contextmanager
def caller_in_logs(name: str) -> Iterator[None]:
    """Let the log records of this context name a caller."""
    token = _CALLER.set(name)
    try:
        yield
    finally:
        with suppress(ValueError):  # an abandoned call may end in a different context
            _CALLER.reset(token)


def caller_of_record(record: logging.LogRecord) -> str | None:
    """Return the name of the caller for whom a record is logged right now, or None."""
    name: str | None = vars(record).get(USER_NAME, _CALLER.get())
    return name
