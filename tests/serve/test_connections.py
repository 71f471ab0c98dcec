"""Clients that hang up, do not read, or send too much; errors before and after the first byte of an answer."""

import http.client
import json
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.tokens import AccessToken, Role
from lance_duck.serve.http.answers import HttpAnswer, StreamedAnswer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.run import Server
from lance_duck.telemetry import prometheus

Handler = Callable[[ServerCall, HttpRequest], HttpAnswer | StreamedAnswer]
MIB = 1 << 20


@contextmanager
def serving(place: Path, handler: Handler, *, is_upload: bool = False, **settings: Any) -> Iterator[Server]:
    """Start a server whose path /x is answered by a handler."""
    route = HttpRoute("POST", "/x", handler, takes_upload=is_upload)
    with Server(ServeSettings(str(place), port=0, **settings), [route]) as server:
        yield server


def post(server: Server, body: bytes = b"", path: str = "/x", **headers: str) -> tuple[int, Any]:
    """Return the status and JSON value of a request."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("POST", path, body, names)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def open_socket(server: Server, request: bytes) -> socket.socket:
    """Open a connection, and send the beginning of a request."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(request)
    return connection


HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\n"


def echo(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    return json_answer({"caller": call.caller.name, "body": request.json()})


class Stages:
    """A handler that reports what happened to it."""

    def __init__(self) -> None:
        self.began, self.ended = threading.Event(), threading.Event()
        self.error: BaseException | None = None

    def run(self, call: ServerCall, request: HttpRequest) -> HttpAnswer:
        """Run until the call is cancelled."""
        self.began.set()
        try:
            while True:
                call.check()
        except RequestError as error:
            self.error = error
            raise
        finally:
            self.ended.set()

    def stream(self, call: ServerCall, request: HttpRequest) -> StreamedAnswer:
        """Send pieces without an end."""
        return StreamedAnswer(self._pieces(call), "text/plain")

    def _pieces(self, call: ServerCall) -> Generator[bytes]:
        try:
            while True:
                self.began.set()
                yield b"x" * MIB
                call.check()
        except RequestError as error:
            self.error = error
            raise
        finally:
            self.ended.set()

    def upload(self, call: ServerCall, request: HttpRequest) -> HttpAnswer:
        """Read an upload to its end."""
        assert request.upload is not None
        size = 0
        try:
            while piece := request.upload():
                size += len(piece)
                self.began.set()
        except RequestError as error:
            self.error = error
            raise
        finally:
            self.ended.set()
        return json_answer(size)


def wait_until_free(server: Server) -> None:
    """Wait until no request runs."""
    assert server.gate.admission.drained(30)
    assert server.gate.uploads.drained(30)


@pytest.mark.parametrize(
    ("stage", "body"),
    [
        ("run", b"Content-Length: 0\r\n\r\n"),
        ("stream", b"Content-Length: 0\r\n\r\n"),
        ("upload", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    ],
)
def test_a_client_that_hangs_up_stops_its_request(tmp_path: Path, stage: str, body: bytes) -> None:
    stages = Stages()
    with serving(tmp_path, getattr(stages, stage), is_upload=stage == "upload") as server:
        connection = open_socket(server, HEAD + body)
        assert stages.began.wait(30)
        connection.close()
        assert stages.ended.wait(30)
        wait_until_free(server)
        assert str(stages.error).startswith("the client closed the connection")


@pytest.mark.parametrize(
    ("stage", "body"),
    [
        ("run", b"Content-Length: 0\r\n\r\n"),
        ("upload", b"Content-Length: 9\r\n\r\nabc"),
        ("upload", b"Content-Length: 99999999\r\n\r\n" + b"x" * 200_000),
    ],
    ids=["no body", "upload", "large upload"],
)
def test_a_client_that_hangs_up_leaves_the_queue(tmp_path: Path, stage: str, body: bytes) -> None:
    stages = Stages()
    is_upload = stage == "upload"
    with serving(tmp_path, getattr(stages, stage), is_upload=is_upload, max_statements=1, max_wait=60.0) as server:
        slots = server.gate.uploads if is_upload else server.gate.admission
        running = open_socket(server, HEAD + body)
        assert stages.began.wait(30)
        waiting = open_socket(server, HEAD + body)
        while not slots.waiting:
            pass
        waiting.close()
        while slots.waiting:
            pass
        assert slots.running == 1
        assert not stages.ended.is_set()
        running.close()
        wait_until_free(server)


def test_a_client_that_does_not_read_is_disconnected(tmp_path: Path) -> None:
    stages = Stages()
    with serving(tmp_path, stages.stream, timeout=0.5) as server:
        connection = open_socket(server, HEAD + b"Content-Length: 0\r\n\r\n")
        assert stages.ended.wait(30)
        wait_until_free(server)
        connection.close()


@pytest.mark.parametrize("sent", [b"", b"3\r\nabc\r\n"], ids=["no byte", "some bytes"])
def test_an_upload_that_stops_gives_its_slot_back(tmp_path: Path, sent: bytes) -> None:
    stages = Stages()
    with serving(tmp_path, stages.upload, is_upload=True, timeout=0.2) as server:
        connection = open_socket(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + sent)
        with connection, connection.makefile("rb") as answer:
            whole = answer.read()  # the server closes the connection
        assert whole.startswith(b"HTTP/1.1 408 ")
        assert b"the body arrives too slowly: expected its next bytes within 0.2 seconds" in whole
        wait_until_free(server)


def test_a_body_that_stops_before_the_gate_is_given_up(tmp_path: Path) -> None:
    with serving(tmp_path, echo, timeout=0.2) as server:
        connection = open_socket(server, HEAD + b"Content-Length: 9\r\n\r\n{")
        with connection, connection.makefile("rb") as answer:
            assert answer.read().startswith(b"HTTP/1.1 408 ")


def test_the_deadline_of_an_upload_ends_its_wait_for_bytes(tmp_path: Path) -> None:
    with serving(tmp_path, Stages().upload, is_upload=True, timeout=600.0) as server:
        head = HEAD + b"x-request-timeout-ms: 200\r\n"
        with open_socket(server, head + b"Content-Length: 9\r\n\r\nabc") as connection:
            assert connection.recv(1000).startswith(b"HTTP/1.1 422 ")
        wait_until_free(server)


def test_a_stop_ends_the_wait_of_an_upload_for_bytes(tmp_path: Path) -> None:
    stages = Stages()
    with serving(tmp_path, stages.upload, is_upload=True) as server:
        connection = open_socket(server, HEAD + b"Content-Length: 9\r\n\r\nabc")
        assert stages.began.wait(30)
        server.gate.stop(0)
        with connection:
            answer = connection.recv(10_000).lower()
        assert answer.startswith(b"http/1.1 503 ")
        assert b"retry-after: 1\r\n" in answer


def test_an_upload_larger_than_the_buffer_arrives_whole(tmp_path: Path) -> None:
    with serving(tmp_path, Stages().upload, is_upload=True) as server:
        assert post(server, b"x" * (5 * MIB + 7)) == (200, 5 * MIB + 7)


def test_an_upload_is_read_while_it_arrives(tmp_path: Path) -> None:
    stages = Stages()
    with serving(tmp_path, stages.upload, is_upload=True) as server:
        connection = open_socket(server, HEAD + b"Content-Length: 6\r\n\r\nabc")
        assert stages.began.wait(30)
        assert not stages.ended.is_set()
        connection.sendall(b"def")
        assert stages.ended.wait(30)
        connection.close()


@pytest.mark.parametrize(("is_upload", "limit"), [(False, "max_json"), (True, "max_body")])
def test_a_body_beyond_the_limit_is_refused(tmp_path: Path, is_upload: bool, limit: str) -> None:
    with serving(tmp_path, Stages().upload if is_upload else echo, is_upload=is_upload, **{limit: 10}) as server:
        status, answer = post(server, b"x" * 11)
        assert (status, answer["error"]) == (413, "the body is too large: expected at most 10 bytes")


@pytest.mark.parametrize(
    "body", [b"{", b"[1]", b"nul", b'"\xff"', b'{"a": "\\ud800"}', b"[" * 100_000, b"{" * 100_000, b"1" * 10_000]
)
def test_a_body_that_is_not_a_json_object_is_refused(tmp_path: Path, body: bytes) -> None:
    with serving(tmp_path, echo) as server:
        status, answer = post(server, body)
        assert (status, answer["code"]) == (400, 13)
        assert answer["error"].startswith("/x: malformed body: expected a JSON object")


def test_an_empty_body_is_an_empty_object(tmp_path: Path) -> None:
    with serving(tmp_path, echo) as server:
        assert post(server) == (200, {"caller": "anyone", "body": {}})


def test_an_error_after_the_first_byte_cuts_the_answer(tmp_path: Path) -> None:
    def fail(call: ServerCall, request: HttpRequest) -> StreamedAnswer:
        def pieces() -> Generator[bytes]:
            yield b"[1, "
            raise RequestError("no more rows")

        return StreamedAnswer(pieces(), "application/json")

    with serving(tmp_path, fail) as server, pytest.raises((http.client.IncompleteRead, ConnectionError)):
        post(server)


def test_a_client_of_http_1_0_gets_a_whole_answer_or_an_error(tmp_path: Path) -> None:
    def count(call: ServerCall, request: HttpRequest) -> StreamedAnswer:
        def pieces() -> Generator[bytes]:
            yield b"[1, "
            if request.json():
                raise RequestError("no more rows")
            while "large" in request.parameters:
                yield b"1, "
            yield b"2]"

        return StreamedAnswer(pieces(), "application/json")

    def send(body: bytes, path: bytes = b"/x") -> bytes:
        head = b"POST %b HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (path, len(body))
        with open_socket(server, head + body) as connection, connection.makefile("rb") as answer:
            return answer.read()

    with serving(tmp_path, count, max_bytes=100) as server:
        whole = send(b"")
        assert b" 200 OK" in whole
        assert b"content-length: 6\r\n" in whole
        assert whole.endswith(b"\r\n\r\n[1, 2]")
        assert b" 400 Bad Request" in send(b'{"fail": true}')
        assert b"the answer is too large" in send(b"", b"/x?large")


def test_an_error_before_the_first_byte_has_its_status(tmp_path: Path) -> None:
    def fail(call: ServerCall, request: HttpRequest) -> StreamedAnswer:
        def pieces() -> Generator[bytes]:
            raise RequestError("no rows")
            yield b""

        return StreamedAnswer(pieces(), "application/json")

    with serving(tmp_path, fail) as server:
        assert post(server) == (400, {"error": "no rows", "code": 13})


def test_an_unexpected_error_is_told_by_the_id_of_its_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(call: ServerCall, request: HttpRequest) -> HttpAnswer:
        raise ZeroDivisionError("/secret/path")

    with serving(tmp_path, fail) as server:
        status, answer = post(server, x_request_id="id-1")
        assert (status, answer["code"]) == (500, 18)
        assert answer["error"] == "internal error; the server's log has the details of request id-1"
    assert "/secret/path" in caplog.text


@pytest.mark.parametrize(("sent", "is_kept"), [("id-1", True), ("x" * 201, False), ("a\xe9", False), ("a\tb", False)])
def test_only_a_short_printable_id_of_a_request_is_kept(tmp_path: Path, sent: str, is_kept: bool) -> None:
    with serving(tmp_path, echo) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
        connection.request("POST", "/x", headers={"x-request-id": sent})
        shown = connection.getresponse().headers["x-request-id"]
        connection.close()
    assert (shown == sent) == is_kept
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) <= 200


def test_an_unknown_method_has_a_common_label_in_metrics(tmp_path: Path) -> None:
    with serving(tmp_path, echo) as server:
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
        connection.request("BREW", "/x")
        assert connection.getresponse().status >= 400
        connection.close()
    text = prometheus.render()
    assert '"_OTHER"' in text
    assert "BREW" not in text


def test_a_client_may_ask_for_a_shorter_deadline(tmp_path: Path) -> None:
    with serving(tmp_path, Stages().run) as server:
        status, answer = post(server, x_request_timeout_ms="50")
        assert (status, answer["error"]) == (422, "the request takes too long: expected at most 0.05 seconds")
        for text in ("0", "-1", "x", "1.5", "9" * 40):
            assert post(server, x_request_timeout_ms=text)[0] == 400


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer secret"},
        {"authorization": f"Basic {b64encode(b'anyone:secret').decode()}"},
        {"x-api-key": "secret"},
        {"cookie": "a=b; lance_duck_token=secret"},
    ],
)
def test_a_token_comes_in_four_ways(tmp_path: Path, headers: dict[str, str]) -> None:
    with serving(tmp_path, echo, tokens=(AccessToken.of("ana", Role.READ, "secret"),)) as server:
        assert post(server, **headers) == (200, {"caller": "ana", "body": {}})
        assert post(server)[0] == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic x"},
        {"x-api-key": ""},
        {"cookie": "lance_duck_token="},
    ],
)
def test_a_wrong_token_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    with serving(tmp_path, echo, tokens=(AccessToken.of("ana", Role.READ, "secret"),)) as server:
        assert post(server, **headers)[0] == 401


@pytest.mark.parametrize("host", ["evil.example", "", "localhost.evil.example:2333", "[::1"])
def test_a_request_for_another_host_is_refused_without_tokens(tmp_path: Path, host: str) -> None:
    with serving(tmp_path, echo) as server:
        assert post(server, host=host)[0] == 421
    with serving(tmp_path, echo, allowed_hosts=("tables.example",)) as server:
        assert post(server, host="tables.example:8080")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "http://["])
def test_a_page_of_another_server_is_refused(tmp_path: Path, origin: str) -> None:
    with serving(tmp_path, echo) as server:
        assert post(server, origin=origin)[0] == 403
        assert post(server, origin=server.url)[0] == 200


def test_running_requests_end_before_the_server_stops(tmp_path: Path) -> None:
    may_end, began = threading.Event(), threading.Event()

    def wait(call: ServerCall, request: HttpRequest) -> HttpAnswer:
        began.set()
        may_end.wait(30)
        return json_answer("done")

    results: list[object] = []
    with serving(tmp_path, wait) as server:
        client = threading.Thread(target=lambda: results.append(post(server)))
        client.start()
        assert began.wait(30)
        stopping = threading.Thread(target=server.__exit__)
        stopping.start()
        while not server.gate.admission.is_closed:
            pass
        may_end.set()
        client.join()
        stopping.join()
    assert results == [(200, "done")]
