"""Services that tests start on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import obstore
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from obstore.store import HTTPStore
from werkzeug.serving import make_server

BUCKET = "bucket"


class _OneAtATime:
    """A WSGI application that handles one request at a time.

    moto checks for an object and then writes it, so two concurrent conditional puts could both succeed, unlike in S3.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            return self._app(environ, start_response)


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """An S3 service with one bucket; yields the storage options to reach it."""
    app = _OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    obstore.put(HTTPStore(endpoint, client_options={"allow_http": True}), BUCKET, b"")
    try:
        yield {
            "aws_access_key_id": "key",
            "aws_secret_access_key": "secret",
            "aws_endpoint": endpoint,
            "region": "us-east-1",
            "allow_http": "true",
        }
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
