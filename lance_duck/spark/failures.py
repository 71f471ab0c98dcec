"""What went wrong in Spark's processes, as the error that was raised there."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException

from lance_duck import errors
from lance_duck.errors import JobError, LanceDuckError

_LINE: Final = re.compile(r"lance_duck\.errors\.(\w+): (.*)")
_OTHER_PYTHON: Final = re.compile(
    r"No module named '(?:lance_duck|pyarrow|pandas|numpy|duckdb)\b.*?'|PYTHON_VERSION_MISMATCH"
)


@contextmanager
def as_ours() -> Iterator[None]:
    """Raise what a worker or a planner of Spark raised, where it was an error of this package.

    Its text is that of there; Spark's own exception, with the tracebacks, is its cause.
    """
    try:
        yield
    except PySparkException as error:
        found = error_in(str(error))
        if found is None:
            raise
        raise found from error


def error_in(text: str) -> LanceDuckError | None:
    """The last error of this package that a text with tracebacks names; or that workers run another Python."""
    for name, said in reversed(_LINE.findall(text)):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, LanceDuckError):
            return kind(said.strip())
    if found := _OTHER_PYTHON.search(text):
        return JobError(
            "Spark's workers run a Python without this package",
            found=found[0],
            remedy=f"before the session begins, set PYSPARK_PYTHON in os.environ to one that has it, on one machine to "
            f"{sys.executable}; on a cluster install lance-duck for it on every machine",
        )
    return None
