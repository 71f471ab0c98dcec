"""Turns errors into statuses and codes that clients understand.

| error | status | code of the Lance namespace specification |
|---|---|---|
| not found | 404 | 1 namespace, 4 table, 6 index, 8 tag, 11 version |
| exists | 400 | 2 namespace, 5 table, 7 index, 9 tag |
| conflict | 409 | 14; clients repeat the request |
| limit | 400 | 13; never 5xx, which clients repeat |
| not allowed | 403 | 15 |
| bad input | 400 | 12 column, 13, 20 schema |
| store failed | 503 | 17 |
| bug, damaged data | 500 | 18 |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import duckdb

from lance_duck import errors
from lance_duck.redact import shown
from lance_duck.serve.gate import refusals

_BY_ERROR: Final[tuple[tuple[type[BaseException], int, int], ...]] = (
    (refusals.UnauthorizedError, 401, 16),
    (refusals.ForbiddenError, 403, 15),
    (refusals.BusyError, 429, 21),
    (refusals.LimitError, 400, 13),
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

_LONGEST: Final = 4000


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

    @classmethod
    def of(cls, error: BaseException, request_id: str) -> HttpProblem:
        """Return the problem of an error. Unexpected errors show the id of the request, which the log has, too."""
        for kind, status, code in _BY_ERROR:
            if isinstance(error, kind):
                return cls(status, code, shown(error)[:_LONGEST])
        return cls(500, 18, f"internal error; the server's log has the details of request {request_id}")
