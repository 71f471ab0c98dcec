"""What an operator sees of requests: spans of OpenTelemetry, and lines of the log."""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import lance_duck as ld
from lance_duck.serve.gate.tokens import AccessToken, Role
from lance_duck.serve.run import Server
from lance_duck.telemetry import observing

pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def send(url: str, body: bytes | None = None, **headers: str) -> int:
    """Send a request, read its answer, and return the status."""
    try:
        with urlopen(Request(url, body, headers)) as answer:
            answer.read()
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code


def query(text: str) -> bytes:
    return json.dumps({"query": text}).encode()


@pytest.fixture
def served(start: Callable[..., Server], tmp_path: Path) -> Server:
    ld.write_dataset({"id": [1, 2, 3]}, tmp_path / "t.lance")
    return start(tmp_path, write=True)


@pytest.fixture
def spans(served: Server) -> Iterator[Callable[[], list[ReadableSpan]]]:
    """A function that stops the server, and returns its spans in the order of their begin."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def ended() -> list[ReadableSpan]:
        served.__exit__()
        return sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    ld.instrument(provider, MeterProvider())
    yield ended
    observing.connect(None)


def test_a_request_is_a_span_with_its_statement_as_a_child(served: Server, spans: Any) -> None:
    assert send(f"{served.url}/sql", query("FROM t"), accept="text/csv") == 200
    outer, inner = spans()
    assert (outer.name, outer.kind.name, outer.status.status_code.name) == ("POST /sql", "SERVER", "UNSET")
    assert dict(outer.attributes) == {
        "http.request.method": "POST",
        "url.path": "/sql",
        "url.scheme": "http",
        "http.route": "/sql",
        "http.response.status_code": 200,
    }
    assert (inner.name, inner.parent.span_id) == ("SELECT t", outer.context.span_id)
    assert (outer.parent, inner.context.trace_id) == (None, outer.context.trace_id)


def test_a_change_and_its_commit_belong_to_the_request(served: Server, spans: Any) -> None:
    assert send(f"{served.url}/sql", query("INSERT INTO t VALUES (4)")) == 200
    found = spans()
    ids = {span.context.span_id: span.name for span in found}
    parents = {span.name: ids.get(span.parent.span_id) for span in found if span.parent}
    assert parents == {"INSERT t": "POST /sql", "COMMIT t": "INSERT t"}


def test_the_span_of_the_client_is_the_parent(served: Server, spans: Any) -> None:
    send(f"{served.url}/sql", query("SELECT 1"), traceparent=f"00-{TRACE}-{PARENT}-01")
    send(f"{served.url}/sql", query("SELECT 1"), traceparent="nonsense")
    first, statement, second, _ = spans()
    assert (f"{first.context.trace_id:032x}", f"{first.parent.span_id:016x}") == (TRACE, PARENT)
    assert statement.context.trace_id == first.context.trace_id
    assert second.parent is None


@pytest.mark.parametrize(
    ("path", "status", "name"),
    [("/nope", 404, "GET"), ("/table/t?version=9", 404, "GET /table/{t}"), ("/sql?query=SELEC", 400, "GET /sql")],
)
def test_an_error_of_the_client_is_no_error_of_the_server(
    served: Server, spans: Any, path: str, status: int, name: str
) -> None:
    assert send(f"{served.url}{path}", accept="application/json") == status
    outer = spans()[0]
    assert (outer.name, outer.status.status_code.name) == (name, "UNSET")
    assert outer.attributes["http.response.status_code"] == status
    assert "error.type" not in outer.attributes
    assert "?" not in outer.attributes["url.path"]


def test_an_error_of_the_server_has_a_type(served: Server, spans: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_duck.serve.gate.call.ServerCall.check", lambda self: 1 / 0)
    assert send(f"{served.url}/sql", query("SELECT 1")) == 500
    (span,) = spans()
    assert (span.status.status_code.name, span.attributes["error.type"]) == ("ERROR", "ZeroDivisionError")


def test_probes_have_no_spans(served: Server, spans: Any) -> None:
    assert [send(f"{served.url}/{path}") for path in ("live", "ready")] == [200, 200]
    assert spans() == []


def test_the_log_names_the_token_of_a_request(start: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = start(tmp_path, tokens=(AccessToken.of("ana", Role.READ, "secret"),))
    with caplog.at_level(logging.INFO, "lance_duck.serve"):
        assert send(f"{server.url}/sql", query("SELECT 1"), authorization="Bearer secret") == 200
        assert send(f"{server.url}/sql", query("SELECT 1"), authorization="Bearer wrong") == 401
        server.__exit__()
    lines = [record.getMessage().split() for record in caplog.records if record.levelno == logging.INFO]
    assert {(line[2], line[-1]) for line in lines} == {("200", "ana"), ("401", "-")}
    assert "secret" not in caplog.text


def finished() -> Counter[str]:
    """Return how many SELECTs have ended, by outcome."""
    gc.collect()  # ends statements of other tests
    found = [each for each in ld.metrics() if each.name == "lance_duck_statements_total"]
    return Counter({each.labels["outcome"]: int(each.value) for each in found if each.labels["kind"] == "select"})


def running() -> float:
    return sum(each.value for each in ld.metrics() if each.name == "lance_duck_running_statements")


MANY = "SELECT range AS i, md5(range::VARCHAR) AS text FROM range({})"


@pytest.mark.parametrize("accept", ["application/json", "text/csv", "application/vnd.apache.arrow.stream", "text/html"])
def test_a_statement_is_counted_once_with_all_its_rows(served: Server, accept: str) -> None:
    before = finished()
    assert send(f"{served.url}/sql", query(MANY.format(60_000)), accept=accept) == 200
    served.__exit__()
    assert (finished() - before, running()) == ({"ok": 1}, 0)


@pytest.mark.parametrize(
    ("text", "milliseconds", "status", "outcome"),
    [
        ("SELECT CASE WHEN range < 500 THEN 1 ELSE error('late') END AS x FROM range(600)", "60000", 400, "error"),
        (f"SELECT max(text) FROM ({MANY.format(10**12)})", "200", 422, "interrupted"),
    ],
)
def test_a_statement_that_fails_between_rows_has_an_outcome(
    served: Server, text: str, milliseconds: str, status: int, outcome: str
) -> None:
    before = finished()
    headers = {"accept": "application/json", "x-request-timeout-ms": milliseconds}
    assert send(f"{served.url}/sql", query(text), **headers) == status
    served.__exit__()
    assert (finished() - before, running()) == ({outcome: 1}, 0)


def test_slow_statements_of_a_server_are_logged_with_the_time_of_all_rows(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ld.write_dataset({"id": [1, 2, 3]}, tmp_path / "t.lance")
    monkeypatch.setenv("LANCE_DUCK_SLOW_STATEMENT_MS", "0")
    with caplog.at_level(logging.WARNING, "lance_duck.slow"):
        assert send(f"{start(tmp_path).url}/sql", query("FROM t WHERE id > 1"), accept="text/csv") == 200
    (record,) = [each for each in caplog.records if each.name == "lance_duck.slow"]
    assert record.getMessage().partition(": ")[2].startswith("FROM t WHERE id > ?\n")
    assert "LanceScan: uri=" in record.getMessage()


@pytest.mark.parametrize(
    ("before", "variable", "expected"),
    [
        ("", "", "False "),
        ("", "otlp", "False OTEL_TRACES_EXPORTER is set, but OpenTelemetry is not configured"),
        ("", "none", "False "),
        (
            "from opentelemetry import trace; from opentelemetry.sdk.trace import TracerProvider\n"
            "trace.set_tracer_provider(TracerProvider())",
            "otlp",
            "True ",
        ),
    ],
)
def test_the_command_uses_the_providers_of_its_process(before: str, variable: str, expected: str) -> None:
    script = f"""
import io, logging, os
os.environ["OTEL_TRACES_EXPORTER"] = {variable!r}
log = io.StringIO()
logging.basicConfig(stream=log, format="%(message)s")
{before}
from lance_duck import otel
from lance_duck.telemetry import observing
otel.instrument_if_configured()
print(observing.is_observed(), log.getvalue().partition(";")[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{expected}\n"
