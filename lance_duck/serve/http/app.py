"""The ASGI application: a request passes the gate, a handler answers it in a worker thread, and the answer is sent.

An error before the first byte has its own status. After it, the connection is closed without the end of the body, so
that no client takes a cut answer for a whole one. Answers to HTTP/1.0 are not streamed, because it does not mark the
end of a body.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, closing
from contextvars import copy_context
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.gate import Gate
from lance_duck.serve.gate.log_fields import USER_NAME
from lance_duck.serve.gate.refusals import LimitError, RequestError
from lance_duck.serve.gate.tokens import NOBODY, Caller
from lance_duck.serve.http.answers import JSON, HttpAnswer, StreamedAnswer
from lance_duck.serve.http.body import Body, Message, Receive
from lance_duck.serve.http.headers import check_origin, headers_of, parameters_of, request_id_of, timeout_of, token_of
from lance_duck.serve.http.mounts import MountedApp, Send, pass_on
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute, RouteTable
from lance_duck.serve.problems import HttpProblem
from lance_duck.telemetry.metrics import HTTP_REQUEST_SECONDS
from lance_duck.telemetry.observing import ObservedRequest, ServedRequest

Scope = Mapping[str, Any]
Probe = Callable[[], HttpAnswer]
ProblemAnswer = Callable[[HttpProblem, Mapping[str, str], str], HttpAnswer]
"""Returns the answer of a problem, from the headers of a request and its path with the query."""

_LOG: Final = logging.getLogger(__name__)
_NEEDS_NO_TOKEN: Final = ("/live", "/ready")
_METHODS: Final = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")
"""Methods in metrics. All others are "_OTHER", so that clients cannot add series."""


class ServeApp:
    """The application.

    Args:
        gate: Admits requests.
        routes: The routes.
        probes: Answers of GET requests that run without a slot, by path.
        mounts: Applications of other libraries, by path.
        problem_answer: Makes the answer of an error.
    """

    def __init__(
        self,
        gate: Gate,
        routes: RouteTable,
        probes: Mapping[str, Probe],
        mounts: Mapping[str, MountedApp] = MappingProxyType({}),
        problem_answer: ProblemAnswer | None = None,
    ) -> None:
        self.gate = gate
        self._problem_answer = problem_answer or json_problem
        self._routes = routes
        self._probes = probes
        self._mounts = mounts
        settings = gate.settings
        threads = 2 * (settings.max_statements + settings.max_waiting) + 4
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="lance-duck-serve")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event, as ASGI defines it."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        async with AsyncExitStack() as running:
            await receive()
            for app in self._mounts.values():
                await running.enter_async_context(app.running())
            await send({"type": "lifespan.startup.complete"})
            await receive()
        self._threads.shutdown(wait=True)
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and log it. Probes are not observed."""
        headers = headers_of(scope)
        path = scope["raw_path"].decode("latin-1")
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        seen = ServedRequest(method, path, scope["scheme"], headers)
        observed = None if path in self._probes else ObservedRequest(seen)
        failed: Exception | None = None
        request_id = request_id_of(headers) or uuid4().hex
        sender = _Sender(send, request_id, self.gate.settings.timeout)
        began = time.monotonic()
        try:
            await self._answer(scope, headers, receive, sender)
        except Exception as error:  # every error becomes an answer
            failed = error
            problem = HttpProblem.of(error, request_id)
            level = logging.DEBUG if problem.status < 500 or isinstance(error, RequestError) else logging.ERROR
            _LOG.log(level, "request %s failed", request_id, exc_info=error, extra={USER_NAME: sender.caller})
            if not sender.status:
                query = scope["query_string"].decode("latin-1")
                shown = replace(problem, text=self._public(problem))
                answer = self._problem_answer(shown, headers, f"{path}?{query}" if query else path)
                await sender.whole(replace(answer, headers={**answer.headers, **problem.headers}))
        elapsed = time.monotonic() - began
        fields = (scope["method"], path, sender.status, elapsed, request_id, sender.caller)
        _LOG.info("%s %s %s %.3f s %s %s", *fields, extra={USER_NAME: sender.caller})
        HTTP_REQUEST_SECONDS.observe(elapsed, method, sender.route, str(sender.status))
        if observed is not None:
            observed.end(sender.route, sender.status, failed)

    def _public(self, problem: HttpProblem) -> str:
        """Return the text of a problem. Locations are left out of server errors, and if the server hides them."""
        settings = self.gate.settings
        return problem.text if settings.locations and problem.status < 500 else settings.without_place(problem.text)

    async def _answer(self, scope: Scope, headers: Mapping[str, str], receive: Receive, sender: _Sender) -> None:
        settings = self.gate.settings
        path = scope["raw_path"].decode("latin-1")
        probe = self._probes.get(path) if scope["method"] in ("GET", "HEAD") else None
        if probe and path in _NEEDS_NO_TOKEN:
            await sender.whole(probe())
            return
        check_origin(headers, settings)
        found = None if probe else self._routes.get(scope["method"], path)
        caller = NOBODY if found and found[0].is_open else self.gate.caller(token_of(headers))
        sender.caller = caller.name
        if probe:
            await sender.whole(probe())
            return
        mounted = self._mounts.get(path.rstrip("/"))
        if mounted is not None:
            body = Body(receive, settings.max_json, settings.timeout)
            await pass_on(mounted, {**scope}, await body.read(), body, sender.forward)
            return
        if found is None:
            raise self._routes.missing(scope["method"], path)
        route, names = found
        sender.route = route.path
        if route.is_change:
            self.gate.check_may_change(caller)
        body = Body(receive, settings.max_body if route.takes_upload else settings.max_json, settings.timeout)
        request = HttpRequest(
            scope["method"],
            path,
            names,
            parameters_of(scope),
            headers,
            b"" if route.takes_upload else await body.read(),
            body.next_piece if route.takes_upload else None,
        )
        is_streamed = scope["http_version"] != "1.0"
        await self._run(_Exchange(self.gate, caller, route, request, body, is_streamed=is_streamed), body, sender)

    async def _run(self, exchange: _Exchange, body: Body, sender: _Sender) -> None:
        """Send what an exchange produces. If the client goes away, the exchange is stopped."""
        loop = asyncio.get_running_loop()
        produced = exchange.produce()
        steps: Callable[..., Any] = copy_context().run  # spans and interrupts belong to the request, in any thread
        watcher = asyncio.create_task(_stop_when_gone(body, exchange))
        try:
            while (item := await loop.run_in_executor(self._threads, steps, next, produced, None)) is not None:
                await sender.send(item)
            await sender.end()
        finally:
            watcher.cancel()
            await loop.run_in_executor(self._threads, steps, produced.close)


def json_problem(problem: HttpProblem, headers: Mapping[str, str], path: str) -> HttpAnswer:
    """Return a problem as JSON, as clients of the REST namespace expect it."""
    return HttpAnswer(json.dumps({"error": problem.text, "code": problem.code}).encode(), JSON, problem.status)


async def _stop_when_gone(body: Body, exchange: _Exchange) -> None:
    await body.wait_until_gone()
    exchange.stop()


class _Exchange:
    """One request on its way through the gate and its handler."""

    def __init__(
        self, gate: Gate, caller: Caller, route: HttpRoute, request: HttpRequest, body: Body, *, is_streamed: bool
    ) -> None:
        self._gate = gate
        self._caller = caller
        self._route = route
        self._request = request
        self._body = body
        self._is_streamed = is_streamed
        self._call: ServerCall | None = None
        self._is_stopped = False

    def produce(self) -> Generator[HttpAnswer | StreamedAnswer | bytes]:
        """Yield the answer, and then the pieces of a streamed one. Runs in worker threads, one step at a time."""
        timeout = timeout_of(self._request.headers)
        is_upload = self._route.takes_upload
        with self._gate.call(
            self._caller, timeout=timeout, is_upload=is_upload, is_gone=lambda: self._is_stopped
        ) as call:
            self._call = call
            if self._is_stopped:
                call.cancel()
            call.check()
            request = self._of_call(call)
            answer = self._gate.repeats.once(self._key(), lambda: self._route.handler(call, request))
            if isinstance(answer, HttpAnswer):
                yield answer
                return
            with closing(answer.pieces) as pieces:
                if not self._is_streamed:
                    yield HttpAnswer(self._joined(pieces), answer.media_type, headers=answer.headers)
                    return
                first = next(pieces, b"")  # an error so far has its own status
                yield answer
                yield first
                yield from pieces

    def _joined(self, pieces: Iterable[bytes]) -> bytes:
        """Return all pieces of an answer.

        Raises:
            LimitError: They are too large.
        """
        whole, limit = bytearray(), self._gate.settings.max_bytes
        for piece in pieces:
            whole += piece
            if len(whole) > limit:
                raise LimitError(
                    "the answer is too large", expected=f"at most {limit} bytes", remedy="send HTTP/1.1 requests"
                )
        return bytes(whole)

    def _of_call(self, call: ServerCall) -> HttpRequest:
        """Return the request. Its upload ends with an error when the call is cancelled."""
        upload = self._request.upload
        if upload is None:
            return self._request
        call.when_stopped(self._body.give_up)

        def next_piece() -> bytes:
            call.check()
            return upload()

        return replace(self._request, upload=next_piece)

    def stop(self) -> None:
        """Stop the handler, or do not begin it, because the client is gone."""
        self._is_stopped = True
        self._gate.wake()
        if self._call is not None:
            self._call.cancel()

    def _key(self) -> tuple[str, ...] | None:
        """Return the key of a change that runs once, or None.

        It leaves out the rows of an upload, which are read only while the change runs. The same id with other rows
        therefore repeats a change.
        """
        request_id = request_id_of(self._request.headers)
        if not self._route.is_change or not request_id:
            return None
        parameters = repr(sorted(self._request.pairs))
        body = sha256(self._request.body).hexdigest()
        return self._caller.name, request_id, self._request.path.rstrip("/"), parameters, body


class _Sender:
    """Sends an answer.

    Attributes:
        status: HTTP status, or 0 before the first byte.
        route: Path of the route, for metrics.
        caller: Name of the token, for the log. "-" until the token is known.
    """

    def __init__(self, send: Send, request_id: str, seconds: float) -> None:
        self._send = send
        self._request_id = request_id
        self._seconds = seconds
        self.route = ""
        self.caller = "-"
        self.status = 0

    async def whole(self, answer: HttpAnswer) -> None:
        """Send an answer and its end."""
        await self.send(answer)
        await self.end()

    async def forward(self, message: Message) -> None:
        """Send a message of a mounted application."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        async with asyncio.timeout(self._seconds):  # the client may not read
            await self._send(message)

    async def send(self, item: HttpAnswer | StreamedAnswer | bytes) -> None:
        """Send the head of an answer with its body, or a piece of a streamed one."""
        if isinstance(item, bytes):
            await self._piece(item)
            return
        headers = {"content-type": item.media_type, "x-request-id": self._request_id, **item.headers}
        if isinstance(item, HttpAnswer):
            headers["content-length"] = str(len(item.body))
        self.status = item.status if isinstance(item, HttpAnswer) else 200
        pairs = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": self.status, "headers": pairs})
        if isinstance(item, HttpAnswer):
            await self._piece(item.body)

    async def _piece(self, piece: bytes) -> None:
        if piece:
            async with asyncio.timeout(self._seconds):  # the client may not read
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        """End the body."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
