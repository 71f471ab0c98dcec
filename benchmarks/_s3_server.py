"""A local object store that delays every request and records it.

`python -m benchmarks._s3_server MILLISECONDS` prints its port. It supports the part of S3 that table formats use:
range reads, conditional puts, multipart uploads and listings. `/-/log` returns the requests since the last call, as
JSON: [method, key, bytes sent, bytes received, seconds from start to end].
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class Traffic:
    """Requests to the store.

    Attributes:
        requests: Number of requests.
        size: Bytes of objects and listings, in both directions.
        log: Every request: method, key, bytes sent, bytes received, when it came and when it was answered.
    """

    requests: int
    size: int
    log: list[Any]


@dataclass(frozen=True)
class Server:
    """A store that runs in another process."""

    endpoint: str

    @property
    def options(self) -> dict[str, str]:
        """Storage options to reach it, by the names that all implementations know."""
        return {
            "aws_access_key_id": "key",
            "aws_secret_access_key": "secret",
            "aws_endpoint": self.endpoint,
            "aws_region": "us-east-1",
            "allow_http": "true",
        }

    def traffic(self) -> Traffic:
        """Return the requests since the last call."""
        with urllib.request.urlopen(f"{self.endpoint}/-/log") as answer:
            log = json.loads(answer.read())
        return Traffic(len(log), sum(sent + received for _, _, sent, received, *_ in log), log)


@contextmanager
def s3_server(milliseconds: float) -> Iterator[Server]:
    """Run a store that delays each request by this time."""
    command = [sys.executable, "-m", "benchmarks._s3_server", str(milliseconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Server(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.terminate()


class _Objects:
    """The objects of one bucket, and uploads that have not ended."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.objects: dict[str, tuple[bytes, str, float]] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.log: list[Any] = []

    def put(self, key: str, data: bytes) -> str:
        tag = f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'
        self.objects[key] = data, tag, time.time()
        return tag


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects = _Objects()
    wait = 0.0
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        key, query = self._begin()
        if self.path.startswith("/-/log"):
            with self.objects.lock:
                log, self.objects.log = self.objects.log, []
            self._send(200, json.dumps(log).encode(), record=False)
        elif not key:
            self._list(query)
        else:
            self._object(key)

    def do_HEAD(self) -> None:
        key, _ = self._begin()
        self._object(key)

    def do_PUT(self) -> None:
        key, query = self._begin()
        if "uploadId" in query:
            self.objects.uploads[query["uploadId"]][int(query["partNumber"])] = self._body
            self._send(200, headers={"ETag": f'"{query["partNumber"]}"'})
            return
        source = self.headers.get("x-amz-copy-source")
        with self.objects.lock:
            if self.headers.get("If-None-Match") == "*" and key in self.objects.objects:
                status, tag = 412, ""
            else:
                data = self._body if source is None else self.objects.objects[self._key_of(unquote(source))][0]
                status, tag = 200, self.objects.put(key, data)
        body = f"<CopyObjectResult><ETag>{tag}</ETag></CopyObjectResult>".encode() if source else b""
        self._send(status, body, {"ETag": tag} if tag else {})

    def do_POST(self) -> None:
        key, query = self._begin()
        if "uploads" in query:
            upload = f"u{time.monotonic_ns()}"
            self.objects.uploads[upload] = {}
            fields = f"<Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key><UploadId>{upload}</UploadId>"
            self._send(200, f"<InitiateMultipartUploadResult>{fields}</InitiateMultipartUploadResult>".encode())
        elif "uploadId" in query:
            parts = self.objects.uploads.pop(query["uploadId"])
            with self.objects.lock:
                tag = self.objects.put(key, b"".join(parts[number] for number in sorted(parts)))
            fields = f"<Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key><ETag>{tag}</ETag>"
            self._send(200, f"<CompleteMultipartUploadResult>{fields}</CompleteMultipartUploadResult>".encode())
        else:
            for name in re.findall(rb"<Key>(.*?)</Key>", self._body):
                self.objects.objects.pop(name.decode(), None)
            self._send(200, b"<DeleteResult></DeleteResult>")

    def do_DELETE(self) -> None:
        key, query = self._begin()
        self.objects.uploads.pop(query.get("uploadId", ""), None)
        self.objects.objects.pop(key, None)
        self._send(204)

    def log_message(self, *arguments: Any) -> None:
        """Log nothing."""

    def _begin(self) -> tuple[str, dict[str, str]]:
        self._came = time.monotonic()
        size = int(self.headers.get("Content-Length") or 0)
        self._body = self.rfile.read(size) if size else b""
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        if not self.path.startswith("/-/"):
            time.sleep(self.wait)
        return self._key_of(unquote(parts.path)), query

    def _key_of(self, path: str) -> str:
        return path.lstrip("/").removeprefix(BUCKET).lstrip("/")

    def _object(self, key: str) -> None:
        found = self.objects.objects.get(key)
        if found is None:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>" if self.command == "GET" else b"")
            return
        data, tag, modified = found
        headers = {"ETag": tag, "Last-Modified": formatdate(modified, usegmt=True), "Accept-Ranges": "bytes"}
        bounds = _RANGE.fullmatch(self.headers.get("Range") or "")
        if bounds is None:
            self._send(200, data, headers)
            return
        first, last = bounds.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= len(data):
            self._send(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            return
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
        self._send(206, data[start:stop], headers)

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after", "")
        most = int(query.get("max-keys", 1000))
        items: list[str] = []
        folders: dict[str, None] = {}
        last, is_cut = "", False
        with self.objects.lock:
            keys = sorted(key for key in self.objects.objects if key.startswith(prefix) and key > after)
        for key in keys:
            folder, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if cut and prefix + folder + cut in folders:
                continue
            if len(items) + len(folders) == most:
                is_cut = True
                break
            last = key
            if cut:
                folders[prefix + folder + cut] = None
                continue
            data, tag, modified = self.objects.objects[key]
            when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(modified))
            items.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{when}</LastModified>"
                f"<ETag>{escape(tag)}</ETag><Size>{len(data)}</Size></Contents>"
            )
        body = "".join(items) + "".join(
            f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders
        )
        body += f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>"
        if is_cut:
            body += f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"
        text = f"<ListBucketResult><Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix>{body}</ListBucketResult>"
        self._send(200, text.encode())

    def _send(
        self, status: int, body: bytes = b"", headers: dict[str, str] | None = None, *, record: bool = True
    ) -> None:
        if record:
            sent = 0 if self.command == "HEAD" else len(body)
            key = self._key_of(unquote(urlsplit(self.path).path)) or "?" + urlsplit(self.path).query
            asked = f"{key} {self.headers.get('Range') or ''}".strip()
            entry = [self.command, asked, sent, len(self._body), self._came, time.monotonic()]
            with self.objects.lock:
                self.objects.log.append(entry)
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def main() -> None:
    """Serve until the process is ended."""
    _Handler.wait = float(sys.argv[1]) / 1e3
    server = _Listener(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
