"""A running server over an empty folder, and LanceDB clients of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lancedb
import pytest

from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.run import Server


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    """A function that starts a server with settings. Servers stop at the end of the test."""
    with ExitStack() as stack:
        yield lambda place, **settings: stack.enter_context(Server(ServeSettings(str(place), port=0, **settings)))


@pytest.fixture
def server(start: Callable[..., Server], tmp_path: Path) -> Server:
    """A server over the folder `tmp_path / "served"` that accepts changes."""
    return start(tmp_path / "served", write=True)


@pytest.fixture
def remote(server: Server) -> Any:
    """LanceDB's client of the server."""
    return lancedb.connect("db://test", api_key="any", host_override=server.url)
