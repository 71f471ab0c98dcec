"""Turns errors into statuses and codes that clients understand.

| error | status | code of the Lance namespace specification |
|---|---|---|
| not found | 404 | 1 namespace, 4 table, 6 index, 8 tag, 11 version, 22 branch |
| exists | 400 | 2 namespace, 5 table, 7 index, 9 tag, 23 branch |
| conflict | 409 | 14; clients repeat the request |
| too large | 413 | 13 |
| too slow | 422 | 13; clients repeat 408 and 5xx, and would run the statement again |
| the body does not arrive | 408 | 13; the connection is closed, and nothing is changed |
| busy | 429 | 21; clients repeat the request |
| the server stops | 503 | 17; clients repeat the request |
| not allowed | 403 | 15 |
| bad input | 400 | 12 column, 13, 20 schema |
| store failed | 503 | 17 |
| bug, damaged data | 500 | 18 |
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Final

import duckdb

from lance_duck import errors
from lance_duck.redact import shown
from lance_duck.serve.gate import refusals

_NO_TOKEN: Final = 401
_SLOW_BODY: Final = 408
_BY_ERROR: Final[tuple[tuple[type[BaseException], int, int], ...]] = (
    (refusals.UnauthorizedError, _NO_TOKEN, 16),
    (refusals.ForbiddenError, 403, 15),
    (refusals.MisdirectedError, 421, 13),
    (refusals.StoppingError, 503, 17),
    (refusals.BusyError, 429, 21),
    (refusals.SlowBodyError, _SLOW_BODY, 13),
    (refusals.TimeLimitError, 422, 13),
    (refusals.LimitError, 413, 13),
    (refusals.AbandonedError, 400, 13),
    (refusals.RequestError, 400, 13),
    (errors.ConfinedError, 403, 15),
    (errors.IndexNotFoundError, 404, 6),
    (errors.NotFoundError, 404, 4),
    (errors.IndexExistsError, 400, 7),
    (errors.AlreadyExistsError, 400, 5),
    (errors.UnknownColumnError, 400, 12),
    (errors.DataMismatchError, 400, 20),
    (errors.InvalidInputError, 400, 13),
    (errors.RetryableError, 409, 14),
    (errors.CommitConflictError, 400, 14),
    (errors.ReferencedError, 400, 3),
    (errors.NotIndexableError, 400, 13),
    (errors.UnsupportedError, 406, 0),
    (errors.CorruptError, 500, 18),
    (errors.PartlyCommittedError, 500, 18),
    (errors.StoreError, 503, 17),
    (duckdb.InternalException, 500, 18),
    (duckdb.FatalException, 500, 18),
    (duckdb.IOException, 503, 17),
    (duckdb.Error, 400, 13),
)
"""Status and code by class. The first matching row counts."""

_RETRIED: Final = (429, 503)
_LONGEST: Final = 4000
_READ: Final = 20_000
"""Maximum number of characters of an error in which secrets are sought. A secret at this end is beyond `_LONGEST`."""

_CODE: Final = "code_for_clients"
"""Attribute of an error with its code."""


class Subject(Enum):
    """What an error is about, with the codes for "not found" and "exists"."""

    NAMESPACE = (1, 2)
    TABLE = (4, 5)
    INDEX = (6, 7)
    TAG = (8, 9)
    VERSION = (11, 11)
    BRANCH = (22, 23)


@contextmanager
def about(subject: Subject) -> Iterator[None]:
    """Set the codes of NotFoundError and AlreadyExistsError for a subject."""
    missing, existing = subject.value
    try:
        yield
    except (errors.NotFoundError, errors.AlreadyExistsError) as error:
        vars(error)[_CODE] = missing if isinstance(error, errors.NotFoundError) else existing
        raise


@dataclass(frozen=True)
class HttpProblem:
    """An error as a client sees it.

    Attributes:
        status: HTTP status.
        code: Error code of the Lance namespace specification.
        text: What went wrong, without secrets.
    """

    status: int
    code: int
    text: str

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer: how to log in, when to repeat the request, or the end of the connection."""
        if self.status == _NO_TOKEN:
            return {"www-authenticate": "Bearer"}
        if self.status in _RETRIED:
            return {"retry-after": "1"}
        return {"connection": "close"} if self.status == _SLOW_BODY else {}

    @classmethod
    def of(cls, error: BaseException, request_id: str) -> HttpProblem:
        """Return the problem of an error. An unexpected error only shows the id of the request."""
        error = refusals.refusal_of(error) if isinstance(error, Exception) else error
        for kind, status, code in _BY_ERROR:
            if isinstance(error, kind):
                return cls(status, vars(error).get(_CODE, code), shown(str(error)[:_READ])[:_LONGEST])
        return cls(500, 18, f"internal error; the server's log has the details of request {request_id}")
