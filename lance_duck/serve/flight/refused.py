"""Errors as Flight clients see them.

| errors | status of gRPC |
|---|---|
| a wrong statement, value or message; a limit of size; an object that exists or is needed | INVALID_ARGUMENT |
| no such table, version or index | NOT_FOUND |
| not supported | UNIMPLEMENTED |
| no token | UNAUTHENTICATED |
| not allowed | PERMISSION_DENIED |
| a limit of time | DEADLINE_EXCEEDED |
| the client left or cancelled the query | CANCELLED |
| too many requests, a store that fails, a conflict after which the change can be repeated | UNAVAILABLE |
| other conflicts, damaged data | UNKNOWN |
| a bug | INTERNAL |

pyarrow has no ALREADY_EXISTS, ABORTED, FAILED_PRECONDITION and RESOURCE_EXHAUSTED.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import duckdb
from pyarrow import flight

from lance_duck import errors
from lance_duck.serve.gate import refusals
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.problems import HttpProblem

_LOG: Final = logging.getLogger(__name__)

_BY_ERROR: Final[tuple[tuple[type[BaseException], type[Exception]], ...]] = (
    (refusals.UnauthorizedError, flight.FlightUnauthenticatedError),
    (refusals.ForbiddenError, flight.FlightUnauthorizedError),
    (refusals.BusyError, flight.FlightUnavailableError),
    (refusals.TimeLimitError, flight.FlightTimedOutError),
    (refusals.AbandonedError, flight.FlightCancelledError),
    (refusals.RequestError, ValueError),
    (errors.ConfinedError, flight.FlightUnauthorizedError),
    (errors.NotFoundError, KeyError),
    (errors.AlreadyExistsError, ValueError),
    (errors.InvalidInputError, ValueError),
    (errors.ReferencedError, ValueError),
    (errors.NotIndexableError, ValueError),
    (errors.UnsupportedError, NotImplementedError),
    (errors.RetryableError, flight.FlightUnavailableError),
    (errors.StoreError, flight.FlightUnavailableError),
    (errors.CommitConflictError, flight.FlightServerError),
    (errors.PartlyCommittedError, flight.FlightServerError),
    (errors.CorruptError, flight.FlightServerError),
    (duckdb.InternalError, flight.FlightInternalError),
    (duckdb.FatalException, flight.FlightInternalError),
    (duckdb.IOException, flight.FlightUnavailableError),
    (duckdb.NotSupportedError, NotImplementedError),
    (duckdb.PermissionException, flight.FlightUnauthorizedError),
    (duckdb.InterruptException, flight.FlightCancelledError),
    (duckdb.Error, ValueError),
)
"""What is raised for a class. Arrow makes INVALID_ARGUMENT, NOT_FOUND and UNIMPLEMENTED of Python's own errors, and
UNKNOWN of FlightServerError. The first matching row counts. Other errors are bugs."""


class _Untraced:
    """An error to which Arrow adds the name of its class, but no traceback.

    Arrow calls `traceback.format_exception`, and writes only the name if that fails.
    """

    args: tuple[str, ...]

    def __str__(self) -> str:
        return self.args[0]

    @property
    def __cause__(self) -> None:
        raise LookupError("an error without a traceback")


@contextmanager
def flight_errors(settings: ServeSettings) -> Iterator[None]:
    """Raise errors with the class that has their status, and with a text that has no traceback."""
    try:
        yield
    except (flight.FlightError, GeneratorExit):
        raise
    except Exception as error:
        reason = _raised(error, settings)
    else:
        return
    raise reason from None


def _raised(error: Exception, settings: ServeSettings) -> Exception:
    request_id = uuid4().hex
    problem = HttpProblem.of(error, request_id)
    level = logging.ERROR if problem.status >= 500 else logging.DEBUG
    _LOG.log(level, "request %s failed", request_id, exc_info=error)
    is_public = settings.locations and problem.status < 500
    text = problem.text if is_public else settings.without_place(problem.text)
    known = refusals.refusal_of(error)
    for kind, raised in _BY_ERROR:
        if isinstance(known, kind):
            return _untraced(raised, type(known).__name__)(text)
    return _untraced(flight.FlightInternalError, errors.InternalError.__name__)(text)


def _untraced(kind: type[Exception], name: str) -> type[Exception]:
    """Return a class of errors with a name. Arrow chooses the status by `kind`."""
    return type(name, (_Untraced, kind), {})
