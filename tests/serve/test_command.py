"""The command `serve`: its options, its first lines, its errors, and its end after SIGTERM."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import trustme
from pyarrow import flight

import lance_duck as ld
import lance_duck_command as command
from lance_duck.cli import serve
from lance_duck.errors import InvalidInputError
from lance_duck.serve import run as run_module
from lance_duck.serve.gate import process_memory
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.tokens import AccessToken, Role
from lance_duck.serve.http.answers import HttpAnswer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.run import Server

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"}
HANDLERS = '''
import sys
from pathlib import Path

import lance_duck as ld
import lance_duck_command
from lance_duck.serve import run
from lance_duck.serve.gate.statements import run_statements
from lance_duck.serve.http.answers import arrow_answer, json_answer
from lance_duck.serve.http.routes import HttpRoute


def until_it_stops(call):
    """Wait until the server has begun to stop."""
    print("running", flush=True)
    while not GATE.admission.is_closed:
        call.check()


def insert(call, request):
    until_it_stops(call)
    dataset = call.open(("t",))
    dataset.insert({"x": [1, 2]})
    return json_answer({"version": dataset.version})


def read(call, request):
    found = run_statements(call, "SELECT count(*) AS n FROM range(20000000) WHERE range % 2 = 0")
    until_it_stops(call)
    return arrow_answer(found.schema, found.batches)


class Server(run.Server):
    def __init__(self, settings):
        global GATE
        routes = [HttpRoute("POST", "/insert", insert, is_change=True), HttpRoute("POST", "/read", read)]
        super().__init__(settings, routes)
        GATE = self.gate


run.Server = Server
sys.argv = ["lance-duck", *sys.argv[1:]]
lance_duck_command.main()
'''


@contextmanager
def running(*words: str, script: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server in a process. Yield the process and the address."""
    start = [sys.executable, *(["-m", "lance_duck"] if script is None else [str(script)])]
    process = subprocess.Popen(
        [*start, "serve", *words, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        found = re.search(r" at (\S+), ", first)
        assert found, first + process.communicate()[1]
        yield process, found[1]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ld.write_dataset({"x": [0]}, tmp_path / "data" / "t.lance")
    return tmp_path / "data"


def test_a_server_runs_until_sigterm_and_logs_requests_as_json(folder: Path) -> None:
    with running(str(folder), "--log", "json", "--mcp") as (process, url):
        with urlopen(f"{url}/ready") as answer:
            assert json.load(answer) == {"status": "ready"}
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    records = [json.loads(line) for line in err.splitlines()]
    assert any(record["message"].startswith("GET /ready 200") for record in records)


def test_the_log_has_no_lines_of_grpc(folder: Path, tmp_path: Path) -> None:
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    with running(str(folder), "--tls-cert", str(tmp_path / "server.pem"), "--flight", "0") as (process, _):
        assert process.stdout is not None
        location = process.stdout.readline().rpartition(" ")[2].strip()
        with pytest.raises(flight.FlightUnavailableError, match="handshake"):
            list(flight.connect(location).list_flights())
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60) == ("", "")


@pytest.mark.parametrize(("path", "is_change"), [("/insert", True), ("/read", False)])
def test_a_running_request_ends_well_after_sigterm(folder: Path, tmp_path: Path, path: str, is_change: bool) -> None:
    script = tmp_path / "server.py"
    script.write_text(HANDLERS)
    answers: list[bytes] = []
    with running(str(folder), "--write", script=script) as (process, url):

        def ask() -> None:
            with urlopen(Request(f"{url}{path}", b"")) as answer:
                answers.append(answer.read())

        client = threading.Thread(target=ask)
        client.start()
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGTERM)
        client.join()
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert len(answers) == 1
    dataset = ld.dataset(folder / "t.lance")
    if is_change:
        assert json.loads(answers[0]) == {"version": 2}
        assert sorted(dataset.to_table()["x"].to_pylist()) == [0, 1, 2]
        assert dataset.find_problems() == []
    assert dataset.version == (2 if is_change else 1)


def test_a_server_that_stops_answers_503_until_running_requests_end(tmp_path: Path) -> None:
    may_end, runs = threading.Event(), threading.Event()

    def wait(call: ServerCall, request: HttpRequest) -> HttpAnswer:
        runs.set()
        may_end.wait()
        return HttpAnswer(b"{}")

    server = Server(ServeSettings(str(tmp_path), port=0), [HttpRoute("GET", "/wait", wait)])
    answers: list[int] = []
    url = server.url
    with server:
        client = threading.Thread(target=lambda: answers.append(status_of(f"{url}/wait")[0]))
        client.start()
        runs.wait()
        server._uvicorn.stop()
        while not server.gate.admission.is_closed:
            pass
        try:
            assert status_of(f"{url}/live") == (200, b'{"status":"live"}')
            assert status_of(f"{url}/ready") == (503, b'{"status":"the server stops"}')
            with pytest.raises(HTTPError) as refused:
                urlopen(f"{url}/wait")
            with refused.value:
                assert (refused.value.code, refused.value.headers["retry-after"]) == (503, "1")
        finally:
            may_end.set()
            client.join()
    assert answers == [200]
    with pytest.raises(OSError, match="refused"):
        urlopen(f"{url}/live")


def status_of(url: str, **headers: str) -> tuple[int, bytes]:
    """Return the status and the body of a GET request."""
    try:
        with urlopen(Request(url, headers=headers)) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.parametrize("metrics", [True, False])
def test_metrics_are_shown_on_demand_and_need_a_token(folder: Path, metrics: bool) -> None:
    tokens = (AccessToken.of("reader", Role.READ, "secret"),)
    settings = ServeSettings(str(folder), port=0, tokens=tokens, metrics=metrics)
    with Server(settings) as server:
        assert status_of(f"{server.url}/metrics")[0] == 401
        status, text = status_of(f"{server.url}/metrics", authorization="Bearer secret")
    assert (status, b"\nlance_duck_queued_statements 0\n" in text) == ((200, True) if metrics else (404, False))


def failed(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """Run the command in this process. Return its only line on stderr."""
    monkeypatch.setattr(sys, "argv", ["lance-duck", "serve", *words])
    monkeypatch.setattr(serve, "_write_logs", lambda form, level: None)
    monkeypatch.setattr(process_memory, "limit_process", lambda memory: None)
    with pytest.raises(SystemExit) as left:
        command.main()
    out, err = capfd.readouterr()
    assert (left.value.code, out, len(err.splitlines())) == (1, "", 1), err
    return err.removeprefix("lance-duck: ").strip()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nope"], "nope: no such folder"),
        (["tokens"], "tokens: not a folder"),
        (["data", "--token-file", "nope"], "nope: no such token file"),
        (["data", "--token-file", "tokens"], "tokens, line 1: malformed token"),
        (["data", "--tls-cert", "nope"], "nope: no such file"),
        (["data", "--tls-cert", "tokens", "--port", "0"], "tokens: not a certificate with its key"),
        (["data", "--tls-key", "tokens"], "a TLS key needs a certificate"),
        (["data", "--host", "0.0.0.0"], "plain HTTP"),
        (["data", "--tls-cert", "tokens", "--port", "0"], "; pass --tls-key"),
        (["data", "--host", "192.0.2.1", "--insecure"], "the server cannot listen"),
        (["data", "--host", "192.0.2.1", "--insecure"], "; choose another --host"),
        (["data", "--max-bytes", "huge"], "--max-bytes: not a number of bytes"),
        (["data", "--memory", "huge", "--port", "0"], "--memory: not a number of bytes"),
        (["data", "--memory", "1KB", "--port", "0"], "--memory: too little memory"),
        (["data", "--timeout", "0"], "timeout must be positive"),
    ],
)
def test_an_error_is_one_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(folder.parent)
    Path("tokens").write_text("not a token\n")
    assert message in failed(capfd, monkeypatch, *words)


def test_an_address_in_use_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        message = failed(capfd, monkeypatch, str(folder), "--port", str(port))
    assert message.startswith(f"127.0.0.1, port {port}: the server cannot listen: found Address already in use")
    assert message.endswith("; choose another --port")


class Started(Exception):
    """Raised in place of serving."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """A function that runs the command up to the point where it serves. It returns the settings and the output."""
    made: list[ServeSettings] = []

    class Server:
        url = "http://127.0.0.1:2333"

        def __init__(self, settings: ServeSettings) -> None:
            made.append(settings)
            self.flight_url = None if settings.flight is None else f"grpc://127.0.0.1:{settings.flight}"

        def run(self, begun: Callable[[], object]) -> None:
            begun()

    def start(*words: str) -> tuple[ServeSettings, list[str]]:
        monkeypatch.setattr(sys, "argv", ["lance-duck", "serve", *words])
        command.app(standalone_mode=False)
        return made[-1], capsys.readouterr().out.splitlines()

    monkeypatch.setattr(run_module, "Server", Server)
    monkeypatch.setattr(serve, "_write_logs", lambda form, level: None)
    monkeypatch.setattr(process_memory, "limit_process", lambda memory: None)
    return start


def test_flight_sql_has_a_port_of_its_own(folder: Path, started: Callable[..., Any]) -> None:
    settings, lines = started(str(folder), "--flight", "31337")
    assert settings.flight == 31337
    assert lines[1:] == ["Flight SQL at grpc://127.0.0.1:31337"]
    assert started(str(folder))[0].flight is None


def test_options_become_settings(folder: Path, started: Callable[..., Any]) -> None:
    words = (
        "--write --no-sql --mcp --no-web --timeout 5 --max-rows 7 --max-bytes 1MiB --max-body 3MB --max-statements 2"
    )
    more = "--max-waiting 0 --memory 1GB --no-locations --allow-host a --allow-host b --insecure --port 0"
    settings, lines = started(str(folder), *words.split(), *more.split())
    assert settings == ServeSettings(
        str(folder),
        port=0,
        write=True,
        sql=False,
        mcp=True,
        web=False,
        timeout=5,
        max_rows=7,
        max_bytes=1 << 20,
        max_body=3_000_000,
        max_statements=2,
        max_waiting=0,
        memory="1GB",
        locations=False,
        allowed_hosts=("a", "b"),
        insecure=True,
    )
    assert lines == [f"Serving {folder} at http://127.0.0.1:2333, reading and writing"]


def test_the_defaults_read_on_loopback(folder: Path, started: Callable[..., Any]) -> None:
    settings, lines = started(str(folder))
    assert (settings.host, settings.write, settings.tokens, settings.locations) == ("127.0.0.1", False, (), True)
    assert re.fullmatch(r"[1-9]\d* MiB", settings.memory or "")
    assert lines == [f"Serving {folder} at http://127.0.0.1:2333, read-only"]


def test_a_token_is_made_and_printed_once_for_other_machines(folder: Path, started: Callable[..., Any]) -> None:
    settings, lines = started(str(folder), "--host", "0.0.0.0", "--insecure", "--write")
    (token,) = settings.tokens
    assert (token.caller.role, settings.locations) == ("write", False)
    text = lines[1].removeprefix("Token, shown only now: ")
    assert len(text) >= 40
    assert type(token).of("first", token.caller.role, text) == token
    assert text not in repr(settings)


def test_the_token_may_come_from_the_environment(
    folder: Path, started: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANCE_DUCK_TOKEN", "secret")
    settings, lines = started(str(folder))
    (token,) = settings.tokens
    assert token == type(token).of("environment", token.caller.role, "secret")
    assert (token.caller.role, len(lines)) == ("read", 1)
    with pytest.raises(InvalidInputError, match="exclude each other"):
        started(str(folder), "--token-file", "tokens")
    monkeypatch.setenv("LANCE_DUCK_TOKEN", " ")
    with pytest.raises(InvalidInputError, match="the token is empty"):
        started(str(folder))


def test_a_server_with_a_certificate_speaks_https(start: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(files[0])
    issued.private_key_pem.write_to_path(files[1])
    server = start(folder, tls_cert=str(files[0]), tls_key=str(files[1]))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    assert server.url.startswith("https://127.0.0.1:")
    with urlopen(f"{server.url}/ready", context=trusting) as answer:
        assert json.load(answer) == {"status": "ready"}
