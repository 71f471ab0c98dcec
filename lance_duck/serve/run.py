"""Runs a server: in this thread until a signal stops it, or in a thread of its own."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Any, Final, Self

from lance_duck.errors import StoreError, UnsupportedError, install_extra
from lance_duck.serve.gate.gate import Gate
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.http.answers import HttpAnswer, json_answer
from lance_duck.serve.http.app import Probe, ProblemAnswer, ServeApp, json_problem
from lance_duck.serve.http.routes import RouteTable
from lance_duck.serve.problems import HttpProblem
from lance_duck.serve.rest.routes import ROUTES
from lance_duck.serve.web.html import accepts_html, problem_page
from lance_duck.serve.web.routes import PAGES, STATEMENTS

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise UnsupportedError("a server needs the package uvicorn", remedy=install_extra("serve")) from error

_DRAIN: Final = 30.0
"""Time that running requests have after a signal, in seconds."""


class Server:
    """A server of one folder, bucket or namespace.

    Args:
        settings: The settings.

    Attributes:
        gate: Admits requests.
        app: The ASGI application.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self.gate = Gate(settings)
        pages = PAGES if settings.web else ()
        self.app = ServeApp(
            self.gate, RouteTable((*ROUTES, *STATEMENTS, *pages)), _probes(self.gate), _problem_answer(settings)
        )
        config = uvicorn.Config(
            self.app,
            settings.host,
            settings.port,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
        )
        self._uvicorn = _Uvicorn(config, self.gate)
        self._thread = threading.Thread(target=self._uvicorn.run, name="lance-duck-server", daemon=True)

    def run(self) -> None:
        """Serve until a signal stops the process."""
        self._uvicorn.run()

    def __enter__(self) -> Self:
        """Start to serve in another thread.

        Raises:
            StoreError: The address is in use.
        """
        self._thread.start()
        self._uvicorn.has_begun.wait()
        if not self._uvicorn.started:
            raise StoreError("the server did not start", where=self.gate.settings.host)
        return self

    def __exit__(self, *_: object) -> None:
        self._uvicorn.stop()
        self._thread.join()

    @property
    def url(self) -> str:
        """Address of the running server, such as "http://127.0.0.1:2333"."""
        host, port = self._uvicorn.servers[0].sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Uvicorn(uvicorn.Server):
    """uvicorn, with a drain of running requests when it stops."""

    def __init__(self, config: uvicorn.Config, gate: Gate) -> None:
        super().__init__(config)
        self._gate = gate
        self.has_begun = threading.Event()

    async def startup(self, sockets: Any = None) -> None:
        """Open the sockets."""
        try:
            await super().startup(sockets)
        finally:
            self.has_begun.set()

    def run(self, sockets: Any = None) -> None:
        """Serve until `stop` or a signal."""
        try:
            super().run(sockets)
        finally:
            self.has_begun.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop after a signal."""
        super().handle_exit(sig, frame)
        self.stop()

    def stop(self) -> None:
        """Refuse new requests, and interrupt running ones after a while."""
        threading.Thread(target=self._gate.stop, args=(_DRAIN,), daemon=True).start()
        self.should_exit = True


def _probes(gate: Gate) -> Mapping[str, Probe]:
    def is_ready() -> HttpAnswer:
        if gate.admission.is_closed:
            return json_answer({"status": "the server stops"}, status=503)
        return json_answer({"status": "ready"})

    return {"/live": lambda: json_answer({"status": "live"}), "/ready": is_ready}


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
        """Return a record as JSON with the keys time, level, logger, message and error."""
        fields = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)
