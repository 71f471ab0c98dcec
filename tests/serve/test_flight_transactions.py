"""Transactions of Flight clients that wait, expire or fail."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import adbc_driver_manager
import duckdb
import pytest
from support.flight_sql import connected, rows

import lance_duck as ld
from lance_duck.duck.connection import Connection, connect
from lance_duck.serve.flight.transactions import FlightTransactions
from lance_duck.serve.gate.refusals import BusyError, RequestError
from lance_duck.serve.gate.tokens import Caller, Role
from lance_duck.serve.run import Server

ANN = Caller("ann", Role.WRITE)


@pytest.fixture
def database(tmp_path: Path) -> Connection:
    """A connection with the table `t` of one row."""
    ld.write_dataset({"id": [1]}, tmp_path / "t.lance")
    return connect(str(tmp_path))


@pytest.fixture
def transactions(database: Connection) -> FlightTransactions:
    return FlightTransactions(database.cursor)


def ids(transactions: FlightTransactions, key: bytes) -> list[int]:
    with transactions.using(key, ANN, 1) as cursor:
        return [number for (number,) in cursor.execute("SELECT id FROM t ORDER BY id").fetchall()]


def test_a_transaction_begins_at_its_first_statement(transactions: FlightTransactions, database: Connection) -> None:
    key = transactions.begin(ANN, "peer")
    transactions.expire(0)
    database.execute("INSERT INTO t VALUES (2)")
    assert ids(transactions, key) == [1, 2]
    database.execute("INSERT INTO t VALUES (3)")
    assert ids(transactions, key) == [1, 2]
    transactions.end(key, ANN, 1, is_commit=True)


def test_an_expired_transaction_is_rolled_back_and_cannot_be_committed(
    transactions: FlightTransactions, database: Connection
) -> None:
    key = transactions.begin(ANN, "peer")
    with transactions.using(key, ANN, 1) as cursor:
        cursor.execute("INSERT INTO t VALUES (2)")
    transactions.expire(0)
    with pytest.raises(RequestError, match="call rollback"):
        ids(transactions, key)
    with pytest.raises(RequestError, match="not open"):
        transactions.end(key, ANN, 1, is_commit=True)
    transactions.end(key, ANN, 1, is_commit=False)
    assert database.execute("SELECT id FROM t").fetchall() == [(1,)]


def test_the_number_of_begun_transactions_is_limited(transactions: FlightTransactions) -> None:
    keys = [transactions.begin(ANN, f"peer {i}") for i in range(65)]
    with ExitStack() as stack:
        for key in keys[:64]:
            stack.enter_context(transactions.using(key, ANN, 1))
        with pytest.raises(BusyError, match="too many transactions"):
            ids(transactions, keys[64])
    transactions.end(keys[0], ANN, 1, is_commit=False)
    assert ids(transactions, keys[64]) == [1]


def test_a_connection_that_cannot_begin_is_closed(database: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Connection] = []

    def connect_without_begin() -> Connection:
        cursor = database.cursor()
        monkeypatch.setattr(cursor, "begin", lambda: cursor.execute("BEGIN; nonsense"))
        opened.append(cursor)
        return cursor

    transactions = FlightTransactions(connect_without_begin)
    key = transactions.begin(ANN, "peer")
    with pytest.raises(duckdb.ParserException):
        ids(transactions, key)
    with pytest.raises(duckdb.ConnectionException, match="closed"):
        opened[0].execute("SELECT 1")


def test_a_connection_goes_on_after_the_rollback_of_an_expired_transaction(
    start: Callable[..., Server], tmp_path: Path
) -> None:
    ld.write_dataset({"id": [1]}, tmp_path / "t.lance")
    server = start(tmp_path, write=True, flight=0)
    assert server._flight is not None
    with connected(server, autocommit=False) as cursor:
        cursor.execute("INSERT INTO t VALUES (2)")
        server._flight._transactions.expire(0)
        with pytest.raises(adbc_driver_manager.ProgrammingError, match="the transaction is not open"):
            rows(cursor, "FROM t")
        cursor.connection.rollback()
        assert rows(cursor, "FROM t") == [(1,)]
