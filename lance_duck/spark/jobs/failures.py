"""Recovers errors that were raised in Spark's processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException

from lance_duck import errors
from lance_duck.errors import InternalError, JobError, LanceDuckError
from lance_duck.spark.workers import without_this_package

_LINE: Final = re.compile(r"lance_duck\.errors\.(\w+): (.*)")
_OTHER_PYTHON: Final = re.compile(
    r"No module named '(?:lance_duck|pyarrow|pandas|numpy|duckdb)\b.*?'|PYTHON_VERSION_MISMATCH"
)


@contextmanager
def as_ours() -> Iterator[None]:
    """Re-raise an error of this package that was raised in a Spark worker or planner process.

    The message stays the same. Spark's own exception repeats the message with tracebacks of other processes. It is
    dropped, unless the error is a `JobError` or an `InternalError`.
    """
    try:
        yield
    except PySparkException as error:
        own_error = error_in(str(error))
        if own_error is None:
            raise
        raise own_error from (error if isinstance(own_error, JobError | InternalError) else None)


def error_in(text: str) -> LanceDuckError | None:
    """Return the last error of this package in a traceback text, or the error for workers without this package."""
    for name, message in reversed(_LINE.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, LanceDuckError):
            return kind(message.strip())
    if match := _OTHER_PYTHON.search(text):
        return without_this_package(match[0])
    return None
