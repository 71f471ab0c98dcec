"""The Flight server: turns its calls into statements, lists and changes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from pyarrow import flight

from lance_duck.errors import InvalidInputError, StoreError, UnsupportedError
from lance_duck.serve.flight import catalog, sql_info, sql_types
from lance_duck.serve.flight.batches import small_batches, without_dictionaries
from lance_duck.serve.flight.callers import MIDDLEWARE, FlightCallers, OpenHandshake
from lance_duck.serve.flight.hang_up import hang_up
from lance_duck.serve.flight.ingest import ingest
from lance_duck.serve.flight.messages import packed, read_handle, unpacked
from lance_duck.serve.flight.refused import flight_errors
from lance_duck.serve.flight.statements import FlightStatements, new_handle, placeholder_names
from lance_duck.serve.flight.transactions import FlightTransactions
from lance_duck.serve.flight.uploads import FlightUpload
from lance_duck.serve.flight.watch import FlightWatch
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.gate import Gate
from lance_duck.serve.gate.refusals import AbandonedError, RequestError
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.tokens import Caller
from lance_duck.wire.pb import flight_sql_pb2 as messages

_M = TypeVar("_M", bound=Message)

_LOG: Final = logging.getLogger(__name__)
_PATIENCE: Final = 1.0
"""Time that calls have to end while the server stops, in seconds."""
_LISTS: Final[dict[type[Message], tuple[pa.Schema, Callable[[ServerCall, Any], pa.Table]]]] = {
    messages.CommandGetSqlInfo: (sql_info.SCHEMA, lambda call, asked: sql_info.sql_info(call.settings, asked.info)),
    messages.CommandGetXdbcTypeInfo: (
        sql_types.SCHEMA,
        lambda _, asked: sql_types.sql_types(asked.data_type if asked.HasField("data_type") else None),
    ),
    messages.CommandGetCatalogs: (catalog.CATALOGS, lambda call, _: catalog.catalogs(call)),
    messages.CommandGetDbSchemas: (catalog.SCHEMAS, catalog.schemas),
    messages.CommandGetTables: (catalog.TABLES, catalog.tables),
    messages.CommandGetTableTypes: (catalog.TABLE_TYPES, lambda *_: catalog.table_types()),
    messages.CommandGetPrimaryKeys: (catalog.PRIMARY_KEYS, catalog.primary_keys),
    messages.CommandGetImportedKeys: (catalog.FOREIGN_KEYS, lambda *_: catalog.FOREIGN_KEYS.empty_table()),
    messages.CommandGetExportedKeys: (catalog.FOREIGN_KEYS, lambda *_: catalog.FOREIGN_KEYS.empty_table()),
    messages.CommandGetCrossReference: (catalog.FOREIGN_KEYS, lambda *_: catalog.FOREIGN_KEYS.empty_table()),
}
"""Schema and rows of each list. Lance tables have no foreign keys."""


class FlightServer(flight.FlightServerBase):  # type: ignore[misc]
    """A running Flight SQL server.

    Args:
        gate: Admits requests.
    """

    def __init__(self, gate: Gate) -> None:
        settings = gate.settings
        self._gate = gate
        self._transactions = FlightTransactions(gate.connection.cursor)
        self._statements = FlightStatements(self._transactions)
        self._running: set[tuple[bytes, ServerCall]] = set()
        try:
            super().__init__(
                _location(settings),
                auth_handler=OpenHandshake(),
                tls_certificates=_certificates(settings),
                middleware={MIDDLEWARE: FlightCallers(gate)},
            )
        except (pa.ArrowException, OSError) as error:
            raise StoreError(
                "the Flight server cannot listen",
                where=f"{settings.host}, port {settings.flight}",
                found=str(error).partition(". Detail:")[0],
                remedy="choose another --flight",
            ) from None
        self._watch = FlightWatch(self._transactions.expire)

    @property
    def url(self) -> str:
        """Address of the server, such as "grpc://127.0.0.1:31337"."""
        settings = self._gate.settings
        return _location(replace(settings, flight=self.port))

    def close(self) -> None:
        """Wait for running requests, and stop. Open transactions are rolled back.

        The gate has ended the requests. A call that still waits for its client loses its connection.
        """
        port = self.port
        end = threading.Thread(target=self.shutdown, daemon=True)
        end.start()
        end.join(_PATIENCE)
        while end.is_alive():
            hang_up(port)
            end.join(_PATIENCE)
        self._watch.close()
        self._transactions.expire(0)

    def list_flights(self, context: flight.ServerCallContext, criteria: bytes) -> Iterator[flight.FlightInfo]:
        """Return no flights. Flight SQL has commands in their place."""
        return iter(())

    def list_actions(self, context: flight.ServerCallContext) -> list[tuple[str, str]]:
        """Return the actions of `do_action`."""
        return [(name, "") for name in (*self._actions(""), *self._quick_actions())]

    def get_schema(self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor) -> flight.SchemaResult:
        """Return the schema of a query or list."""
        with self._call(context, "GetSchema") as call:
            asked = unpacked(descriptor.command)
            if type(asked) in _LISTS:
                return flight.SchemaResult(_list_schema(asked))
            return flight.SchemaResult(self._statements.schema(call, _handle_asked(asked)))

    def get_flight_info(
        self, context: flight.ServerCallContext, descriptor: flight.FlightDescriptor
    ) -> flight.FlightInfo:
        """Return the ticket of a query or list. A change runs now, and has a ticket only if it returns rows."""
        with self._call(context, "GetFlightInfo") as call:
            asked = unpacked(descriptor.command)
            if type(asked) in _LISTS:
                return _info(_list_schema(asked), descriptor, descriptor.command)
            handle, count = self._statements.start(call, _handle_asked(asked))
            if handle is None:
                return flight.FlightInfo(pa.schema([]), descriptor, [], count, -1)
            ticket = messages.TicketStatementQuery(statement_handle=handle.SerializeToString())
            return _info(None, descriptor, packed(ticket), count)

    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.FlightDataStream:
        """Return the rows of a ticket."""
        rows = self._rows(context, ticket.ticket)
        return flight.GeneratorStream(next(rows), rows)

    def _rows(self, context: flight.ServerCallContext, ticket: bytes) -> Generator[pa.Schema | pa.RecordBatch]:
        """Yield a schema, and then batches. Clients refuse large batches."""
        with self._call(context, "DoGet") as call:
            asked = unpacked(ticket)
            if type(asked) in _LISTS:
                table = _LISTS[type(asked)][1](call, asked)
                yield table.schema
                yield from table.to_batches()
                return
            if not isinstance(asked, messages.TicketStatementQuery):
                raise RequestError("not a ticket of this server", found=type(asked).__name__)
            handle = read_handle(asked.statement_handle)
            with self._cancellable(handle.id, call):
                rows = self._statements.rows(call, handle)
                schema = without_dictionaries(next(rows))
                yield schema
                for batch in rows:
                    yield from small_batches(batch, schema)

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Run a change, bind the values of placeholders, or write uploaded rows."""
        with flight_errors(self._gate.settings):
            asked = unpacked(descriptor.command)
        with FlightUpload(context, reader) as upload:
            if isinstance(asked, messages.CommandStatementIngest):
                with self._call(context, "DoPut", is_upload=True) as call:
                    answer = self._ingest(call, asked, upload)
                    writer.write(answer.SerializeToString())
                return
            values = self._uploaded_values(context, asked, upload)
            with self._call(context, "DoPut") as call:
                writer.write(self._put(call, asked, values).SerializeToString())

    def _uploaded_values(
        self, context: flight.ServerCallContext, asked: Message, upload: FlightUpload
    ) -> list[pa.RecordBatch] | None:
        """Read the values of placeholders, while slots of queries stay free. Returns None for other statements.

        Raises:
            ValueError: The values are too large.
        """
        if not isinstance(asked, messages.CommandPreparedStatementQuery | messages.CommandPreparedStatementUpdate):
            return None
        is_bound = isinstance(asked, messages.CommandPreparedStatementQuery)
        with self._call(context, "DoPut values", is_upload=True) as call:
            if not is_bound and not placeholder_names(read_handle(asked.prepared_statement_handle).query):
                return None
            most = call.settings.max_json
            return [*call.limited(upload.batches(call), max_rows=1 if is_bound else most, max_bytes=most)]

    def _put(self, call: ServerCall, asked: Message, values: list[pa.RecordBatch] | None) -> Message:
        if isinstance(asked, messages.CommandStatementUpdate):
            count = self._statements.change(call, new_handle(asked.query, _transaction(asked)))
            return messages.DoPutUpdateResult(record_count=count)
        if isinstance(asked, messages.CommandPreparedStatementUpdate):
            handle = read_handle(asked.prepared_statement_handle)
            return messages.DoPutUpdateResult(record_count=self._statements.change(call, handle, values))
        if isinstance(asked, messages.CommandPreparedStatementQuery):
            handle = read_handle(asked.prepared_statement_handle)
            bound = self._statements.bind(handle, values or []).SerializeToString()
            return messages.DoPutPreparedStatementResult(prepared_statement_handle=bound)
        raise UnsupportedError("not a command that takes rows", found=type(asked).__name__)

    def _ingest(self, call: ServerCall, asked: Any, upload: FlightUpload) -> Message:
        self._gate.check_may_change(call.caller)
        rows = upload.rows(call)
        with self._statements.cursor(call, _transaction(asked)) as (cursor, _):
            return messages.DoPutUpdateResult(record_count=ingest(call, cursor, asked, rows))

    def do_exchange(
        self, context: flight.ServerCallContext, descriptor: object, reader: object, writer: object
    ) -> None:
        """Refuse the call. Flight SQL does not use it."""
        with flight_errors(self._gate.settings):
            raise UnsupportedError("Flight SQL has no DoExchange")

    def do_action(self, context: flight.ServerCallContext, action: flight.Action) -> Iterator[bytes]:
        """Prepare a statement, begin or end a transaction, or cancel a query. A cancel needs no slot."""
        quick = self._quick_actions().get(action.type)
        if quick is not None:
            with flight_errors(self._gate.settings):
                return iter(quick(context.get_middleware(MIDDLEWARE).caller, action.body.to_pybytes()))
        with self._call(context, action.type[:40]) as call:
            actions = self._actions(context.peer())
            run = actions.get(action.type)
            if run is None:
                expected = ", ".join((*actions, *self._quick_actions()))
                raise UnsupportedError("unknown action", found=action.type[:100], expected=expected)
            return iter(run(call, action.body.to_pybytes()))

    def _actions(self, peer: str) -> dict[str, Callable[[ServerCall, bytes], Sequence[bytes]]]:
        return {
            "CreatePreparedStatement": self._prepare,
            "BeginTransaction": partial(self._begin, peer),
            "EndTransaction": self._end,
            "GetSessionOptions": self._session,
        }

    def _quick_actions(self) -> dict[str, Callable[[Caller, bytes], Sequence[bytes]]]:
        return {
            "ClosePreparedStatement": lambda *_: (),
            "CancelQuery": self._cancel_query,
            "CancelFlightInfo": self._cancel_info,
            "CloseSession": lambda *_: (messages.CloseSessionResult(status="STATUS_CLOSED").SerializeToString(),),
        }

    def _prepare(self, call: ServerCall, body: bytes) -> Sequence[bytes]:
        asked = _of(messages.ActionCreatePreparedStatementRequest, body)
        handle = new_handle(asked.query, _transaction(asked))
        rows, values = self._statements.prepare(call, handle)
        answer = messages.ActionCreatePreparedStatementResult(
            prepared_statement_handle=handle.SerializeToString(),
            dataset_schema=b"" if rows is None else rows.serialize().to_pybytes(),
            parameter_schema=values.serialize().to_pybytes() if len(values) else b"",
        )
        return (packed(answer),)

    def _begin(self, peer: str, call: ServerCall, _: bytes) -> Sequence[bytes]:
        key = self._transactions.begin(call.caller, peer)
        return (packed(messages.ActionBeginTransactionResult(transaction_id=key)),)

    def _end(self, call: ServerCall, body: bytes) -> Sequence[bytes]:
        asked = _of(messages.ActionEndTransactionRequest, body)
        if not asked.action:
            raise InvalidInputError("the end of a transaction is a commit or a rollback")
        is_commit = asked.action == messages.ActionEndTransactionRequest.END_TRANSACTION_COMMIT
        self._transactions.end(asked.transaction_id, call.caller, call.seconds_left, is_commit=is_commit)
        return ()

    def _session(self, call: ServerCall, _: bytes) -> Sequence[bytes]:
        row = call.cursor().execute("SELECT current_database(), current_schema()").fetchone()
        names = zip(("catalog", "schema"), row, strict=True)
        options = {name: messages.SessionOptionValue(string_value=value) for name, value in names}
        return (messages.GetSessionOptionsResult(session_options=options).SerializeToString(),)

    def _cancel_query(self, caller: Caller, body: bytes) -> Sequence[bytes]:
        info = _of(messages.ActionCancelQueryRequest, body).info
        return (packed(messages.ActionCancelQueryResult(result=self._cancel(caller, info))),)

    def _cancel_info(self, caller: Caller, body: bytes) -> Sequence[bytes]:
        try:
            info = messages.CancelFlightInfoRequest.FromString(body).info
        except DecodeError:
            raise RequestError("not a message of Flight", found=body[:20]) from None
        return (messages.CancelFlightInfoResult(status=self._cancel(caller, info)).SerializeToString(),)

    def _cancel(self, caller: Caller, info: bytes) -> Any:
        """Stop the queries of a FlightInfo, and return whether one of them ran."""
        found = False
        try:
            endpoints = flight.FlightInfo.deserialize(info).endpoints
        except (pa.ArrowException, OSError):
            raise RequestError("not a FlightInfo", found=info[:20]) from None
        for endpoint in endpoints:
            ticket = unpacked(endpoint.ticket.ticket)
            if not isinstance(ticket, messages.TicketStatementQuery):
                continue
            asked = read_handle(ticket.statement_handle).id
            for key, call in [*self._running]:
                if key == asked and call.caller == caller:
                    call.cancel(AbandonedError("the client cancelled the query"))
                    found = True
        results = messages.ActionCancelQueryResult
        return results.CANCEL_RESULT_CANCELLED if found else results.CANCEL_RESULT_NOT_CANCELLABLE

    @contextmanager
    def _cancellable(self, key: bytes, call: ServerCall) -> Iterator[None]:
        if not key:
            raise RequestError("not a ticket of this server")
        self._running.add((key, call))
        try:
            yield
        finally:
            self._running.discard((key, call))

    @contextmanager
    def _call(self, context: flight.ServerCallContext, name: str, *, is_upload: bool = False) -> Iterator[ServerCall]:
        """Run a request in the gate, with errors as clients see them. It ends when its client leaves."""
        caller = context.get_middleware(MIDDLEWARE).caller
        began, outcome = time.monotonic(), "failed"
        calls: list[ServerCall] = []

        def left() -> None:
            self._gate.wake()
            for call in calls:
                call.cancel()

        try:
            with ExitStack() as stack:
                stack.enter_context(flight_errors(self._gate.settings))
                stack.enter_context(self._watch.watching(context, left))
                call = stack.enter_context(self._gate.call(caller, is_upload=is_upload, is_gone=context.is_cancelled))
                calls.append(call)
                yield call
            outcome = "ok"
        finally:
            _LOG.info("%s %s %s %.3f s", name, caller.name, outcome, time.monotonic() - began)


def _handle_asked(asked: Message) -> messages.Handle:
    """Return the handle of a statement or prepared statement."""
    if isinstance(asked, messages.CommandStatementQuery):
        return new_handle(asked.query, _transaction(asked))
    if isinstance(asked, messages.CommandPreparedStatementQuery):
        return read_handle(asked.prepared_statement_handle)
    raise UnsupportedError("not a command that returns rows", found=type(asked).__name__)


def _transaction(message: Any) -> bytes | None:
    return message.transaction_id if message.HasField("transaction_id") and message.transaction_id else None


def _of(kind: type[_M], body: bytes) -> _M:
    """Return the message of an action.

    Raises:
        RequestError: The body has another message.
    """
    message = unpacked(body)
    if not isinstance(message, kind):
        raise RequestError("the action has another message", expected=kind.__name__, found=type(message).__name__)
    return message


def _list_schema(asked: Message) -> pa.Schema:
    if isinstance(asked, messages.CommandGetTables) and asked.include_schema:
        return catalog.DESCRIBED
    return _LISTS[type(asked)][0]


def _info(
    schema: pa.Schema | None, descriptor: flight.FlightDescriptor, ticket: bytes, rows: int = -1
) -> flight.FlightInfo:
    return flight.FlightInfo(schema, descriptor, [flight.FlightEndpoint(ticket, [])], rows, -1)


def _scheme(settings: ServeSettings) -> str:
    return "grpc" if settings.tls_cert is None else "grpc+tls"


def _location(settings: ServeSettings) -> str:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{_scheme(settings)}://{host}:{settings.flight}"


def _certificates(settings: ServeSettings) -> list[tuple[bytes, bytes]] | None:
    if settings.tls_cert is None:
        return None
    return [(Path(settings.tls_cert).read_bytes(), Path(settings.tls_key or settings.tls_cert).read_bytes())]
