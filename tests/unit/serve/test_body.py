"""Bodies of requests that arrive while a worker thread reads them."""

import asyncio
from typing import Any

import pytest

from lance_duck.serve.gate.refusals import StoppingError
from lance_duck.serve.http.body import Body


def test_a_body_that_was_given_up_is_received_to_its_end() -> None:
    async def run() -> list[str]:
        messages: list[dict[str, Any]] = [
            {"type": "http.request", "body": b"x" * (1 << 20), "more_body": True},
            {"type": "http.request", "body": b"y", "more_body": False},
            {"type": "http.disconnect"},
        ]
        left = iter(messages)
        full = asyncio.Event()

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            full.set()
            return next(left)

        body = Body(receive, limit=1 << 22, seconds=5)
        waiting = asyncio.create_task(body.wait_until_gone())
        await full.wait()
        await asyncio.sleep(0)
        body.give_up(StoppingError("the server stops"))
        await asyncio.wait_for(waiting, 5)
        with pytest.raises(StoppingError):
            body.next_piece()
        return [message["type"] for message in left]

    assert asyncio.run(run()) == []
