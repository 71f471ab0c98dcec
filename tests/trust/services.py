"""An S3 server that throttles requests, loses responses and rejects expired credentials."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from concurrency import hammer
from support import servers
from support.servers import BUCKET, s3_server

import lance_duck as ld
from lance_duck.errors import StoreError

WRITERS, SECONDS = 3, 1.5
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
EXPIRED = b"<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>"


class Moods:
    """Faults of a server.

    Attributes:
        throttles: Probability of a 503 response without effect.
        loses: Probability of a 500 response after the request took effect.
        expired: Expired access keys.
        refused: Number of failed requests by reason.
    """

    def __init__(self) -> None:
        self.throttles = self.loses = 0.0
        self.expired: set[str] = set()
        self.refused: dict[str, int] = {"throttled requests": 0, "lost answers": 0, "expired credentials": 0}
        self.rng = random.Random(0)
        self._lock = threading.Lock()

    def around(self, app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
        """Return a WSGI application with these faults."""

        def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            said = environ.get("HTTP_AUTHORIZATION", "")
            with self._lock:
                lot = self.rng.random()
            if any(f"Credential={key}/" in said for key in self.expired):
                return self._refuse("expired credentials", "400 Bad Request", EXPIRED, start_response)
            if lot < self.throttles:
                return self._refuse("throttled requests", "503 Slow Down", SLOW_DOWN, start_response)
            if lot < self.throttles + self.loses:
                list(app(environ, lambda *_: None))
                return self._refuse("lost answers", "500 Internal Server Error", b"", start_response)
            return app(environ, start_response)

        return answer

    def _refuse(self, name: str, status: str, body: bytes, start_response: Callable[..., Any]) -> Iterable[bytes]:
        self.refused[name] += 1
        start_response(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]


@cache
def _service() -> tuple[Moods, dict[str, str]]:
    """Start a server that runs until this process ends."""
    moods = Moods()
    with pytest.MonkeyPatch.context() as patch:
        plain = servers.DomainDispatcherApplication
        patch.setattr(servers, "DomainDispatcherApplication", lambda make: moods.around(plain(make)))
        server = s3_server()
        options = server.__enter__()
    _SERVERS.append(server)
    return moods, options


_SERVERS: list[Any] = []  # garbage collection would stop a server


def hammered(seed: int, folder: Path) -> Mapping[str, int]:
    """Let writers use a server that throttles and loses responses. No change is lost or applied twice."""
    moods, options = _service()
    rng = random.Random(seed)
    uri = f"s3://{BUCKET}/{uuid.UUID(int=rng.getrandbits(128)).hex}/t.lance"
    hammer.create(uri, options)
    what = {"append": 3, "count": 3, "upsert": 2, "delete": 1, "compact": 1}
    before = dict(moods.refused)
    moods.rng, moods.throttles, moods.loses = rng, rng.choice((0.0, 0.1, 0.3)), rng.choice((0.0, 0.05))
    try:
        with ThreadPoolExecutor(WRITERS) as pool:
            made = [pool.submit(hammer.hammer, uri, options, who, SECONDS, what, True) for who in range(WRITERS)]
            tallies = [each.result() for each in made]
    finally:
        moods.throttles = moods.loses = 0.0
    hammer.check(uri, options, tallies)
    changes = sum(tally.tried[name] for tally in tallies for name in what)
    return {"changes": changes, **{name: count - before[name] for name, count in moods.refused.items()}}


def renewed(seed: int, folder: Path) -> Mapping[str, int]:
    """Let credentials expire and renew them. Errors do not show them, and no change is lost."""
    moods, options = _service()
    rng = random.Random(seed)
    uri = f"s3://{BUCKET}/{uuid.UUID(int=rng.getrandbits(128)).hex}/t.lance"
    keys = [f"key{rng.getrandbits(60):x}" for _ in range(3)]
    hammer.create(uri, options)
    tally, turn = hammer.Tally(), 0
    for key in keys:
        secret = f"secret{rng.getrandbits(60):x}"
        own = {**options, "aws_access_key_id": key, "aws_secret_access_key": secret}
        dataset = ld.dataset(uri, storage_options=own)
        for _ in range(rng.randrange(1, 4)):
            turn += 1
            hammer.change(uri, own, rng.choice(("append", "count", "upsert")), 0, turn, tally, rng, dataset)
        assert not tally.unsure
        listed = [entry["version"] for entry in ld.dataset(uri, storage_options=own).versions()]
        assert listed == list(range(1, dataset.version + 1))  # written objects are listed immediately
        moods.expired.add(key)
        with pytest.raises(StoreError) as caught:
            dataset.delete("id < 0 OR id > 5")
        assert secret not in str(caught.value)
        assert key not in str(caught.value)
        moods.expired.clear()
    hammer.check(uri, options, [tally])
    return {"renewals": len(keys)}
