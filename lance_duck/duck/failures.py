"""Our errors, found again in what DuckDB makes of them.

An error that leaves a callback comes back as a DuckDB exception whose text holds "CorruptError: message", with a
traceback below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from lance_duck import errors
from lance_duck.errors import LanceDuckError

_OURS = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, LanceDuckError)
}
_FOUND = re.compile(rf"\b({'|'.join(_OURS)}): (.*?)(?:\n\nAt:|\n\nLINE |\n\nTraceback|\. Detail: |\Z)", re.DOTALL)


@contextmanager
def own_errors() -> Iterator[None]:
    """Raise a DuckDB exception that carries one of our errors as that error, from the DuckDB exception."""
    try:
        yield
    except duckdb.Error as error:
        ours = own_error(error)
        if ours is None:
            raise
        raise ours from error


def own_error(error: duckdb.Error) -> LanceDuckError | None:
    """The error of ours that a DuckDB exception carries; None when it is DuckDB's own."""
    found = _FOUND.search(str(error))
    return _OURS[found[1]](found[2].strip()) if found else None
