"""No answer of a server that hides locations contains the folder, in any protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest
from google.protobuf.message import Message
from mcp import Client
from pyarrow import flight
from support.flight_sql import creation

import lance_duck as ld
from lance_duck import examples
from lance_duck.duck.changes.upkeep.operations import OPERATIONS
from lance_duck.duck.history.names import NAMES
from lance_duck.serve.flight.messages import packed, unpacked
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.rest.routes import ROUTES
from lance_duck.serve.run import Server
from lance_duck.wire.pb import flight_sql_pb2 as messages

FUNCTIONS = [
    f"SELECT * FROM lance_{name}({arguments})"
    for name in sorted({*NAMES, *(operation.name for operation in OPERATIONS if operation.name)})
    for arguments in ("'trips'", "'copied', 'km'", "'nope'", "'trips', version => 99")
]
DUCKDB_FUNCTIONS = """
    SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type IN ('table', 'pragma', 'table_macro')
"""
STATEMENTS = [
    "EXPLAIN FROM trips",
    "EXPLAIN ANALYZE FROM trips",
    "EXPLAIN (FORMAT JSON) FROM trips WHERE km > 3",
    "EXPLAIN (ANALYZE, FORMAT JSON) FROM trips",
    "EXPLAIN SELECT id FROM trips WHERE match(note, 'storm')",
    "EXPLAIN FROM lance_vector_search('zones', 'v', [1.0, 2.0, 3.0, 4.0], k => 2)",
    "EXPLAIN FROM lance_info('trips')",
    "EXPLAIN DELETE FROM trips WHERE km > 3",
    "EXPLAIN MERGE INTO trips USING zones z ON trips.id = z.zone WHEN MATCHED THEN DELETE",
    "FROM (FROM lance_files('trips')) SELECT max(base)",
    "FROM lance_info('copied')",
    "FROM lance_files('copied')",
    "SHOW INDEXES ON trips",
    "PRAGMA database_list",
    "SHOW ALL TABLES",
    "FROM trips AT (VERSION => 99)",
    "FROM '/nope/x.lance'",
    "CREATE TABLE trips AS SELECT 1 AS x",
    "DROP INDEX nope ON trips",
    "OPTIMIZE trips",
    "VACUUM zones",
    "CHECKPOINT zones",
    "CALL lance_compact('zones')",
]
PAGES = ["/", "/nope", "/table/trips", "/table/nope", "/table/trips?version=99", "/table/trips/versions?from=1&to=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with example tables, a clone whose files are in another folder, and a damaged table."""
    folder = tmp_path_factory.mktemp("hidden") / "secret place"
    examples.write(str(folder), rows=200)
    ld.dataset(folder / "zones.lance").shallow_clone(folder / "copied.lance", 1)
    ld.write_dataset({"x": [1]}, folder / "damaged.lance")
    next((folder / "damaged.lance").rglob("*.manifest")).write_bytes(b"nothing")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """A server that hides locations, with all protocols."""
    with Server(ServeSettings(str(folder), port=0, write=True, mcp=True, flight=0, locations=False)) as server:
        yield server


def body(url: str, data: bytes | None = None, accept: str = "application/json") -> str:
    """Return the body of an answer, whatever its status."""
    headers = {"Accept": accept, "Content-Type": "application/json"}
    try:
        with urlopen(Request(url, data, headers)) as answer:
            return str(answer.read(), errors="replace")
    except HTTPError as error:
        return str(error.read(), errors="replace")


def names_folder(text: str, folder: Path) -> bool:
    return any(each in text for each in (str(folder), quote(str(folder)), str(folder.parent)))


def sql(server: Server, query: str) -> str:
    return body(f"{server.url}/sql", json.dumps({"query": query}).encode())


def test_a_location_is_relative_to_the_served_folder(server: Server) -> None:
    assert json.loads(sql(server, "SELECT uri FROM lance_info('trips')"))["rows"] == [["trips.lance"]]
    assert json.loads(sql(server, "SELECT DISTINCT base FROM lance_files('copied')"))["rows"] == [["zones.lance"]]
    assert "uri=trips.lance" in sql(server, "EXPLAIN FROM trips")


def test_locations_are_shown_by_default(start: Callable[..., Server], folder: Path) -> None:
    shown = start(folder, mcp=True)
    place = str(folder / "trips.lance")
    assert json.loads(sql(shown, "SELECT uri FROM lance_info('trips')"))["rows"] == [[place]]
    assert f"uri={place}" in sql(shown, "EXPLAIN FROM trips")
    found = with_tools(shown, [("query", {"sql": "SELECT uri FROM lance_info('trips')"})])
    assert "trips.lance" in found[0]
    assert not names_folder(found[0], folder)


def test_no_rows_of_sql_contain_the_folder(server: Server, folder: Path) -> None:
    listed = json.loads(sql(server, DUCKDB_FUNCTIONS))["rows"]
    of_duckdb = [f"SELECT * FROM {name}() LIMIT 900" for (name,) in listed]
    answers = {query: sql(server, query) for query in (*FUNCTIONS, *STATEMENTS, *of_duckdb)}
    assert not [query for query, answer in answers.items() if names_folder(answer, folder)]
    assert sum('"rows"' in answer for answer in answers.values()) > 40


def test_no_page_contains_the_folder(server: Server, folder: Path) -> None:
    queries = [f"/sql?{urlencode({'query': query})}" for query in (*FUNCTIONS[::4], *STATEMENTS)]
    explained = [f"/sql?{urlencode({'query': 'FROM trips', 'action': 'explain'})}"]
    answers = {path: body(server.url + path, accept="text/html") for path in (*PAGES, *queries, *explained)}
    assert not [path for path, answer in answers.items() if names_folder(answer, folder)]
    assert "trips.lance" in answers[explained[0]]


@pytest.mark.parametrize("name", ["trips", "copied", "damaged", "nope"])
def test_no_answer_of_the_namespace_contains_the_folder(server: Server, folder: Path, name: str) -> None:
    bodies: list[dict[str, Any]] = [{}, {"filter": "nope > 1", "k": 1, "vector": [1.0]}, {"version": 99}]
    answers = {}
    for route in ROUTES:
        path = route.path.replace("{id}", name).replace("{index_name}", "pickup_idx")
        loses = "drop" in route.path or (route.path.endswith("deregister") and name != "nope")
        for sent in bodies if route.method == "POST" and not loses else []:
            answers[path, str(sent)] = body(server.url + path, json.dumps(sent).encode())
        if route.method == "GET":
            answers[path, ""] = body(server.url + path)
    assert not [key for key, answer in answers.items() if names_folder(answer, folder)]


def with_tools(server: Server, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return the answers of tools as texts."""

    async def run() -> list[str]:
        async with Client(f"{server.url}/mcp") as client:
            return [str((await client.call_tool(name, arguments)).content[0].text) for name, arguments in calls]

    return asyncio.run(run())


def test_no_answer_of_a_tool_contains_the_folder(server: Server, folder: Path) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("list_tables", {}), ("explain", {"sql": "FROM trips"})]
    for name in ("trips", "copied", "damaged", "nope"):
        calls += [(tool, {"table": name}) for tool in ("describe_table", "sample", "versions")]
        calls += [("search", {"table": name, "words": "storm"}), ("changes", {"table": name, "from_version": 99})]
    calls += [("query", {"sql": query}) for query in (*FUNCTIONS[::4], *STATEMENTS)]
    answers = with_tools(server, calls)
    assert not [call for call, answer in zip(calls, answers, strict=True) if names_folder(answer, folder)]


LISTS = [
    *(messages.CommandGetSqlInfo(), messages.CommandGetXdbcTypeInfo(), messages.CommandGetCatalogs()),
    *(messages.CommandGetDbSchemas(), messages.CommandGetTableTypes(), messages.CommandGetTables(include_schema=True)),
    *(messages.CommandGetPrimaryKeys(table=name) for name in ("trips", "damaged", "nope")),
    *(messages.CommandGetImportedKeys(table="trips"), messages.CommandGetExportedKeys(table="damaged")),
    messages.CommandGetCrossReference(pk_table="trips", fk_table="damaged"),
]


def told(calls: list[Callable[[], Any]]) -> str:
    """Return the answers of calls, or their errors, as one text."""
    answers = []
    for call in calls:
        try:
            answers.append(str(call()))
        except (flight.FlightError, pa.ArrowException) as error:
            answers.append(f"{error!r} {error}")
    return "\n".join(answers)


def with_flight(client: flight.FlightClient, command: Message) -> str:
    """Return the schemas, rows, statistics and errors of a command as a text."""
    descriptor = flight.FlightDescriptor.for_command(packed(command))

    def of_rows() -> tuple[Any, ...]:
        info = client.get_flight_info(descriptor)
        tables = [client.do_get(endpoint.ticket).read_all() for endpoint in info.endpoints]
        shown = [(table.schema.to_string(show_field_metadata=True), table.to_pylist()) for table in tables]
        described = [
            bytes(each)
            for table in tables
            if "table_schema" in table.column_names
            for each in table["table_schema"].to_pylist()
        ]
        return info, info.serialize(), shown, described

    return told([of_rows, lambda: client.get_schema(descriptor).schema.to_string(show_field_metadata=True)])


def test_no_list_of_flight_contains_the_folder(server: Server, folder: Path) -> None:
    with flight.connect(server.flight_url) as client:
        answers = {str(command): with_flight(client, command) for command in LISTS}
        answers["flights"] = told([lambda: [*client.list_flights()], client.list_actions])
    assert not [command for command, answer in answers.items() if names_folder(answer, folder)]
    assert "trips" in answers[str(LISTS[5])]


def test_no_rows_or_errors_of_flight_contain_the_folder(server: Server, folder: Path) -> None:
    damaged = ["FROM damaged", "SELECT count(*) FROM damaged", "INSERT INTO damaged VALUES (1)", "DROP TABLE damaged.x"]
    queries = [*FUNCTIONS[::4], *STATEMENTS, *damaged, "DELETE FROM zones WHERE false RETURNING zone", "SELECT ?"]
    answers = {}
    with flight.connect(server.flight_url) as client:
        for query in queries:
            request = messages.ActionCreatePreparedStatementRequest(query=query)
            prepared = ("CreatePreparedStatement", packed(request))
            answers[query] = with_flight(client, messages.CommandStatementQuery(query=query)) + told(
                [lambda prepared=prepared: unpacked(next(client.do_action(prepared)).body.to_pybytes())]
            )
    assert not [query for query, answer in answers.items() if names_folder(answer, folder)]
    assert "trips.lance" in answers["EXPLAIN FROM trips"]


def test_no_answer_to_a_flight_upload_contains_the_folder(server: Server, folder: Path) -> None:
    rows = pa.table({"nope": [1]})
    answers = []
    with flight.connect(server.flight_url) as client:
        for name in ("trips", "damaged", "nope/..", str(folder)):
            command = unpacked(creation(name).command)
            for mode in ("IF_EXISTS_APPEND", "IF_EXISTS_FAIL"):
                assert isinstance(command, messages.CommandStatementIngest)
                command.table_definition_options.if_exists = getattr(messages.CommandStatementIngest, mode)
                writer, _ = client.do_put(flight.FlightDescriptor.for_command(packed(command)), rows.schema)
                writer.write_table(rows)
                answers.append(told([writer.close]).replace(str(command), ""))
    assert not [answer for answer in answers if names_folder(answer, folder)]
