"""A Flight SQL server under damaged and random messages.

FlightDescriptor  1 type (2 command), 2 command
Ticket            1 bytes
Action            1 type, 2 body
FlightData        1 descriptor, 2 header of an IPC message, 1000 body of an IPC message
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import grpc
import pyarrow as pa
from google.protobuf.message import Message
from pyarrow import flight

import lance_duck as ld
from lance_duck.serve.flight.messages import packed, packed_values
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.run import Server
from lance_duck.wire.pb import flight_sql_pb2 as messages

REQUESTS: Final = 200
ROWS: Final = pa.record_batch({"id": range(50), "s": [f"text {i}" if i % 7 else None for i in range(50)]})
QUERIES: Final = (
    *("FROM t", "SELECT count(*) FROM t WHERE id < 9", "SELECT s FROM t WHERE id = ?", "SELECT $a, $b", "", ";"),
    *("INSERT INTO t VALUES (?, ?)", "DELETE FROM t WHERE id = 3 RETURNING id", "UPDATE t SET s = 'x' WHERE id = ?"),
    *(
        "SELECT 1; SELECT 2",
        "SELECT '\u00fc\u0000'",
        "DROP TABLE u",
        "CREATE TABLE u AS FROM t",
        "BEGIN",
        "EXPLAIN FROM t",
    ),
)
NAMES: Final = ("t", "u", "", "nope", "%", "main", "memory", "a.b", '"', "\u00fc")
_COMMANDS: Final[tuple[type[Message], ...]] = (
    *(messages.CommandStatementQuery, messages.CommandStatementUpdate, messages.CommandStatementIngest),
    *(messages.CommandPreparedStatementQuery, messages.CommandPreparedStatementUpdate, messages.CommandGetTables),
    *(messages.CommandGetSqlInfo, messages.CommandGetXdbcTypeInfo, messages.CommandGetCatalogs),
    *(messages.CommandGetDbSchemas, messages.CommandGetPrimaryKeys, messages.CommandGetCrossReference),
)
_ACTIONS: Final[Mapping[str, type[Message]]] = {
    "CreatePreparedStatement": messages.ActionCreatePreparedStatementRequest,
    "ClosePreparedStatement": messages.ActionClosePreparedStatementRequest,
    "BeginTransaction": messages.ActionBeginTransactionRequest,
    "EndTransaction": messages.ActionEndTransactionRequest,
    "CancelQuery": messages.ActionCancelQueryRequest,
    "CancelFlightInfo": messages.CancelFlightInfoRequest,
    "CloseSession": messages.ActionBeginTransactionRequest,
    "GetSessionOptions": messages.ActionBeginTransactionRequest,
    "Unknown": messages.ActionBeginTransactionRequest,
}
_PUTS: Final = (messages.CommandStatementIngest, *_COMMANDS[:5])
_SERVICE: Final = "/arrow.flight.protocol.FlightService/"


def sent(seed: int, folder: Path) -> Mapping[str, int]:
    """Send damaged and random messages. None makes the server fail, and other clients get the right rows."""
    rng = random.Random(seed)
    ld.write_dataset(pa.table([ROWS["id"], ROWS["s"]], ["id", "s"]), folder / "t.lance")
    ld.write_dataset(pa.table({"id": range(100)}), folder / "kept.lance")
    statuses: Counter[str] = Counter()
    settings = ServeSettings(str(folder), port=0, flight=0, write=True, timeout=20, upload_timeout=20, max_body=1 << 20)
    with Server(settings) as server, flight.connect(server.flight_url) as client:
        with grpc.insecure_channel(str(server.flight_url).removeprefix("grpc://")) as channel:
            for number in range(REQUESTS):
                statuses[_send(rng, channel)] += 1
                if number % 20 == 0:
                    _check(client)
        assert server.gate.admission.drained(20)
        assert server.gate.uploads.drained(20)
        _check(client)
        for name in server.gate.namespace.list_tables():
            server.gate.namespace.open_table(name).validate()
    return {"messages": REQUESTS, "accepted messages": statuses["OK"]}


def _check(client: flight.FlightClient) -> None:
    query = messages.CommandStatementQuery(query="SELECT sum(id)::BIGINT AS s FROM kept")
    info = client.get_flight_info(flight.FlightDescriptor.for_command(packed(query)))
    assert client.do_get(info.endpoints[0].ticket).read_all().to_pydict() == {"s": [4950]}


def _send(rng: random.Random, channel: grpc.Channel) -> str:
    """Send one message, and return the name of the answer's status. Raises AssertionError for a fault of the server."""
    method = rng.choice(("GetFlightInfo", "GetSchema", "DoGet", "DoAction", "DoPut", "DoPut", "DoExchange"))
    try:
        if method in ("GetFlightInfo", "GetSchema"):
            command = _any(rng, rng.choice(_COMMANDS))
            channel.unary_unary(_SERVICE + method)(_damaged(rng, _descriptor(command)), timeout=60)
        elif method == "DoGet":
            ticket = _any(rng, rng.choice((messages.TicketStatementQuery, *_COMMANDS)))
            [*channel.unary_stream(_SERVICE + method)(_damaged(rng, _field(1, ticket)), timeout=60)]
        elif method == "DoAction":
            name = rng.choice([*_ACTIONS])
            action = _field(1, name.encode()) + _field(2, _any(rng, _ACTIONS[name]))
            [*channel.unary_stream(_SERVICE + method)(_damaged(rng, action), timeout=60)]
        else:
            [*channel.stream_stream(_SERVICE + method)(_upload(rng), timeout=60)]
    except grpc.RpcError as error:
        failed: Any = error
    else:
        return "OK"
    text = f"{method}: {failed.code().name}: {failed.details()}"
    assert failed.code() is not grpc.StatusCode.DEADLINE_EXCEEDED, text
    assert "Traceback" not in text, text
    assert "internal error" not in text, text
    return str(failed.code().name)


def _upload(rng: random.Random) -> Iterator[bytes]:
    """Yield the messages of an upload."""
    rows = ROWS.slice(rng.randrange(40), rng.choice((0, 1, 1, 5)))
    rows = rng.choice((rows, rows.select(["id"]), rows.rename_columns(["1", "2"])))
    descriptor = _field(1, _descriptor(_any(rng, rng.choice(_PUTS))))
    ipc = [rows.schema.serialize().to_pybytes(), *[rows.serialize().to_pybytes()] * rng.randrange(3)]
    if rng.random() < 0.1:
        rng.shuffle(ipc)
    for number, message in enumerate(ipc):
        size = int.from_bytes(message[4:8], "little") + 8
        header, body = _damaged(rng, message[8:size]), _damaged(rng, message[size:])
        data = (b"" if number else descriptor) + _field(2, header) + (_field(1000, body) if body else b"")
        yield _damaged(rng, data)


def _any(rng: random.Random, kind: type[Message]) -> bytes:
    """Return a random message of a kind, damaged or not."""
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        if rng.random() < 0.8:
            _fill(rng, message, field)
    data = packed(message) if rng.random() < 0.95 else message.SerializeToString()
    return _damaged(rng, data)


def _fill(rng: random.Random, message: Any, field: Any) -> None:
    if field.message_type is not None:
        if field.name == "table_definition_options":
            message.table_definition_options.if_exists = rng.randrange(4)
            message.table_definition_options.if_not_exist = rng.randrange(3)
        return
    value: Any
    if field.name in ("query", "sql"):
        value = rng.choice(QUERIES)
    elif field.name.endswith("handle"):
        value = _handle(rng)
    elif field.type == field.TYPE_STRING:
        value = rng.choice(NAMES)
    elif field.type == field.TYPE_BYTES:
        value = rng.randbytes(rng.choice((0, 1, 16)))
    elif field.type == field.TYPE_BOOL:
        value = field.name == "include_schema" and rng.random() < 0.5
    else:
        value = rng.randrange(4)
    if field.is_repeated:
        getattr(message, field.name).extend([value] if rng.random() < 0.5 else [])
    else:
        setattr(message, field.name, value)


def _handle(rng: random.Random) -> bytes:
    handle = messages.Handle(query=rng.choice(QUERIES), id=rng.randbytes(16))
    if rng.random() < 0.5:
        names = ["1", "2"][: rng.choice((1, 2))]
        values = pa.record_batch([pa.array([rng.choice((1, 3, None))]) for _ in names], names)
        handle.parameters = _damaged(rng, packed_values(values))
    return _damaged(rng, handle.SerializeToString())


def _descriptor(command: bytes) -> bytes:
    return b"\x08\x02" + _field(2, command)


def _field(number: int, data: bytes) -> bytes:
    """Return a field of bytes of a Protobuf message."""
    return _number(number << 3 | 2) + _number(len(data)) + data


def _number(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _damaged(rng: random.Random, data: bytes) -> bytes:
    """Return bytes, at times with other bytes or fewer."""
    if not data or rng.random() < 0.85:
        return data
    if rng.random() < 0.3:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(changed))] = rng.choice((0, 1, 127, 255, rng.randrange(256)))
    return bytes(changed)
