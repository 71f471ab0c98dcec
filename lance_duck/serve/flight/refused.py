"""Errors as Flight clients see them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

from pyarrow import flight

from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.problems import HttpProblem

_LOG: Final = logging.getLogger(__name__)

_BY_STATUS: Final[dict[int, type[flight.FlightError]]] = {
    401: flight.FlightUnauthenticatedError,
    403: flight.FlightUnauthorizedError,
    408: flight.FlightTimedOutError,
    429: flight.FlightUnavailableError,
    503: flight.FlightUnavailableError,
}
"""Other errors are of the class FlightServerError, because pyarrow adds a traceback to Arrow's own errors."""


@contextmanager
def flight_errors(settings: ServeSettings) -> Iterator[None]:
    """Raise errors as FlightError, with a text that has no traceback."""
    try:
        yield
    except (flight.FlightError, GeneratorExit):
        raise
    except Exception as error:
        reason = _flight_error(error, settings)
    else:
        return
    raise reason from None


def _flight_error(error: Exception, settings: ServeSettings) -> flight.FlightError:
    request_id = uuid4().hex
    problem = HttpProblem.of(error, request_id)
    level = logging.ERROR if problem.status >= 500 else logging.DEBUG
    _LOG.log(level, "request %s failed", request_id, exc_info=error)
    is_public = settings.locations and problem.status < 500
    text = problem.text if is_public else settings.without_place(problem.text)
    return _BY_STATUS.get(problem.status, flight.FlightServerError)(text)
