"""SQL over HTTP: formats, limits, parameters, and what callers may run."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_duck as ld
from lance_duck.serve.gate.tokens import AccessToken, Role
from lance_duck.serve.run import Server
from lance_duck.serve.web.formats import PARQUET, wanted_format
from lance_duck.serve.web.values import iso_duration, json_values

STREAM = "application/vnd.apache.arrow.stream"
FILE = "application/vnd.apache.arrow.file"
FORM = "application/x-www-form-urlencoded"


def send(url: str, body: bytes | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return the status, the headers and the body of a GET or POST request."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with urlopen(Request(url, body, names)) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
    except HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()


def post(server: Server, query: str, parameters: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    body = json.dumps({"query": query, "parameters": parameters}).encode()
    return send(f"{server.url}/sql", body, Content_Type="application/json", **headers)


def answer(server: Server, query: str, parameters: Any = None) -> dict[str, Any]:
    status, _, body = post(server, query, parameters)
    assert status == 200, body
    return json.loads(body)  # type: ignore[no-any-return]


@pytest.fixture
def numbers(start: Callable[..., Server], tmp_path: Path) -> Server:
    """A server over a table `t` with 3,000 numbers, which accepts changes."""
    ld.write_dataset({"x": range(3000)}, tmp_path / "t.lance")
    return start(tmp_path, write=True)


def test_rows_are_json_by_default(numbers: Server) -> None:
    found = answer(numbers, "SELECT x, x::VARCHAR AS s FROM t WHERE x < 2 ORDER BY x")
    assert found["columns"] == [{"name": "x", "type": "int64"}, {"name": "s", "type": "string"}]
    assert found["rows"] == [[0, "0"], [1, "1"]]
    assert found["truncated"] is False
    assert found["seconds"] >= 0


def test_json_has_at_most_a_thousand_rows_and_says_when_more_exist(numbers: Server) -> None:
    found = answer(numbers, "SELECT x FROM t ORDER BY x")
    assert found["truncated"] is True
    assert found["rows"] == [[x] for x in range(1000)]
    assert answer(numbers, "SELECT x FROM t LIMIT 1000")["truncated"] is False


def test_parameters_are_a_list_or_an_object(numbers: Server) -> None:
    assert answer(numbers, "SELECT x FROM t WHERE x = ?", [7])["rows"] == [[7]]
    assert answer(numbers, "SELECT x FROM t WHERE x = $n", {"n": 8})["rows"] == [[8]]
    assert post(numbers, "SELECT ?", "text")[0] == 400


@pytest.mark.parametrize("accept", [STREAM, FILE])
def test_arrow_has_all_rows(numbers: Server, accept: str) -> None:
    status, headers, body = post(numbers, "SELECT x FROM t ORDER BY x", Accept=accept)
    assert (status, headers["content-type"]) == (200, accept)
    opened = pa.ipc.open_file if accept == FILE else pa.ipc.open_stream
    assert opened(body).read_all() == pa.table({"x": range(3000)})


def test_parquet_has_all_rows(numbers: Server) -> None:
    status, headers, body = post(numbers, "SELECT x, [x] AS l FROM t ORDER BY x", Accept=PARQUET)
    assert status == 200
    assert "attachment" in headers["content-disposition"]
    assert pq.read_table(io.BytesIO(body)).to_pylist() == [{"x": x, "l": [x]} for x in range(3000)]


def test_csv_tells_null_from_an_empty_string(numbers: Server) -> None:
    query = "SELECT 'a\"b,\n' AS s, '' AS e, NULL::VARCHAR AS n, [1, 2] AS l, {'a': 'ü'} AS o, 1.50::DECIMAL(9, 2) AS d"
    status, headers, body = post(numbers, query, Accept="text/csv")
    assert status == 200
    assert headers["x-content-type-options"] == "nosniff"
    assert b',"",,' in body
    rows = list(csv.reader(io.StringIO(body.decode(), newline="")))
    assert rows == [["s", "e", "n", "l", "o", "d"], ['a"b,\n', "", "", "[1, 2]", '{"a": "ü"}', "1.50"]]


@pytest.mark.parametrize("accept", [STREAM, FILE, "text/csv", PARQUET])
def test_a_file_with_too_many_rows_is_an_error(start: Callable[..., Server], tmp_path: Path, accept: str) -> None:
    server = start(tmp_path, max_rows=10)
    assert post(server, "FROM range(10)", Accept=accept)[0] == 200
    status, _, body = post(server, "FROM range(11)", Accept=accept)
    assert status == 413
    assert "too many rows" in json.loads(body)["error"]


@pytest.mark.parametrize("format_", ["csv", "parquet", "arrow", "arrows", "json"])
def test_the_field_format_precedes_the_header(numbers: Server, format_: str) -> None:
    query = urlencode({"query": "SELECT 1 AS one", "format": format_})
    status, headers, _ = send(f"{numbers.url}/sql?{query}", Accept="text/html")
    assert status == 200
    assert "html" not in headers["content-type"]
    assert send(f"{numbers.url}/sql?query=SELECT%201&format=xml")[0] == 400


@pytest.mark.parametrize("format_", ["csv", "parquet", "arrow", "json"])
def test_all_types_have_each_format(numbers: Server, format_: str) -> None:
    query = (
        "SELECT 1::UTINYINT AS a, 'nan'::REAL AS b, 1::HUGEINT AS c, 1.5::DECIMAL(30, 3) AS d, DATE '2026-01-02' AS e,"
        " TIMESTAMPTZ '2026-01-02 03:04:05+02' AS f, INTERVAL '1 month 2 days' AS g, 'ab'::BLOB AS h, uuid() AS i,"
        " MAP {1: 'x'} AS j, union_value(n := 2) AS k, 'x'::ENUM ('x', 'y') AS l, [{'a': [INTERVAL '1 s']}] AS m,"
        " TIME '01:02:03' AS n, '101'::BIT AS o, NULL AS p, [1, 2]::FLOAT[2] AS q, TIMESTAMP_NS '2026-01-02' AS r"
        " FROM t LIMIT 2"
    )
    parameters = urlencode({"query": query, "format": format_})
    status, _, body = send(f"{numbers.url}/sql?{parameters}")
    assert status == 200, body


def test_values_of_json() -> None:
    big = (1 << 53) - 1
    assert json_values(pa.array([big, big + 1, -big - 1, None])) == [big, str(big + 1), str(-big - 1), None]
    assert json_values(pa.array([0.5, float("nan"), float("-inf")])) == [0.5, "NaN", "-Infinity"]
    assert json_values(pa.array([0.1], pa.float32())) == [0.1]
    assert json_values(pa.array([b"\xaa\x00", None])) == ["qgA=", None]
    assert json_values(pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int8()))) == [{"a": 1}, {}]
    assert json_values(pa.array([[(1, "x")]], pa.map_(pa.int8(), pa.string()))) == [[[1, "x"]]]
    assert json_values(pa.array([{"a": [1]}, None])) == [{"a": [1]}, None]
    assert json_values(pa.array([1, None], pa.timestamp("s", "Europe/Paris"))) == ["1970-01-01T00:00:01Z", None]
    assert json_values(pa.array([(1 << 63) - 1, 0], pa.timestamp("us"))) == ["infinity", "1970-01-01T00:00:00"]
    assert json_values(pa.array([(14, 3, -2_500_000_000)], pa.month_day_nano_interval())) == ["P14M3DT-2.5S"]
    assert json_values(pa.array(["a", "b", None]).dictionary_encode()) == ["a", "b", None]
    assert iso_duration(0, 0, 0) == "PT0S"


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [("*/*", "a/x"), ("b/*", "b/z"), ("c/c, b/y;q=0.2, a/x;q=0.1", "b/y"), ("b/y;q=0, */*;q=0.1", "a/x")],
)
def test_the_preferred_format_is_chosen(accept: str, chosen: str) -> None:
    assert wanted_format({"accept": accept}, None, ("a/x", "b/z", "b/y")) == chosen


def test_an_unknown_format_is_not_acceptable(numbers: Server) -> None:
    assert post(numbers, "SELECT 1", Accept="image/png")[0] == 406


def test_a_map_without_entries_is_a_string_in_parquet(numbers: Server) -> None:
    status, _, body = post(numbers, "SELECT MAP {} AS m, 1 AS x", Accept=PARQUET)
    assert status == 200
    assert pq.read_table(io.BytesIO(body)).to_pylist() == [{"m": "[]", "x": 1}]


def test_an_error_in_a_later_row_is_the_error_of_the_client(numbers: Server) -> None:
    query = "SELECT CASE WHEN i = 60000 THEN error('boom') ELSE 'a' END AS e FROM range(100000) r(i)"
    status, _, body = post(numbers, f"SELECT max(e) AS e FROM ({query})")
    assert (status, json.loads(body)["error"]) == (400, "Invalid Input Error: boom")
    status, _, body = post(numbers, f"SELECT e FROM ({query}) WHERE e <> 'a'")
    assert (status, json.loads(body)["error"]) == (400, "Invalid Input Error: boom")


def test_parameters_that_are_nested_too_deeply_are_refused(numbers: Server) -> None:
    nested: list[Any] = []
    for _ in range(900):
        nested = [nested]
    status, _, body = post(numbers, "SELECT ?", [nested])
    assert (status, json.loads(body)["code"]) == (400, 13)


@pytest.mark.parametrize(
    "path", ["/table/t?version=", "/table/t/cell?row=0&column=x&version=", "/table/t/versions?to=1&from="]
)
def test_a_version_with_too_many_digits_is_refused(numbers: Server, path: str) -> None:
    assert send(f"{numbers.url}{path}{'9' * 5000}")[0] == 400
    assert send(f"{numbers.url}{path}{'9' * 20}")[0] == 404


def test_a_form_and_a_link_run_sql(numbers: Server) -> None:
    body = urlencode({"query": "SELECT ? + 1 AS y", "parameters": "[41]"}).encode()
    assert json.loads(send(f"{numbers.url}/sql", body, Content_Type=FORM)[2])["rows"] == [[42]]
    assert json.loads(send(f"{numbers.url}/sql?query=SELECT%201")[2])["rows"] == [[1]]


@pytest.mark.parametrize(("body", "kind"), [(b"SELECT 1", FORM), (b"", FORM), (b"{}", "application/json")])
def test_a_body_without_a_query_is_refused_with_an_example(numbers: Server, body: bytes, kind: str) -> None:
    status, _, text = send(f"{numbers.url}/sql", body, Content_Type=kind)
    assert (status, json.loads(text)["error"]) == (400, '/sql: malformed body: expected {"query": "SELECT …"}')


def test_a_change_needs_post(numbers: Server) -> None:
    query = urlencode({"query": "DELETE FROM t WHERE x = 1"})
    assert send(f"{numbers.url}/sql?{query}")[0] == 403
    assert answer(numbers, "SELECT count(*) FROM t")["rows"] == [[3000]]
    assert post(numbers, "DELETE FROM t WHERE x = 1")[0] == 200
    assert answer(numbers, "SELECT count(*) FROM t")["rows"] == [[2999]]


def test_an_answer_without_a_token_tells_how_to_send_one(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start(tmp_path, tokens=(AccessToken.of("r", Role.READ, "reads"),))
    status, headers, _ = send(f"{server.url}/sql?query=SELECT%201")
    assert (status, headers["www-authenticate"]) == (401, "Bearer")


def test_a_change_needs_a_token_that_writes(start: Callable[..., Server], tmp_path: Path) -> None:
    ld.write_dataset({"x": [1]}, tmp_path / "t.lance")
    tokens = (AccessToken.of("r", Role.READ, "reads"), AccessToken.of("w", Role.WRITE, "writes"))
    server = start(tmp_path, write=True, tokens=tokens)
    assert post(server, "SELECT 1")[0] == 401
    assert post(server, "SELECT 1", Authorization="Bearer reads")[0] == 200
    assert post(server, "DELETE FROM t", Authorization="Bearer reads")[0] == 403
    assert post(server, "DELETE FROM t", Authorization="Bearer writes")[0] == 200


def test_a_server_that_only_reads_refuses_changes(start: Callable[..., Server], tmp_path: Path) -> None:
    ld.write_dataset({"x": [1]}, tmp_path / "t.lance")
    server = start(tmp_path)
    assert post(server, "DELETE FROM t")[0] == 403
    assert post(server, "SET threads = 1")[0] == 403


@pytest.mark.parametrize(
    "query", ["FROM '{}/secret.lance'", "FROM lance_scan('{}/secret.lance')", "FROM read_text('{}/secret.txt')"]
)
def test_paths_outside_the_served_folder_are_refused(start: Callable[..., Server], tmp_path: Path, query: str) -> None:
    ld.write_dataset({"x": ["hidden"]}, tmp_path / "secret.lance")
    (tmp_path / "secret.txt").write_text("hidden")
    (tmp_path / "served").mkdir()
    server = start(tmp_path / "served", write=True)
    status, _, body = post(server, query.format(tmp_path))
    assert status == 403, body
    assert b"hidden" not in body


def test_sql_can_be_turned_off(start: Callable[..., Server], tmp_path: Path) -> None:
    assert post(start(tmp_path, sql=False), "SELECT 1")[0] == 403


def test_sql_does_not_need_the_pages(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start(tmp_path, web=False)
    assert answer(server, "SELECT 1")["rows"] == [[1]]
    assert send(f"{server.url}/", Accept="text/html")[0] == 404
    assert send(f"{server.url}/sql?query=SELECT%201", Accept="text/html")[0] == 406


def test_a_page_of_another_site_cannot_send_sql(numbers: Server) -> None:
    body = urlencode({"query": "DELETE FROM t"}).encode()
    for origin in ("http://elsewhere.example", "null"):
        assert send(f"{numbers.url}/sql", body, Content_Type=FORM, Origin=origin)[0] == 403
    assert answer(numbers, "SELECT count(*) FROM t")["rows"] == [[3000]]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"query": 1}', b'{"query": "SELECT ?", "parameters": 1}', b'{"query": "\\ud800"}']
)
def test_malformed_bodies_are_refused(numbers: Server, body: bytes) -> None:
    assert send(f"{numbers.url}/sql", body, Content_Type="application/json")[0] == 400


@pytest.mark.parametrize("body", [b"query=%ff", b"query=SELECT+?&parameters={", "query=ü".encode()])
def test_malformed_forms_are_refused(numbers: Server, body: bytes) -> None:
    assert send(f"{numbers.url}/sql", body, Content_Type=FORM)[0] == 400


def test_an_error_of_sql_is_a_bad_request(numbers: Server) -> None:
    status, _, body = post(numbers, "SELECT y FROM t")
    assert status == 400
    assert '"y"' in json.loads(body)["error"]


def test_json_that_a_client_calls_a_form_is_read_as_json(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start(tmp_path)
    body = b' {"query": "SELECT ? AS x", "parameters": [7]}'
    url = f"{server.url}/sql"
    status, _, rows = send(url, body, Content_Type="application/x-www-form-urlencoded", Accept="text/csv")
    assert (status, rows.split()) == (200, [b'"x"', b"7"])


def test_an_unknown_field_of_the_body_is_refused(start: Callable[..., Server], tmp_path: Path) -> None:
    body = json.dumps({"query": "SELECT 1", "limit": 1}).encode()
    status, _, body = send(f"{start(tmp_path).url}/sql", body, Content_Type="application/json")
    assert status == 400
    assert b"unknown field 'limit'" in body
