"""Processes that stream rows into a table, and are killed at a step of a commit."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from typing import Any

import lance_duck as ld

PRODUCERS = 3
BATCHES = 40
OPTIONS = {"fsync": "false"}
_STEPS = {"open", "os.rename", "os.link", "os.remove"}


def keys(producer: int, batch: int) -> list[int]:
    """Return the keys of a batch."""
    first = 2 * (producer * BATCHES + batch)
    return [first, first + 1]


def stream_until_killed(connection: Connection, uri: str, positions: dict[int, int], step: int) -> None:
    """Stream batches from positions on, and report the confirmed ones. Killed before a step on a file of the table."""
    lock, steps = threading.Lock(), 0

    def confirmed(producer: int, batch: int, done: Future[int]) -> None:
        assert done.exception() is None, done.exception()
        with lock:
            connection.send((producer, batch))

    def kill(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal steps
        if event in _STEPS and str(arguments[0]).startswith(uri):
            steps += 1
            if steps >= step:
                os.kill(os.getpid(), signal.SIGKILL)

    with ld.stream_writer(uri, interval=0, key="id", storage_options=OPTIONS) as stream:
        sys.addaudithook(kill)

        def produce(producer: int) -> None:
            for batch in range(positions[producer], BATCHES):
                outcome = stream.write({"id": keys(producer, batch)})
                outcome.add_done_callback(lambda done, batch=batch: confirmed(producer, batch, done))
                if batch % 3 == 0:
                    outcome.result()

        with ThreadPoolExecutor(PRODUCERS) as pool:
            list(pool.map(produce, range(PRODUCERS)))
    connection.close()
