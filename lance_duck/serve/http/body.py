"""Reads the body of a request from the socket, bounded."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final

from lance_duck.serve.gate.refusals import AbandonedError, BodyTooLargeError, SlowBodyError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

_AHEAD: Final = 1 << 20
"""Size from which received bytes wait for the handler before more are received. A connection that closes is noticed
only while the server receives."""


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
        self._loop = asyncio.get_running_loop()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._changed = threading.Condition()
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._kept = 0
        self._has_ended = False
        self._failure: Exception | None = None

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            BodyTooLargeError: The body is too large.
            SlowBodyError: The body arrives too slowly.
            AbandonedError: The client went away.
        """
        pieces = []
        while not self._has_ended:
            try:
                piece, self._has_ended = await asyncio.wait_for(self._next(), self._seconds)
            except TimeoutError:
                raise self._slow() from None
            pieces.append(piece)
        return b"".join(pieces)

    def next_piece(self) -> bytes:
        """Return the next bytes, or b"" at the end. Called by a worker thread while `wait_until_gone` runs.

        Raises:
            Exception: As `read` does, or the error of `give_up`.
        """
        with self._changed:
            if not self._changed.wait_for(self._can_go_on, self._seconds):
                raise self._slow()
            if self._pieces:
                piece = self._pieces.popleft()
                self._kept -= len(piece)
                if self._kept < _AHEAD <= self._kept + len(piece):
                    self._go_on_receiving()
                return piece
            if self._failure is not None:
                raise self._failure
            return b""

    def give_up(self, error: Exception) -> None:
        """Let `next_piece` raise an error instead of waiting."""
        with self._changed:
            self._pieces.clear()
            self._kept = 0
            self._failure = error
            self._changed.notify_all()
        self._go_on_receiving()

    async def wait_until_gone(self) -> None:
        """Receive the rest of the body for `next_piece`. Return when the client has closed the connection."""
        try:
            while not self._has_ended:
                await self._has_room.wait()
                self._keep(*await self._next())
        except AbandonedError as error:
            self.give_up(error)
            return
        except BodyTooLargeError as error:
            self.give_up(error)
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _keep(self, piece: bytes, is_last: bool) -> None:
        with self._changed:
            self._has_ended = is_last
            if piece and self._failure is None:
                self._pieces.append(piece)
                self._kept += len(piece)
            if self._kept >= _AHEAD:
                self._has_room.clear()
            self._changed.notify_all()

    def _go_on_receiving(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._has_room.set)

    def _can_go_on(self) -> bool:
        return bool(self._pieces) or self._has_ended or self._failure is not None

    async def _next(self) -> tuple[bytes, bool]:
        """Receive some bytes, or none, and return them with whether they are the last ones."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise AbandonedError("the client closed the connection before the end of its request")
        piece: bytes = message.get("body", b"")
        self._size += len(piece)
        if self._size > self._limit:
            raise BodyTooLargeError("the body is too large", expected=f"at most {self._limit} bytes")
        return piece, not message.get("more_body", False)

    def _slow(self) -> SlowBodyError:
        return SlowBodyError("the body arrives too slowly", expected=f"its next bytes within {self._seconds:g} seconds")
