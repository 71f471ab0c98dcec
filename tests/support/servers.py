"""Services that tests start on this machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import obstore
from moto.server import ThreadedMotoServer
from obstore.store import HTTPStore

BUCKET = "bucket"


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """An S3 service with one bucket; yields the storage options to reach it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = ThreadedMotoServer("127.0.0.1", port, verbose=False)
    server.start()
    endpoint = f"http://127.0.0.1:{port}"
    obstore.put(HTTPStore(endpoint, client_options={"allow_http": True}), BUCKET, b"")
    yield {
        "aws_access_key_id": "key",
        "aws_secret_access_key": "secret",
        "aws_endpoint": endpoint,
        "region": "us-east-1",
        "allow_http": "true",
    }
    server.stop()
