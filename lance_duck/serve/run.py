"""Run a server in this thread until a signal, or in a new thread."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Self

from lance_duck import lazy
from lance_duck.errors import InvalidInputError, NotFoundError, StoreError, UnsupportedError, install_extra
from lance_duck.serve.gate.gate import Gate
from lance_duck.serve.gate.log_fields import USER_NAME, caller_of_record
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.http.answers import HttpAnswer, json_answer
from lance_duck.serve.http.app import Probe, ProblemAnswer, ServeApp, json_problem
from lance_duck.serve.http.routes import HttpRoute, RouteTable
from lance_duck.serve.problems import HttpProblem
from lance_duck.serve.rest.routes import ROUTES
from lance_duck.serve.web.html import accepts_html, problem_page
from lance_duck.serve.web.routes import PAGES, STATEMENTS
from lance_duck.telemetry import prometheus

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise UnsupportedError("a server needs the package uvicorn", remedy=install_extra("serve")) from error

if TYPE_CHECKING:
    from lance_duck.serve.flight import server as flight_server
    from lance_duck.serve.mcp import server as mcp_server
else:
    flight_server = lazy.modules(globals(), "lance_duck.serve.flight", "server")
    mcp_server = lazy.modules(globals(), "lance_duck.serve.mcp", "server")

_IDLE: Final = 120
"""Time that a connection may be unused, in seconds. Clients forget theirs earlier."""
_DRAIN: Final = 30.0
"""Time that running requests have after a signal, in seconds. Meanwhile, the server refuses new requests."""
_CLOSE: Final = 15
"""Further time until connections are closed, whose clients do not read the end of their answers."""


class Server:
    """A server of one folder, bucket or namespace.

    Args:
        settings: The settings.
        routes: The paths that the server answers. Default: the REST namespace, SQL and the pages.

    Attributes:
        gate: Admits requests.
        app: The ASGI application.
    """

    def __init__(self, settings: ServeSettings, routes: Iterable[HttpRoute] | None = None) -> None:
        if routes is None:
            routes = (*ROUTES, *STATEMENTS, *(PAGES if settings.web else ()))
        with ExitStack() as undone:
            self._socket = undone.enter_context(_listening(settings))
            self.gate = Gate(settings)
            undone.callback(self.gate.close)
            self._flight = None if settings.flight is None else flight_server.FlightServer(self.gate)
            if self._flight is not None:
                undone.callback(self._flight.close)
            mounts = {"/mcp": mcp_server.McpApp(self.gate)} if settings.mcp else {}
            probes = _probes(self.gate)
            self.app = ServeApp(self.gate, RouteTable(routes), probes, mounts, _problem_answer(settings))
            self._uvicorn = _Uvicorn(_config(self.app, settings), self.gate)
            undone.pop_all()
        self._thread = threading.Thread(target=self._serve, name="lance-duck-server", daemon=True)

    def run(self, begun: Callable[[], object] = lambda: None) -> None:
        """Serve until SIGTERM or SIGINT. After SIGINT, this raises KeyboardInterrupt.

        Args:
            begun: Called once the server takes requests and signals.
        """
        self._uvicorn.begun = begun
        self._serve()

    def __enter__(self) -> Self:
        """Start to serve in another thread. Raises StoreError if the server does not start."""
        self._thread.start()
        self._uvicorn.has_begun.wait()
        if not self._uvicorn.started:
            raise StoreError("the server did not start", where=self.url)
        return self

    def __exit__(self, *_: object) -> None:
        self._uvicorn.stop()
        self._thread.join()

    @property
    def url(self) -> str:
        """Address of the server, such as "http://127.0.0.1:2333"."""
        host, port = self._socket.getsockname()[:2]
        scheme = "http" if self.gate.settings.tls_cert is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    @property
    def flight_url(self) -> str | None:
        """Address for Flight SQL, such as "grpc://127.0.0.1:31337". None if the server has no Flight SQL."""
        return None if self._flight is None else self._flight.url

    def _serve(self) -> None:
        try:
            with self._socket:
                self._uvicorn.run([self._socket])
        finally:
            if self._flight is not None:
                self._flight.close()
            self.gate.close()


def _config(app: ServeApp, settings: ServeSettings) -> uvicorn.Config:
    """Return uvicorn's settings. Raises InvalidInputError if the certificate is not valid."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=_IDLE,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        timeout_graceful_shutdown=_CLOSE,
    )
    try:
        config.load()
    except ssl.SSLError as error:
        raise InvalidInputError(
            "not a certificate with its key",
            where=settings.tls_cert,
            found=error.reason or str(error),
            remedy="pass --tls-key" if settings.tls_key is None else None,
        ) from None
    return config


def _listening(settings: ServeSettings) -> socket.socket:
    """Open the socket of a server.

    Raises:
        NotFoundError: The file with the certificate or its key does not exist.
        StoreError: The address is in use, or is not an address of this machine.
    """
    for path in (settings.tls_cert, settings.tls_key):
        if path is not None and not os.path.isfile(path):
            raise NotFoundError("no such file", where=path)
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.create_server(address[:2], family=family, backlog=2048)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
        return listener
    except OSError as error:
        is_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        raise StoreError(
            "the server cannot listen",
            where=f"{settings.host}, port {settings.port}",
            found=error.strerror or str(error),
            remedy=f"choose another {'--host' if is_host else '--port'}",
        ) from error


class _Uvicorn(uvicorn.Server):
    """uvicorn, with a drain of running requests when it stops."""

    def __init__(self, config: uvicorn.Config, gate: Gate) -> None:
        super().__init__(config)
        self._gate = gate
        self._is_stopping = False
        self.has_begun = threading.Event()
        self.begun: Callable[[], object] = lambda: None

    async def startup(self, sockets: Any = None) -> None:
        """Open the sockets."""
        try:
            await super().startup(sockets)
            if self.started:
                self.begun()
        finally:
            self.has_begun.set()

    def run(self, sockets: Any = None) -> None:
        """Serve until `stop` or a signal."""
        try:
            super().run(sockets)
        finally:
            self.has_begun.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop after a signal. A second SIGINT stops at once."""
        if sig == signal.SIGINT:
            self.should_exit = self._is_stopping
            super().handle_exit(sig, frame)
            self.should_exit = self._is_stopping
        self.stop()

    def stop(self) -> None:
        """Refuse new requests, and interrupt running ones after a while. Then close the socket."""
        if not self._is_stopping:
            self._is_stopping = True
            threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        self._gate.stop(_DRAIN)
        self.should_exit = True


def _probes(gate: Gate) -> Mapping[str, Probe]:
    def is_ready() -> HttpAnswer:
        if gate.admission.is_closed:
            return json_answer({"status": "the server stops"}, status=503)
        return json_answer({"status": "ready"})

    probes: dict[str, Probe] = {"/live": lambda: json_answer({"status": "live"}), "/ready": is_ready}
    if gate.settings.metrics:
        probes["/metrics"] = lambda: HttpAnswer(prometheus.render().encode(), prometheus.CONTENT_TYPE)
    return probes


def _problem_answer(settings: ServeSettings) -> ProblemAnswer:
    """Return the function for answers of errors: pages for browsers, JSON for other clients."""

    def answer(problem: HttpProblem, headers: Mapping[str, str], path: str) -> HttpAnswer:
        if settings.web and accepts_html(headers):
            return problem_page(settings, problem, path)
        return json_problem(problem, headers, path)

    return answer


class JsonLines(logging.Formatter):
    """Formats log records as JSON, one object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as JSON with the keys time, level, logger, message, user.name and error."""
        fields = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (caller := caller_of_record(record)) is not None:
            fields[USER_NAME] = caller
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)
