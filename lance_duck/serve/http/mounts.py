"""Applications of other libraries below a path of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from lance_duck.serve.http.body import Body, Message, Receive

Send = Callable[[Message], Awaitable[None]]


class MountedApp(Protocol):
    """An ASGI application below a path. The token of a request is checked before."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Return a context in which the application serves requests."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI defines it."""


async def pass_on(app: MountedApp, scope: dict[str, Any], content: bytes, body: Body, send: Send) -> None:
    """Let a mounted application answer a request. If the client goes away, the application is cancelled.

    Args:
        app: The application.
        scope: The request.
        content: The body, which was read before.
        body: Where `content` came from.
        send: ASGI's function for the next message.
    """
    gone = asyncio.create_task(body.wait_until_gone())
    answering = asyncio.create_task(app(scope, _replayed(content, gone), send))
    try:
        await asyncio.wait((gone, answering), return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            answering.result()
    finally:
        for task in (gone, answering):
            task.cancel()
        await asyncio.wait((gone, answering))


def _replayed(content: bytes, gone: asyncio.Task[None]) -> Receive:
    """Return a function that receives the body, and afterwards the end of the connection."""
    waiting = [content]

    async def receive() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        await asyncio.wait((gone,))
        return {"type": "http.disconnect"}

    return receive
