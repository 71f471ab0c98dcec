"""The statuses of errors that Flight clients get."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import adbc_driver_flightsql.dbapi as adbc
import adbc_driver_manager
import duckdb
import pyarrow as pa
import pytest
from pyarrow import flight
from support.flight_sql import SLOW

import lance_duck as ld
from lance_duck import errors
from lance_duck.serve.flight.refused import flight_errors
from lance_duck.serve.gate import refusals
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.run import Server

NAMES = {
    "FlightUnauthenticatedError": "UNAUTHENTICATED",
    "FlightUnauthorizedError": "PERMISSION_DENIED",
    "FlightUnavailableError": "UNAVAILABLE",
    "FlightTimedOutError": "DEADLINE_EXCEEDED",
    "FlightCancelledError": "CANCELLED",
    "FlightInternalError": "INTERNAL",
    "FlightServerError": "UNKNOWN",
    "ArrowKeyError": "NOT_FOUND",
    "ArrowInvalid": "INVALID_ARGUMENT",
    "ArrowNotImplementedError": "UNIMPLEMENTED",
}
"""The status of gRPC by the class that pyarrow's client raises."""

UNTOLD = [errors.LanceDuckError, errors.FormatError, errors.InternalError, errors.JobError, errors.ForkedError]
"""Errors of which clients get only the id of the request."""

WORDS: dict[type[Exception], str] = {
    **dict.fromkeys(UNTOLD, "internal error"),
    duckdb.OutOfMemoryException: "needs too much memory",
}

EXPECTED: dict[str, list[type[Exception]]] = {
    "UNAUTHENTICATED": [refusals.UnauthorizedError],
    "PERMISSION_DENIED": [refusals.ForbiddenError, errors.ConfinedError, duckdb.PermissionException],
    "UNAVAILABLE": [
        *(refusals.BusyError, refusals.StoppingError, errors.RetryableError, errors.StoreError),
        *(duckdb.IOException, duckdb.HTTPException),
    ],
    "DEADLINE_EXCEEDED": [refusals.TimeLimitError, refusals.SlowBodyError],
    "CANCELLED": [refusals.AbandonedError, duckdb.InterruptException],
    "INTERNAL": [
        *UNTOLD,
        *(duckdb.InternalError, duckdb.InternalException, duckdb.FatalException),
    ],
    "UNKNOWN": [
        *(errors.CommitConflictError, errors.IncompatibleError, errors.PartlyCommittedError),
        errors.CorruptError,
    ],
    "NOT_FOUND": [errors.NotFoundError, errors.IndexNotFoundError],
    "UNIMPLEMENTED": [
        *(errors.UnsupportedError, errors.ArrayLimitError),
        *(duckdb.NotSupportedError, duckdb.NotImplementedException),
    ],
}
"""Classes by status. All others are INVALID_ARGUMENT."""


def tree(kind: type[Exception]) -> list[type[Exception]]:
    return [kind, *(each for child in kind.__subclasses__() for each in tree(child))]


KINDS = [
    kind
    for kind in dict.fromkeys([*tree(errors.LanceDuckError), *tree(duckdb.Error)])
    if kind.__module__.startswith(("lance_duck.errors", "lance_duck.serve.gate", "_duckdb", "duckdb"))
]


class Failing(flight.FlightServerBase):  # type: ignore[misc]
    """A server that raises an error in each call."""

    error: Exception

    def get_flight_info(self, context: object, descriptor: object) -> flight.FlightInfo:
        """Raise the error."""
        with flight_errors(ServeSettings("/served", locations=False)):
            raise self.error

    get_schema = do_action = get_flight_info

    def do_put(self, *_: object) -> None:
        """Raise the error."""
        self.get_flight_info(None, None)

    def do_get(self, context: object, ticket: object) -> flight.GeneratorStream:
        """Raise the error after a first batch."""
        return flight.GeneratorStream(pa.schema({"a": pa.int64()}), self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"a": [1]})
        self.get_flight_info(None, None)


@pytest.fixture(scope="module")
def failing() -> Iterator[Failing]:
    with Failing("grpc://127.0.0.1:0") as server:
        yield server


def raised(call: Callable[[], Any]) -> Exception:
    with pytest.raises((pa.ArrowException, flight.FlightError)) as caught:
        call()
    error: Exception = caught.value
    return error


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_each_error_has_a_status_and_no_traceback(failing: Failing, kind: type[Exception]) -> None:
    failing.error = kind("words of /served/t.lance")
    expected = next((name for name, kinds in EXPECTED.items() if kind in kinds), "INVALID_ARGUMENT")
    descriptor = flight.FlightDescriptor.for_command(b"")
    with flight.connect(f"grpc://127.0.0.1:{failing.port}") as client:
        reader = client.do_get(flight.Ticket(b""))
        reader.read_chunk()
        caught = [
            raised(lambda: client.get_flight_info(descriptor)),
            raised(lambda: [*client.do_action(("any", b""))]),
            raised(reader.read_chunk),
            raised(client.do_put(descriptor, pa.schema({"a": pa.int64()}))[0].close),
        ]
        texts = [*map(str, caught), str(raised(lambda: client.get_schema(descriptor)))]
    assert [NAMES.get(type(each).__name__) for each in caught] == [expected] * len(caught)
    assert not [text for text in texts if "Traceback" in text or "/served" in text or ".py" in text]
    words = WORDS.get(kind, "words of")
    assert all(words in text for text in texts)


def test_the_schema_of_a_wrong_statement_is_refused_without_a_traceback(
    start: Callable[..., Server], tmp_path: Path
) -> None:
    with flight.connect(start(tmp_path, flight=0).flight_url) as client:
        text = str(raised(lambda: client.get_schema(flight.FlightDescriptor.for_command(b"no command"))))
    assert "not a message of Flight SQL" in text
    assert "Traceback" not in text
    assert ".py" not in text


@pytest.mark.parametrize(
    ("query", "kind", "status"),
    [
        ("SELEC 1", adbc.ProgrammingError, "INVALID_ARGUMENT"),
        ("FROM missing", adbc.ProgrammingError, "INVALID_ARGUMENT"),
        ("SELECT 'x'::INT", adbc.ProgrammingError, "INVALID_ARGUMENT"),
        ("FROM '/elsewhere/t.lance'", adbc.ProgrammingError, "UNAUTHORIZED"),
        ("INSTALL httpfs", adbc.ProgrammingError, "UNAUTHORIZED"),
        ("FROM t AT (VERSION => 99)", adbc.ProgrammingError, "NOT_FOUND"),
        ("INSERT INTO keyed VALUES (1), (1)", adbc.ProgrammingError, "INVALID_ARGUMENT"),
        (SLOW, adbc.OperationalError, "TIMEOUT"),
    ],
)
def test_adbc_raises_the_errors_of_the_database_api(
    start: Callable[..., Server], tmp_path: Path, query: str, kind: type[Exception], status: str
) -> None:
    with ld.connect(tmp_path) as writer:
        writer.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE keyed (k INT PRIMARY KEY)")
    server = start(tmp_path, write=True, flight=0, timeout=5 if query != SLOW else 0.2)
    with closing(adbc.connect(str(server.flight_url), autocommit=True)) as connection:
        with pytest.raises(adbc_driver_manager.Error) as caught:
            connection.execute(query).fetchall()
        assert type(caught.value) is kind, caught.value
        assert caught.value.status_code is adbc_driver_manager.AdbcStatusCode[status]
