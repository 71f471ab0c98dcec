"""Messages of Flight SQL.

descriptor.command, ticket, action.body     google.protobuf.Any {type_url = ".../arrow.flight.protocol.sql.<name>"}
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.gate.statements import check_sql_size
from lance_duck.wire.pb import flight_sql_pb2

_PREFIX: Final = "type.googleapis.com/arrow.flight.protocol.sql."
_LONGEST: Final = 4 << 20
"""Maximum size of the values in a handle, in bytes."""


def unpacked(data: bytes | None) -> Message:
    """Return the message inside an Any.

    Raises:
        RequestError: The bytes are not a message of Flight SQL.
    """
    data = data or b""
    try:
        outer = AnyMessage.FromString(data)
        kind = getattr(flight_sql_pb2, outer.type_url.rpartition(".")[2], None)
        if kind is None or not outer.type_url.startswith(_PREFIX):
            raise RequestError("not a message of Flight SQL", found=outer.type_url[:200] or data[:20])
        message: Message = kind.FromString(outer.value)
        return message
    except DecodeError:
        raise RequestError("not a message of Flight SQL", found=data[:20]) from None


def packed(message: Message) -> bytes:
    """Return a message inside an Any."""
    outer = AnyMessage(type_url=_PREFIX + message.DESCRIPTOR.name, value=message.SerializeToString())
    return outer.SerializeToString()


def read_handle(data: bytes) -> flight_sql_pb2.Handle:
    """Return the server's own handle from the bytes that a client sends back.

    Raises:
        RequestError: The bytes are not a handle, or its text is too large.
    """
    try:
        handle = flight_sql_pb2.Handle.FromString(data)
    except DecodeError:
        handle = flight_sql_pb2.Handle()
    if not handle.query:
        raise RequestError("not a handle of this server", found=data[:20])
    check_sql_size(handle.query)
    return handle


def packed_values(batch: pa.RecordBatch) -> bytes:
    """Return one row of values as an Arrow stream.

    Raises:
        RequestError: The values are too large.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data = sink.getvalue()
    if data.size > _LONGEST:
        raise RequestError(
            "the values of placeholders are too large", expected=f"at most {_LONGEST} bytes", found=data.size
        )
    return data.to_pybytes()  # type: ignore[no-any-return]


def unpacked_values(data: bytes) -> pa.Table:
    """Return the values of `packed_values`.

    Raises:
        RequestError: The bytes are not an Arrow stream.
    """
    try:
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
        return table
    except (pa.ArrowException, OSError):
        raise RequestError("not a handle of this server", found=data[:20]) from None
