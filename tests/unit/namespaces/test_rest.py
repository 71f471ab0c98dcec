"""Namespaces with misbehaving REST services."""

from __future__ import annotations

import json
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError, StoreError
from lance_duck.namespaces import requests

TOKEN = "tok-12345678"


@dataclass
class Service:
    """Responses of a service, for all requests or by path."""

    uri: str = ""
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    by_path: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)


@pytest.fixture
def service() -> Iterator[Service]:
    answers = Service()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            path = self.path.partition("?")[0]
            answers.paths.append(path)
            status, body = answers.by_path.get(path, (answers.status, answers.body))
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **answers.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        answers.uri = f"http://127.0.0.1:{server.server_port}"
        yield answers
        server.shutdown()


def opened(service: Service) -> ld.RestNamespace:
    return ld.RestNamespace(service.uri, headers={"Authorization": f"Bearer {TOKEN}"})


@pytest.mark.parametrize(
    "body",
    [b"<html>", b"[1]", b"\xff\xfe{}", b"[" * 100_000, b'{"x": ' + b"1" * 10_000 + b"}", rb'{"page_token": "\ud800"}'],
)
def test_a_response_that_is_not_a_json_object_is_an_error(service: Service, body: bytes) -> None:
    service.body = body
    namespace = opened(service)
    for call in (namespace.list_tables, lambda: namespace.drop_table("t"), lambda: namespace.create_namespace("a")):
        with pytest.raises(StoreError, match="JSON object"):
            call()


@pytest.mark.parametrize(
    "answer",
    [
        {"tables": {"t": 1}},
        {"tables": ["t", None]},
        {"tables": ["t"], "page_token": "again"},
        {"tables": ["t"], "page_token": {"x": 1}},
    ],
)
def test_an_invalid_or_endless_listing_is_rejected(service: Service, answer: dict[str, object]) -> None:
    service.body = json.dumps(answer).encode()
    with pytest.raises(StoreError):
        opened(service).list_tables()
    assert len(service.paths) <= 2


@pytest.mark.parametrize("location", ["t", "./t.lance", "..", "~/t.lance", "t$", "data/t"])
def test_a_relative_location_is_rejected(service: Service, location: str) -> None:
    service.body = json.dumps({"location": location}).encode()
    namespace = opened(service)
    for call in (lambda: namespace.describe_table("t"), lambda: namespace.create_table("t", {"x": [1]})):
        with pytest.raises(StoreError, match="absolute path"):
            call()
    for other in ("/data/t.lance", "file:///data/t.lance", "s3://bucket/t.lance"):
        service.body = json.dumps({"location": other}).encode()
        assert namespace.describe_table("t").location == other


def test_a_service_does_not_choose_the_folder_of_a_cache(service: Service, tmp_path: Path) -> None:
    lent = {"cache": "/home/victim", "CACHE_SIZE": "1", "aws_region": "r"}
    service.body = json.dumps({"location": "s3://bucket/t.lance", "storage_options": lent}).encode()
    assert opened(service).describe_table("t").storage_options == {"aws_region": "r"}
    own = ld.RestNamespace(service.uri, cache=tmp_path)
    assert own.describe_table("t").storage_options == {"aws_region": "r", "cache": str(tmp_path)}


def test_the_size_of_a_decompressed_response_is_limited(service: Service) -> None:
    packer = zlib.compressobj(wbits=31)
    service.body = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(80)) + packer.flush()
    service.headers = {"content-encoding": "gzip"}
    with pytest.raises(StoreError, match="at most"):
        opened(service).list_tables()


def test_retry_after_does_not_delay_errors(service: Service) -> None:
    service.status, service.headers = 503, {"retry-after": "3600"}
    start = time.monotonic()
    with pytest.raises(StoreError, match="503"):
        opened(service).list_tables()
    assert time.monotonic() - start < 60


def test_errors_and_reprs_contain_no_secrets(service: Service) -> None:
    service.status = 401
    service.body = json.dumps({"error": f"who is Bearer {TOKEN}, or {TOKEN}?", "code": True}).encode()
    with pytest.raises(StoreError, match="who is") as caught:
        opened(service).list_tables()
    assert TOKEN not in str(caught.value)
    for value in (f"Bearer {TOKEN}\nx", f"Bearer {TOKEN}\u2603"):
        with pytest.raises(InvalidInputError, match="Authorization") as refused:
            ld.RestNamespace(service.uri, headers={"Authorization": value})
        assert TOKEN not in str(refused.value)
    service.status, service.body = 200, b'{"location": "s3://ann:hidden-word@bucket/t"}'
    assert "hidden-word" not in repr(opened(service).describe_table("t"))


@pytest.mark.parametrize("uri", ["http://", "http://[::1", "http://h:99999", "http://h/?token=hidden-word", "ftp://h"])
def test_invalid_addresses_are_rejected_immediately(uri: str) -> None:
    with pytest.raises(InvalidInputError, match="invalid namespace address") as caught:
        ld.RestNamespace(uri)
    assert "hidden-word" not in str(caught.value)


def test_a_table_dropped_during_listing_is_skipped(service: Service) -> None:
    service.by_path = {
        "/v1/namespace/%24/table/list": (200, b'{"tables": ["gone", "t"]}'),
        "/v1/table/gone/describe": (404, b"{}"),
        "/v1/table/t/describe": (200, b'{"location": "/data/t.lance"}'),
    }
    namespace = opened(service)
    assert {name: place.location for name, place in namespace.describe_tables().items()} == {"t": "/data/t.lance"}
    with pytest.raises(NotFoundError):
        namespace.describe_table("gone")


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"])
def test_an_endless_response_is_aborted(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "_TIMEOUT", 0.3)
    monkeypatch.setattr(requests, "_LONGEST", 0.3)
    ends = threading.Event()

    def trickle(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(10_000)
            connection.sendall(sent)
            while sent and not ends.wait(0.05):
                connection.sendall(b" ")
            ends.wait(20)

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=trickle, args=(server.accept()[0],), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        namespace = ld.RestNamespace(f"http://127.0.0.1:{server.getsockname()[1]}")
        start = time.monotonic()
        for call in (namespace.list_tables, lambda: namespace.describe_table("t")):
            with pytest.raises(StoreError, match=r"does not respond|the end of the response within"):
                call()
        assert time.monotonic() - start < 10
        ends.set()
