"""Local services other than S3 for tests: Azurite, and a server with the XML interface of GCS.

Available GCS emulators lack conditional puts and multipart uploads in that interface. This one supports both, keeps the
promises of GCS, and can throttle.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode
from xml.sax.saxutils import escape

from werkzeug.serving import WSGIRequestHandler, make_server

HOME = Path(os.environ.get("LANCE_DUCK_HOSTS") or Path(sys.prefix) / "hosts")
AZURITE = HOME / "azurite" / "node_modules" / ".bin" / "azurite-blob"
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The one account of Azurite, and its key, which its documentation tells."""
BUCKET = "bucket"


@contextmanager
def azure_service() -> Iterator[dict[str, str]]:
    """Start Azurite with one container; yields the storage options to reach it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(AZURITE), "--blobPort", str(port), "--inMemoryPersistence", "--silent", "--disableTelemetry"]
    process = subprocess.Popen([*command, "--skipApiVersionCheck"], stdout=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}/{ACCOUNT}"
    try:
        _create_container(endpoint)
        yield {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": ACCOUNT_KEY,
            "azure_storage_endpoint": endpoint,
            "allow_http": "true",
        }
    finally:
        process.terminate()
        process.wait()


def _create_container(endpoint: str) -> None:
    headers = {"x-ms-date": f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S} GMT", "x-ms-version": "2021-12-02"}
    signed = "PUT" + "\n" * 12 + "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    signed += f"/{ACCOUNT}/{ACCOUNT}/{BUCKET}\nrestype:container"
    digest = hmac.new(base64.b64decode(ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}", "Content-Length": "0"}
    request = urllib.request.Request(f"{endpoint}/{BUCKET}?restype=container", method="PUT", headers=headers)
    for _ in range(300):
        try:
            urllib.request.urlopen(request).close()
            return
        except OSError:  # not started yet, or connection refused
            time.sleep(0.1)
    raise TimeoutError("Azurite does not start")


def azure_token(seconds: float) -> str:
    """Return a shared access signature for the account of Azurite, which expires after some seconds."""
    until = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    version, permissions, protocols = "2018-11-09", "rwdlac", "https,http"
    said = [ACCOUNT, permissions, "b", "sco", "", until, "", protocols, version, ""]
    signature = hmac.new(base64.b64decode(ACCOUNT_KEY), "\n".join(said).encode(), hashlib.sha256).digest()
    facts = {"sv": version, "ss": "b", "srt": "sco", "sp": permissions, "se": until, "spr": protocols}
    return urlencode({**facts, "sig": base64.b64encode(signature).decode()})


TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
TOKEN_SECONDS = 242
"""Token lifetime in seconds: clients fetch a new token 240 seconds before the end."""


class Gcs:
    """A WSGI application with one bucket.

    Attributes:
        objects: Content and generation by key.
        uploads: Unfinished uploads by id: key and parts by number.
        begun: Number of started uploads.
        refusals: Number of requests to throttle next.
        is_expired: Whether to reject all requests because of expired credentials.
        tokens: Issued access tokens, like those of Google's metadata service; requests must use the last one.
    """

    def __init__(self) -> None:
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes]]] = {}
        self.begun = self.refusals = 0
        self.is_expired = False
        self.tokens: list[str] = []
        self._generation = 0
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(size)
        key = unquote(environ["RAW_URI"].split("?")[0]).removeprefix(f"/{BUCKET}").removeprefix("/")
        query = dict(parse_qsl(environ["QUERY_STRING"], keep_blank_values=True))
        with self._lock:
            if environ["PATH_INFO"] == TOKEN_PATH:
                self.tokens.append(f"token-{len(self.tokens)}")
                answer = json.dumps(
                    {"access_token": self.tokens[-1], "expires_in": TOKEN_SECONDS, "token_type": "Bearer"}
                )
                status, headers, answer = "200 OK", {"Content-Type": "application/json"}, answer.encode()
            elif self.is_expired or (self.tokens and environ.get("HTTP_AUTHORIZATION") != f"Bearer {self.tokens[-1]}"):
                status, headers, answer = "401 Unauthorized", {}, b"Invalid Credentials"
            elif self.refusals:
                self.refusals -= 1
                status, headers, answer = "429 Too Many Requests", {}, b""
            else:
                status, headers, answer = self._answer(environ["REQUEST_METHOD"], key, query, environ, body)
        headers.setdefault("Content-Length", str(len(answer)))
        start_response(status, list(headers.items()))
        return [answer]

    def _answer(
        self, method: str, key: str, query: dict[str, str], environ: dict[str, Any], body: bytes
    ) -> tuple[str, dict[str, str], bytes]:
        if "uploads" in query:
            self.begun += 1
            upload = f"upload-{self.begun}"
            self.uploads[upload] = key, {}
            return _xml(f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>")
        if "uploadId" in query:
            return self._part(method, query, environ, body)
        if method == "PUT":
            source = environ.get("HTTP_X_GOOG_COPY_SOURCE")
            if source is not None:
                body, _ = self.objects[unquote(source).removeprefix(f"/{BUCKET}/").removeprefix(f"{BUCKET}/")]
            return self._put(key, body, environ)
        if not key:
            return self._list(query)
        if key not in self.objects:
            return "404 Not Found", {}, b""
        if method == "DELETE":
            del self.objects[key]
            return "204 No Content", {}, b""
        data, generation = self.objects[key]
        return _content(data, environ.get("HTTP_RANGE"), _about(generation), is_head=method == "HEAD")

    def _put(self, key: str, data: bytes, environ: dict[str, Any]) -> tuple[str, dict[str, str], bytes]:
        wanted = environ.get("HTTP_X_GOOG_IF_GENERATION_MATCH")
        if wanted is not None and int(wanted) != self.objects.get(key, (b"", 0))[1]:
            return "412 Precondition Failed", {}, b""
        self._generation += 1
        self.objects[key] = data, self._generation
        status, headers, _ = _xml("<CopyObjectResult/>")
        return status, headers | _about(self._generation), b"<CopyObjectResult/>"

    def _part(
        self, method: str, query: dict[str, str], environ: dict[str, Any], body: bytes
    ) -> tuple[str, dict[str, str], bytes]:
        if query["uploadId"] not in self.uploads:
            return "404 Not Found", {}, b""
        key, parts = self.uploads[query["uploadId"]]
        if method == "PUT":
            parts[int(query["partNumber"])] = body
            return "200 OK", {"ETag": f'"{query["partNumber"]}"'}, b""
        del self.uploads[query["uploadId"]]
        if method == "DELETE":
            return "204 No Content", {}, b""
        self._put(key, b"".join(parts[number] for number in sorted(parts)), environ)
        return _xml('<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>')

    def _list(self, query: dict[str, str]) -> tuple[str, dict[str, str], bytes]:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = max(query.get("start-after", ""), query.get("continuation-token", ""))
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        is_below = {key: delimiter and delimiter in key[len(prefix) :] for key in keys}
        page = keys[: int(query.get("max-keys", 1000))]
        folders = {prefix + key[len(prefix) :].split(delimiter)[0] + delimiter for key in page if is_below[key]}
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"{self.objects[key][1]}"</ETag><Size>{len(self.objects[key][0])}</Size></Contents>'
            for key in page
            if not is_below[key]
        )
        entries += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in folders)
        if len(page) < len(keys):
            entries += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        return _xml(f"<ListBucketResult>{entries}</ListBucketResult>")


@contextmanager
def gcs_service() -> Iterator[tuple[Gcs, dict[str, str]]]:
    """Start a service with the XML interface of GCS; yields it and its storage options."""

    class Quiet(WSGIRequestHandler):
        def log(self, *args: Any) -> None:
            """Log nothing."""

    app = Gcs()
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    account = {
        "gcs_base_url": f"http://127.0.0.1:{server.server_port}",
        "disable_oauth": True,
        "client_email": "duck@example.org",
        "private_key": "a private key",
        "private_key_id": "its id",
    }
    try:
        yield app, {"google_service_account_key": json.dumps(account), "allow_http": "true"}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _about(generation: int) -> dict[str, str]:
    """Return the headers of an object."""
    modified = "Thu, 01 Jan 2026 00:00:00 GMT"
    return {"ETag": f'"{generation}"', "x-goog-generation": str(generation), "Last-Modified": modified}


def _content(
    data: bytes, wanted: str | None, headers: dict[str, str], *, is_head: bool
) -> tuple[str, dict[str, str], bytes]:
    if wanted is None:
        return "200 OK", headers | {"Content-Length": str(len(data))}, b"" if is_head else data
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(0, len(data) - int(last))
    end = min(int(last) + 1, len(data)) if first and last else len(data)
    if start >= len(data):
        return "416 Range Not Satisfiable", {"Content-Range": f"bytes */{len(data)}"}, b""
    return "206 Partial Content", headers | {"Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}, data[start:end]


def _xml(text: str) -> tuple[str, dict[str, str], bytes]:
    return "200 OK", {"Content-Type": "application/xml"}, text.encode()
