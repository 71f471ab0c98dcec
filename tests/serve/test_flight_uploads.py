"""Uploads over Flight SQL whose clients stall, leave or send damaged rows."""

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight
from support.flight_sql import SLOW, connected, creation, nothing_runs, rows, wait_until

import lance_duck as ld
from lance_duck.serve.flight.messages import packed, unpacked
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.run import Server
from lance_duck.wire.pb import flight_sql_pb2 as messages

ROWS = pa.record_batch({"id": [1, 2, 3]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the table `t` of three rows."""
    ld.write_dataset(pa.table({"id": [1, 2, 3]}), tmp_path / "t.lance")
    return tmp_path


@pytest.fixture
def client(start: Callable[..., Server], folder: Path) -> Iterator[tuple[Server, flight.FlightClient]]:
    server = start(folder, write=True, flight=0, upload_timeout=1.5)
    with flight.connect(server.flight_url) as client:
        yield server, client


def tables(server: Server) -> set[str]:
    with connected(server) as cursor:
        return {name for (name,) in rows(cursor, "SHOW TABLES")}


@pytest.mark.parametrize("sent", [0, 1])
def test_an_upload_that_stalls_frees_its_slot_at_the_deadline(
    client: tuple[Server, flight.FlightClient], sent: int
) -> None:
    server, flights = client
    writer, _ = flights.do_put(creation("n"), ROWS.schema)
    for _ in range(sent):
        writer.write_batch(ROWS)
    wait_until(lambda: server.gate.uploads.running == 1)
    wait_until(lambda: nothing_runs(server))
    assert tables(server) == {"t"}
    writer.done_writing()
    with pytest.raises(flight.FlightTimedOutError, match="takes too long"):
        writer.close()


def test_values_that_never_arrive_free_their_slot(client: tuple[Server, flight.FlightClient]) -> None:
    server, flights = client
    request = messages.ActionCreatePreparedStatementRequest(query="INSERT INTO t VALUES (?)")
    answer = unpacked(next(flights.do_action(("CreatePreparedStatement", packed(request)))).body.to_pybytes())
    command = messages.CommandPreparedStatementUpdate(prepared_statement_handle=answer.prepared_statement_handle)
    writer, _ = flights.do_put(flight.FlightDescriptor.for_command(packed(command)), ROWS.schema)
    wait_until(lambda: server.gate.uploads.running == 1)
    wait_until(lambda: nothing_runs(server))
    writer.done_writing()
    with pytest.raises(flight.FlightTimedOutError, match="takes too long"):
        writer.close()


LEAVE = """
import os, sys, pyarrow as pa
from pyarrow import flight
writer, reader = flight.connect(sys.argv[1]).do_put(
    flight.FlightDescriptor.for_command(bytes.fromhex(sys.argv[2])), pa.schema({"id": pa.int64()})
)
writer.write_batch(pa.record_batch({"id": [1, 2, 3]}))
print("sent", flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_an_upload_whose_client_dies_changes_nothing(start: Callable[..., Server], folder: Path) -> None:
    server = start(folder, write=True, flight=0)
    arguments = [sys.executable, "-c", LEAVE, str(server.flight_url), creation("n").command.hex()]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"sent\n"
        wait_until(lambda: server.gate.uploads.running == 1)
    wait_until(lambda: nothing_runs(server))
    assert tables(server) == {"t"}


def test_an_upload_whose_client_gives_up_changes_nothing(start: Callable[..., Server], folder: Path) -> None:
    server = start(folder, write=True, flight=0)
    with flight.connect(server.flight_url) as flights:
        writer, _ = flights.do_put(creation("n"), ROWS.schema, flight.FlightCallOptions(timeout=1.5))
        writer.write_batch(ROWS)
        wait_until(lambda: server.gate.uploads.running == 1)
        wait_until(lambda: nothing_runs(server))
        with pytest.raises(flight.FlightTimedOutError):
            writer.close()
    assert tables(server) == {"t"}


def test_a_server_stops_although_an_upload_stalls(folder: Path) -> None:
    with Server(ServeSettings(str(folder), port=0, flight=0, write=True, upload_timeout=0.2)) as server:
        flights = flight.connect(server.flight_url)
        writer, _ = flights.do_put(creation("n"), ROWS.schema)
        writer.write_batch(ROWS)
        wait_until(lambda: server.gate.uploads.running == 1)
    assert ld.connect(folder).sql("SHOW TABLES").fetchall() == [("t",)]
    with pytest.raises(flight.FlightError):
        writer.close()


def test_a_refused_upload_ends_although_its_client_sends_nothing(start: Callable[..., Server], folder: Path) -> None:
    server = start(folder, write=True, flight=0)
    with flight.connect(server.flight_url) as flights:
        writer, answers = flights.do_put(creation("t"), ROWS.schema)
        assert answers.read() is None
        with pytest.raises(pa.ArrowInvalid, match="the table exists"):
            writer.close()


def test_damaged_batches_are_refused(start: Callable[..., Server], folder: Path) -> None:
    offsets, text = pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")
    damaged = pa.record_batch({"s": pa.Array.from_buffers(pa.string(), 1, [None, offsets, text])})
    server = start(folder, write=True, flight=0)
    with flight.connect(server.flight_url) as flights:
        writer, _ = flights.do_put(creation("n"), damaged.schema)
        writer.write_batch(damaged)
        with pytest.raises(pa.ArrowInvalid, match="malformed upload"):
            writer.close()
    assert tables(server) == {"t"}


def test_a_cancel_stops_all_reads_of_one_ticket(start: Callable[..., Server], folder: Path) -> None:
    server = start(folder, flight=0, max_statements=2)
    clients = [flight.connect(server.flight_url) for _ in range(3)]
    query = packed(messages.CommandStatementQuery(query=SLOW))
    info = clients[0].get_flight_info(flight.FlightDescriptor.for_command(query))
    caught: list[BaseException] = []

    def fetch(client: flight.FlightClient) -> None:
        try:
            client.do_get(info.endpoints[0].ticket).read_chunk()
        except flight.FlightError as error:
            caught.append(error)

    readers = [threading.Thread(target=fetch, args=(client,)) for client in clients[:2]]
    for reader in readers:
        reader.start()
    wait_until(lambda: server.gate.admission.running == 2)
    request = messages.CancelFlightInfoRequest(info=info.serialize()).SerializeToString()

    def cancelled(_: Any = None) -> bool:
        answer = clients[2].do_action(("CancelFlightInfo", request))
        next(answer)
        return len(caught) == 2

    wait_until(cancelled)
    for reader in readers:
        reader.join()
    assert all(isinstance(each, flight.FlightCancelledError) for each in caught)
    assert "cancelled the query" in str(caught[0])
    wait_until(lambda: nothing_runs(server))
    gc.collect()
