"""Reads the body of a request from the socket, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import TimeoutError as NotInTimeError
from typing import Any

from lance_duck.serve.gate.refusals import AbandonedError, BodyTooLargeError, TimeLimitError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Body:
    """The body of one request.

    Args:
        receive: ASGI's function for the next message.
        limit: Maximum size, in bytes.
        seconds: Maximum time until the next bytes.
    """

    def __init__(self, receive: Receive, limit: int, seconds: float) -> None:
        self._receive = receive
        self._limit = limit
        self._seconds = seconds
        self._size = 0
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            BodyTooLargeError: The body is too large.
            TimeLimitError: The body arrives too slowly.
            AbandonedError: The client went away.
        """
        pieces = []
        while piece := await self._timely():
            pieces.append(piece)
        return b"".join(pieces)

    def next_piece(self) -> bytes:
        """Return the next bytes, or b"" at the end. Called by a worker thread. Raises as `read` does."""
        coming = asyncio.run_coroutine_threadsafe(self._timely(), self._loop)
        try:
            return coming.result(self._seconds + 10)
        except NotInTimeError:
            coming.cancel()
            raise self._slow() from None

    async def wait_until_gone(self) -> None:
        """Return when the client has closed the connection. The body is read before."""
        await self._ended.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _timely(self) -> bytes:
        try:
            return await asyncio.wait_for(self._next(), self._seconds)
        except TimeoutError:
            raise self._slow() from None

    async def _next(self) -> bytes:
        while not self._ended.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise AbandonedError("the client closed the connection before the end of its request")
            if not message.get("more_body", False):
                self._ended.set()
            piece: bytes = message.get("body", b"")
            self._size += len(piece)
            if self._size > self._limit:
                raise BodyTooLargeError("the body is too large", expected=f"at most {self._limit} bytes")
            if piece:
                return piece
        return b""

    def _slow(self) -> TimeLimitError:
        return TimeLimitError(
            "the body arrives too slowly", expected=f"its next bytes within {self._seconds:g} seconds"
        )
