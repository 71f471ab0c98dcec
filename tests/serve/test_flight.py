"""Flight SQL, with ADBC's driver and with plain Flight calls."""

import gc
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import adbc_driver_flightsql as driver
import adbc_driver_manager
import pyarrow as pa
import pytest
import trustme
from pyarrow import flight
from support.flight_sql import SLOW, connected, nothing_runs, rows, wait_until

import lance_duck as ld
from lance_duck.serve.flight.messages import packed, unpacked
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.tokens import AccessToken, Role
from lance_duck.serve.run import Server
from lance_duck.wire.pb import flight_sql_pb2 as messages

TOKENS = (AccessToken.of("ann", Role.WRITE, "secret"), AccessToken.of("bob", Role.READ, "look"))
HEADER = driver.DatabaseOptions.AUTHORIZATION_HEADER.value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the table `t` of 1,000 rows and the view `small`."""
    with ld.connect(tmp_path / "served") as connection:
        connection.execute("CREATE TABLE t AS SELECT range::BIGINT AS id, 'v' || range AS v FROM range(1000)")
        connection.execute("CREATE VIEW small AS SELECT id FROM t WHERE id < 3")
        connection.execute("CREATE TABLE keyed (k BIGINT PRIMARY KEY, v VARCHAR)")
    return tmp_path / "served"


@pytest.fixture
def served(start: Callable[..., Server], folder: Path) -> Server:
    return start(folder, write=True, flight=0)


@pytest.fixture
def cursor(served: Server) -> Iterator[Any]:
    with connected(served) as cursor:
        yield cursor


def refused(cursor: Any, query: str, values: Any = None) -> str:
    with pytest.raises(adbc_driver_manager.Error) as caught:
        rows(cursor, query, values)
    assert "Traceback" not in str(caught.value)
    return str(caught.value)


QUERIES = [
    "SELECT * FROM t ORDER BY id",
    "SELECT v, count(*) AS n FROM t GROUP BY v ORDER BY v LIMIT 7",
    "FROM small ORDER BY ALL",
    "SELECT {'a': [1, 2], 'm': MAP {'k': 1.5}} AS s, 1::HUGEINT AS h, INTERVAL 1 DAY AS i, NULL AS n",
    "SELECT * FROM range(100000) ORDER BY ALL",
    "SELECT repeat('x', 1000) AS s FROM range(20000)",
    "SHOW TABLES",
    "DESCRIBE t",
    "WITH a AS (SELECT id FROM t WHERE id > 990) SELECT sum(id) AS s FROM a",
    "SELECT 1 AS a; SELECT 2 AS b",
    "SELECT * FROM t WHERE id < 0",
    "VALUES (1, 'a'), (2, NULL)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_return_what_a_connection_returns(cursor: Any, folder: Path, query: str) -> None:
    cursor.execute(query)
    found = cursor.fetch_arrow_table()
    with ld.connect(folder, read_only=True) as connection:
        assert found.equals(connection.sql(query).to_arrow_table().cast(found.schema))


def test_an_enum_is_read_as_strings(cursor: Any) -> None:
    query = "SELECT ['a'::ENUM('a', 'b')] AS l, 'b'::ENUM('a', 'b') AS e FROM range(2)"
    assert rows(cursor, query) == [(["a"], "b"), (["a"], "b")]


@pytest.mark.parametrize(
    ("query", "values", "expected"),
    [
        ("SELECT v FROM t WHERE id = ?", (7,), [("v7",)]),
        ("SELECT id FROM t WHERE v = ? AND id < ?", ("v9", 10), [(9,)]),
        ("SELECT id FROM t WHERE id = $2 - $1", (1, 5), [(4,)]),
        ("SELECT v FROM t WHERE id = ?", ("7",), [("v7",)]),
        ("SELECT len(?)", ([1, 2, 3],), [(3,)]),
        ("SELECT ? IS NULL", (None,), [(True,)]),
        ("SELECT $b - $a", pa.record_batch({"a": [1], "b": [10]}), [(9,)]),
        ("SELECT $b - $a", pa.record_batch({"0": [10], "1": [1]}), [(9,)]),
    ],
)
def test_values_of_placeholders(cursor: Any, query: str, values: Any, expected: list[Any]) -> None:
    assert rows(cursor, query, values) == expected


def test_a_prepared_statement_tells_its_placeholders(cursor: Any) -> None:
    assert cursor.adbc_prepare("SELECT * FROM t WHERE id = ? OR id = ?").names == ["1", "2"]
    assert cursor.adbc_prepare("SELECT $b, $a, $b").names == ["b", "a"]
    assert cursor.adbc_execute_schema("SELECT id, v FROM t") == pa.schema({"id": pa.int64(), "v": pa.string()})


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("INSERT INTO t VALUES (5000, 'x'), (5001, 'y')", 2),
        ("UPDATE t SET v = 'new' WHERE id < 3", 3),
        ("DELETE FROM t WHERE id >= 990", 10),
        ("MERGE INTO t USING (SELECT 1 AS id, 'm' AS v) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v", 1),
        ("CREATE TABLE u AS FROM t", 1000),
    ],
)
def test_changes_return_the_number_of_rows(cursor: Any, query: str, count: int) -> None:
    cursor.execute(query)
    assert cursor.rowcount == count
    assert cursor.adbc_statement.execute_update is not None


def test_a_change_runs_once_and_can_return_rows(cursor: Any) -> None:
    assert rows(cursor, "UPDATE t SET id = id + 10000 WHERE id < 2 RETURNING id") == [(10000,), (10001,)]
    assert rows(cursor, "SELECT count(*) FROM t WHERE id >= 10000") == [(2,)]


def test_executemany_makes_one_version(cursor: Any, folder: Path) -> None:
    before = ld.dataset(folder / "t.lance").version
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(2000 + i, "many") for i in range(20)])
    assert cursor.rowcount == 20
    assert ld.dataset(folder / "t.lance").version == before + 1


def test_executemany_changes_nothing_if_a_row_fails(cursor: Any) -> None:
    with pytest.raises(adbc_driver_manager.Error, match="Could not convert"):
        cursor.executemany("INSERT INTO t VALUES (?, 'x')", [("2000",), ("no number",)])
    assert rows(cursor, "SELECT count(*) FROM t") == [(1000,)]


VECTORS = pa.table({"id": range(50_000), "v": pa.array([[1.0, 2.0]] * 50_000, pa.list_(pa.float32(), 2))})


def test_uploads_create_append_and_replace(cursor: Any) -> None:
    assert cursor.adbc_ingest("n", VECTORS, mode="create") == 50_000
    with pytest.raises(adbc_driver_manager.Error, match="the table exists"):
        cursor.adbc_ingest("n", VECTORS, mode="create")
    assert cursor.adbc_ingest("n", VECTORS.select(["v", "id"]).slice(0, 5), mode="append") == 5
    assert rows(cursor, "SELECT count(*), max(id), typeof(any_value(v)) FROM n") == [(50_005, 49_999, "FLOAT[2]")]
    assert cursor.adbc_ingest("n", pa.table({"a": [1]}), mode="replace") == 1
    assert rows(cursor, "FROM n") == [(1,)]
    assert cursor.adbc_ingest("n", pa.table({"a": [2]}), mode="create_append") == 1
    with pytest.raises(adbc_driver_manager.Error, match="no such table"):
        cursor.adbc_ingest("missing", VECTORS, mode="append")
    with pytest.raises(adbc_driver_manager.Error, match="temporary"):
        cursor.adbc_ingest("missing", VECTORS, mode="create", temporary=True)


def test_transactions_are_seen_at_their_commit(served: Server, cursor: Any) -> None:
    with connected(served, autocommit=False) as other:
        for number in range(3):  # the driver prepares the text once, in the first transaction
            other.execute("INSERT INTO t VALUES (?, 'tx')", (7000 + number,))
            assert rows(other, "SELECT count(*) FROM t WHERE v = 'tx'") == [(number + 1,)]
            assert rows(cursor, "SELECT count(*) FROM t WHERE v = 'tx'") == [(number,)]
            other.connection.commit()
        other.execute("DELETE FROM t")
        other.connection.rollback()
        assert rows(cursor, "SELECT count(*) FROM t") == [(1003,)]


def test_an_upload_may_belong_to_a_transaction(served: Server, cursor: Any) -> None:
    with flight.connect(served.flight_url) as client:
        begin = ("BeginTransaction", packed(messages.ActionBeginTransactionRequest()))
        key = unpacked(next(client.do_action(begin)).body.to_pybytes()).transaction_id
        for name in ("n", "m"):
            command = messages.CommandStatementIngest(table=name, transaction_id=key)
            command.table_definition_options.if_not_exist = messages.CommandStatementIngest.IF_NOT_EXIST_CREATE
            writer, _ = client.do_put(flight.FlightDescriptor.for_command(packed(command)), VECTORS.schema)
            writer.write_table(VECTORS)
            writer.close()
        assert not {"n", "m"} & {name for (name,) in rows(cursor, "SHOW TABLES")}
        end = messages.ActionEndTransactionRequest(transaction_id=key, action="END_TRANSACTION_COMMIT")
        assert [*client.do_action(("EndTransaction", packed(end)))] == []
        assert rows(cursor, "SELECT count(*) FROM n, m WHERE n.id = m.id") == [(50_000,)]
        with pytest.raises(pa.ArrowInvalid, match="the transaction is not open"):
            [*client.do_action(("EndTransaction", packed(end)))]


def test_a_transaction_changes_several_tables(served: Server, cursor: Any) -> None:
    with connected(served, autocommit=False) as other:
        other.execute("INSERT INTO t VALUES (-1, 'both')")
        other.execute("CREATE TABLE u AS SELECT 1 AS a")
        assert "does not exist" in refused(cursor, "FROM u")
        other.connection.commit()
    assert rows(cursor, "SELECT a, v FROM u, t WHERE id = -1") == [(1, "both")]


def test_statements_of_one_transaction_may_be_read_in_turns(served: Server) -> None:
    with connected(served, autocommit=False) as first, closing(first.connection.cursor()) as second:
        first.execute("SELECT * FROM range(100000)")
        assert rows(second, "SELECT 1") == [(1,)]
        assert len(first.fetchall()) == 100_000


def test_only_its_client_uses_a_transaction(start: Callable[..., Server], folder: Path) -> None:
    server = start(folder, write=True, flight=0, tokens=TOKENS)
    client = flight.connect(server.flight_url)
    ann, bob = ({"headers": [(b"authorization", b"Bearer " + token)]} for token in (b"secret", b"look"))
    options = flight.FlightCallOptions(**ann)
    begin = flight.Action("BeginTransaction", packed(messages.ActionBeginTransactionRequest()))
    key = unpacked(next(client.do_action(begin, options)).body.to_pybytes()).transaction_id
    query = messages.CommandStatementQuery(query="SELECT 1", transaction_id=key)
    ticket = client.get_flight_info(flight.FlightDescriptor.for_command(packed(query)), options).endpoints[0].ticket
    assert client.do_get(ticket, options).read_all().num_rows == 1
    with pytest.raises(pa.ArrowInvalid, match="the transaction is not open"):
        client.do_get(ticket, flight.FlightCallOptions(**bob)).read_all()


@pytest.mark.parametrize("text", ["BEGIN", "COMMIT", "ROLLBACK", "START TRANSACTION"])
def test_transactions_in_the_text_are_refused(cursor: Any, text: str) -> None:
    assert "through the driver" in refused(cursor, text)


def test_lists_of_tables(cursor: Any) -> None:
    def names(**options: Any) -> list[str]:
        found = cursor.connection.adbc_get_objects(depth="tables", **options).read_all().to_pylist()
        return [
            table["table_name"]
            for each in found
            for schema in each["catalog_db_schemas"]
            for table in schema["db_schema_tables"]
        ]

    rows(cursor, "CREATE SCHEMA other; CREATE TABLE other.t_x AS SELECT 1 AS a")
    assert names() == ["keyed", "small", "t", "t_x"]
    assert names(table_types_filter=["VIEW"]) == ["small"]
    assert names(table_name_filter="t%") == ["t", "t_x"]
    assert names(db_schema_filter="oth%") == ["t_x"]
    assert names(catalog_filter="nothing") == []
    assert cursor.connection.adbc_get_table_types() == ["TABLE", "VIEW"]
    assert cursor.connection.adbc_get_table_schema("t").names == ["id", "v"]
    assert cursor.connection.adbc_get_info()["vendor_name"] == "lance_duck"
    assert (cursor.connection.adbc_current_catalog, cursor.connection.adbc_current_db_schema) == ("lance", "main")


def test_columns_and_keys(cursor: Any) -> None:
    found = cursor.connection.adbc_get_objects(depth="all", table_name_filter="keyed").read_all().to_pylist()
    (table,) = found[0]["catalog_db_schemas"][0]["db_schema_tables"]
    columns = [(each["column_name"], each["xdbc_type_name"]) for each in table["table_columns"]]
    assert columns == [("k", "BIGINT"), ("v", "VARCHAR")]


def test_primary_keys(served: Server, cursor: Any) -> None:
    cursor.execute("CREATE SCHEMA s; CREATE TABLE s.two (a INT, b INT, PRIMARY KEY (a, b))")
    with flight.connect(served.flight_url) as client:
        for name, columns in {"keyed": ["k"], "two": ["a", "b"], "t": [], "small": [], "key%": []}.items():
            command = packed(messages.CommandGetPrimaryKeys(table=name))
            info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
            found = client.do_get(info.endpoints[0].ticket).read_all()
            assert found["column_name"].to_pylist() == columns
            assert found["key_sequence"].to_pylist() == [1, 2][: len(columns)]


@pytest.mark.parametrize(
    "command",
    [
        messages.CommandGetXdbcTypeInfo(),
        messages.CommandGetXdbcTypeInfo(data_type=-5),
        messages.CommandGetSqlInfo(),
        messages.CommandGetSqlInfo(info=[8, 4, 99999]),
        messages.CommandGetPrimaryKeys(table="keyed"),
        messages.CommandGetImportedKeys(table="t"),
        messages.CommandGetExportedKeys(table="t"),
        messages.CommandGetCrossReference(pk_table="t", fk_table="keyed"),
        messages.CommandGetTables(include_schema=True),
        messages.CommandGetCatalogs(),
        messages.CommandGetDbSchemas(db_schema_filter_pattern="m%"),
        messages.CommandGetTableTypes(),
    ],
    ids=lambda command: str(command.DESCRIPTOR.name),
)
def test_lists_have_the_schema_that_they_announce(served: Server, command: Any) -> None:
    with flight.connect(served.flight_url) as client:
        descriptor = flight.FlightDescriptor.for_command(packed(command))
        info = client.get_flight_info(descriptor)
        table = client.do_get(info.endpoints[0].ticket).read_all()
        assert table.schema == info.schema == client.get_schema(descriptor).schema
        table.validate(full=True)


def test_tokens(start: Callable[..., Server], folder: Path) -> None:
    server = start(folder, write=True, flight=0, tokens=TOKENS)
    for options in ({}, {HEADER: "Bearer wrong"}, {HEADER: "secret"}, {"username": "ann", "password": "wrong"}):
        with pytest.raises(adbc_driver_manager.Error, match="UNAUTHENTICATED"), connected(server, **options) as cursor:
            cursor.execute("SELECT 1")
    for options in ({HEADER: "Bearer secret"}, {"username": "anybody", "password": "secret"}):
        with connected(server, **options) as cursor:
            assert rows(cursor, "SELECT count(*) FROM t") == [(1000,)]
            cursor.execute("INSERT INTO t VALUES (0, 'x')")
            cursor.execute("DELETE FROM t WHERE v = 'x'")
    with connected(server, **{HEADER: "Bearer look"}) as cursor:
        assert "the token only reads" in refused(cursor, "INSERT INTO t VALUES (0, 'x')")
        with pytest.raises(adbc_driver_manager.Error, match="the token only reads"):
            cursor.adbc_ingest("n", VECTORS, mode="create")
    client = flight.connect(server.flight_url)
    assert client.authenticate_basic_token("x", "secret") == (b"authorization", b"Bearer secret")


def test_tls(start: Callable[..., Server], folder: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    server = start(folder, flight=0, tokens=TOKENS, tls_cert=str(tmp_path / "server.pem"))
    assert str(server.flight_url).startswith("grpc+tls://127.0.0.1:")
    trusted = {driver.DatabaseOptions.TLS_ROOT_CERTS.value: authority.cert_pem.bytes().decode()}
    with connected(server, **trusted, **{HEADER: "Bearer look"}) as cursor:
        assert rows(cursor, "SELECT count(*) FROM t") == [(1000,)]
    with pytest.raises(adbc_driver_manager.Error), connected(server, **{HEADER: "Bearer look"}) as cursor:
        cursor.execute("SELECT 1")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM missing", "does not exist"),
        ("FROM read_csv('/etc/passwd')", "confined"),
        ("FROM '/elsewhere/t.lance'", "confined"),
        ("SET threads = 1", "does not run this statement"),
        ("INSTALL httpfs", "does not run this statement"),
        ("COPY t TO '/tmp/x.csv'", "does not run this statement"),
        ("SELECT * FROM range(2000000)", "too many rows"),
        (";", "no statement"),
        ("SELECT " + "(" * 4000, "nested too deeply"),
        ("SELECT '" + "x" * 70_000 + "'", "the SQL text is too long"),
    ],
)
def test_refused_statements(cursor: Any, query: str, words: str) -> None:
    assert words in refused(cursor, query)


def test_a_server_that_only_reads_refuses_changes(start: Callable[..., Server], folder: Path) -> None:
    with connected(start(folder, flight=0)) as cursor:
        assert "the server only reads" in refused(cursor, "DELETE FROM t")
        with pytest.raises(adbc_driver_manager.Error, match="the server only reads"):
            cursor.adbc_ingest("n", VECTORS, mode="create")


def test_wrong_numbers_of_values_are_refused(cursor: Any) -> None:
    assert "expected 1, found 0" in refused(cursor, "SELECT ?")
    assert "expected 1, found 2" in refused(cursor, "SELECT ?", (1, 2))
    with pytest.raises(adbc_driver_manager.Error, match="too many rows: expected at most 1"):
        rows(cursor, "SELECT $1", pa.record_batch({"0": [1, 2]}))


def test_paths_are_hidden(start: Callable[..., Server], folder: Path) -> None:
    server = start(folder, flight=0, locations=False)
    with connected(server) as cursor:
        assert str(folder) not in refused(cursor, f"FROM '{folder}/missing.lance'")


GARBAGE = [b"", b"x", b"\xff" * 30, b"SELECT 1", packed(messages.TicketStatementQuery(statement_handle=b"x"))]


@pytest.mark.parametrize("data", GARBAGE)
def test_malformed_requests_are_refused(served: Server, cursor: Any, data: bytes) -> None:
    with flight.connect(served.flight_url) as client:
        descriptor = flight.FlightDescriptor.for_command(data)
        calls: list[Callable[[], Any]] = [
            lambda: client.do_get(flight.Ticket(data)).read_all(),
            lambda: client.get_flight_info(descriptor),
            lambda: client.get_schema(descriptor),
            lambda: client.get_flight_info(flight.FlightDescriptor.for_path("t")),
            *(lambda name=name: [*client.do_action((name, data))] for name in ACTIONS),
        ]
        for call in calls:
            with pytest.raises((pa.ArrowInvalid, pa.ArrowNotImplementedError)) as caught:
                call()
            assert "Traceback" not in str(caught.value)
            assert "internal error" not in str(caught.value)
    assert rows(cursor, "SELECT count(*) FROM t") == [(1000,)]


ACTIONS = ["CreatePreparedStatement", "EndTransaction", "CancelQuery", "Unknown"]


@pytest.mark.parametrize("query", ["DELETE FROM t", "DELETE FROM t RETURNING id"])
def test_a_ticket_cannot_change_anything(served: Server, cursor: Any, query: str) -> None:
    handle = messages.Handle(query=query, id=b"1" * 16).SerializeToString()
    ticket = flight.Ticket(packed(messages.TicketStatementQuery(statement_handle=handle)))
    with flight.connect(served.flight_url) as client, pytest.raises(pa.ArrowInvalid, match="fetched once"):
        client.do_get(ticket).read_all()
    assert rows(cursor, "SELECT count(*) FROM t") == [(1000,)]


def test_a_late_query_is_stopped(start: Callable[..., Server], folder: Path) -> None:
    with connected(start(folder, write=True, flight=0, timeout=0.5)) as cursor:
        assert "takes too long" in refused(cursor, SLOW)
        assert "takes too long" in refused(cursor, f"INSERT INTO t SELECT n, 'x' FROM ({SLOW}) AS s(n)")
        assert rows(cursor, "SELECT count(*) FROM t") == [(1000,)]


def test_the_driver_cancels_a_query(served: Server, cursor: Any) -> None:
    timer = threading.Thread(target=lambda: (wait_until(lambda: not nothing_runs(served)), cursor.adbc_cancel()))
    timer.start()
    assert "cancel" in refused(cursor, SLOW).lower()
    timer.join()
    wait_until(lambda: nothing_runs(served))
    assert rows(cursor, "SELECT 1") == [(1,)]


def test_a_query_is_cancelled_by_its_info(served: Server) -> None:
    with flight.connect(served.flight_url) as client, flight.connect(served.flight_url) as other:
        query = packed(messages.CommandStatementQuery(query=SLOW))
        info = client.get_flight_info(flight.FlightDescriptor.for_command(query))
        request = messages.CancelFlightInfoRequest(info=info.serialize()).SerializeToString()

        def cancel() -> None:
            wait_until(lambda: not nothing_runs(served))
            statuses.append(next(other.do_action(("CancelFlightInfo", request))).body.to_pybytes())

        statuses: list[bytes] = []
        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(flight.FlightCancelledError, match="cancelled the query"):
            client.do_get(info.endpoints[0].ticket).read_chunk()  # `read_all` would raise KeyboardInterrupt
        canceller.join()
        assert [messages.CancelFlightInfoResult.FromString(each).status for each in statuses] == [1]
        answer = next(other.do_action(("CancelFlightInfo", request))).body.to_pybytes()
        assert messages.CancelFlightInfoResult.FromString(answer).status == 3


def test_nothing_runs_after_a_client_leaves(served: Server) -> None:
    for query in (SLOW, "SELECT range, repeat('x', 1000) AS s FROM range(900000)"):
        with flight.connect(served.flight_url) as client:
            command = packed(messages.CommandStatementQuery(query=query))
            info = client.get_flight_info(flight.FlightDescriptor.for_command(command))
            options = flight.FlightCallOptions(timeout=0.5)
            with pytest.raises(flight.FlightTimedOutError):
                client.do_get(info.endpoints[0].ticket, options).read_all() if query == SLOW else held(
                    client.do_get(info.endpoints[0].ticket, options)
                )
        gc.collect()
        wait_until(lambda: nothing_runs(served))


def held(reader: flight.FlightStreamReader) -> None:
    """Read slowly until the deadline."""
    while True:
        threading.Event().wait(0.2)
        reader.read_chunk()


def test_an_upload_that_is_too_large_changes_nothing(start: Callable[..., Server], folder: Path) -> None:
    with connected(start(folder, write=True, flight=0, max_body=100_000)) as cursor:
        with pytest.raises(adbc_driver_manager.Error, match="the upload is too large"):
            cursor.adbc_ingest("n", VECTORS, mode="create")
        assert "n" not in {name for (name,) in rows(cursor, "SHOW TABLES")}


@pytest.mark.parametrize(
    "place", [{"catalog_name": "memory"}, {"db_schema_name": "temp"}, {"db_schema_name": "MEMORY"}]
)
def test_an_upload_never_goes_to_a_database_that_callers_share(cursor: Any, place: dict[str, str]) -> None:
    with pytest.raises(adbc_driver_manager.Error, match="does not write to this database"):
        cursor.adbc_ingest("n", VECTORS, mode="create", **place)


def test_the_size_of_a_text_in_a_handle_is_checked(served: Server) -> None:
    handle = messages.Handle(query="SELECT " + "(" * 4000, id=b"1" * 16).SerializeToString()
    ticket = flight.Ticket(packed(messages.TicketStatementQuery(statement_handle=handle)))
    with flight.connect(served.flight_url) as client, pytest.raises(pa.ArrowInvalid, match="nested too deep"):
        client.do_get(ticket).read_all()


def test_a_busy_server_refuses(start: Callable[..., Server], folder: Path) -> None:
    server = start(folder, flight=0, max_statements=1, max_waiting=0)
    with connected(server) as cursor, server.gate.admission.slot():
        assert "too many requests wait" in refused(cursor, "SELECT 1")


def test_open_transactions_end_with_the_server(folder: Path) -> None:
    with Server(ServeSettings(str(folder), port=0, flight=0, write=True)) as server:
        client = flight.connect(server.flight_url)
        begin = ("BeginTransaction", packed(messages.ActionBeginTransactionRequest()))
        key = unpacked(next(client.do_action(begin)).body.to_pybytes()).transaction_id
        change = messages.CommandStatementQuery(query="DELETE FROM t", transaction_id=key)
        assert client.get_flight_info(flight.FlightDescriptor.for_command(packed(change))).total_records == 1000
    assert ld.dataset(folder / "t.lance").count_rows() == 1000


def test_actions_are_listed(served: Server) -> None:
    with flight.connect(served.flight_url) as client:
        names = [action.type for action in client.list_actions()]
        assert {"CreatePreparedStatement", "BeginTransaction", "CancelFlightInfo"} < {*names}
        assert json.dumps([*client.list_flights()]) == "[]"
