"""Clients of Flight SQL, and waiting for the end of their requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import adbc_driver_flightsql.dbapi as adbc
from pyarrow import flight

from lance_duck.serve.flight.messages import packed
from lance_duck.serve.run import Server
from lance_duck.wire.pb import flight_sql_pb2 as messages

SLOW: Final = "SELECT count(*) FROM range(100000000000) AS a WHERE hash(a.range) = 3"
"""A query that runs for hours."""


@contextmanager
def connected(server: Server, *, autocommit: bool = True, **options: str) -> Iterator[Any]:
    """Yield a cursor of ADBC's driver."""
    with (
        closing(adbc.connect(str(server.flight_url), options, autocommit=autocommit)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        yield cursor


def rows(cursor: Any, query: str, values: Any = None) -> list[tuple[Any, ...]]:
    """Run a query, and return its rows."""
    cursor.execute(query, values)
    found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def creation(table: str) -> flight.FlightDescriptor:
    """Return the descriptor of an upload that creates a table."""
    command = messages.CommandStatementIngest(table=table)
    command.table_definition_options.if_not_exist = messages.CommandStatementIngest.IF_NOT_EXIST_CREATE
    return flight.FlightDescriptor.for_command(packed(command))


def nothing_runs(server: Server) -> bool:
    """Return whether all slots are free."""
    gate = server.gate
    return gate.admission.running == gate.uploads.running == 0


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true. Raises AssertionError after about ten seconds."""
    pause = threading.Event()
    for _ in range(200):
        if condition():
            return
        pause.wait(0.05)
    raise AssertionError("the condition does not become true")
