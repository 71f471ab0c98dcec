"""A simulated object store with random timing and faults.

It keeps the guarantees of S3. Reads and listings that begin after a write see the write. If several writers put the
same name conditionally, one of them succeeds. An upload becomes visible as a whole at its end.

It uses all the freedom that S3 has. A request takes effect between its beginning and its response. A request or its
response may be lost. A request may run twice, as after a client's retry, and returns the second response. A request may
fail and take effect later. Listings have pages of any length.
"""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import Any

import obstore
import pytest
import tenacity.nap
from obstore.exceptions import AlreadyExistsError, GenericError
from support.faults import Proxy
from trust.simulation.scheduler import ScheduledPool, Scheduler

from lance_duck.commit import committer, races, version_files
from lance_duck.store import object as object_store

EPOCH = 1_800_000_000
CREATED = datetime.fromtimestamp(EPOCH, UTC)


@dataclass(frozen=True)
class Weather:
    """Probabilities of request faults.

    Attributes:
        lost: The request fails without effect.
        unanswered: The request takes effect, but fails.
        late: A write fails and takes effect later.
        repeated: The request takes effect twice.
    """

    lost: float = 0.0
    unanswered: float = 0.0
    late: float = 0.0
    repeated: float = 0.0


class SimulatedService:
    """A store that replaces `memory://`.

    Args:
        rng: Random generator.
        scheduler: Scheduler of the threads that send requests.

    Attributes:
        weather: Current probabilities of faults.
        requests: Number of requests so far.
    """

    def __init__(self, rng: Random, scheduler: Scheduler) -> None:
        self.weather = Weather()
        self.requests = 0
        self._rng = rng
        self._scheduler = scheduler
        self._objects: dict[str, bytes] = {}
        self._keys: list[str] = []
        self._lock = threading.RLock()

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Make the package use this store, scheduled threads, simulated sleeps and jumping clocks."""
        names = ("get", "head", "put", "delete", "copy", "list", "list_with_delimiter", "get_ranges", "open_writer")
        patch.setattr(object_store, "obstore", Proxy(obstore, {name: getattr(self, name) for name in names}))
        for module in (races, version_files):
            patch.setattr(module, "ThreadPoolExecutor", lambda *_, **__: ScheduledPool(self._scheduler))
        patch.setattr(tenacity.nap, "time", Proxy(time, {"sleep": lambda seconds: self._scheduler.pause()}))
        patch.setattr(committer, "datetime", jumping_clock(self._rng))

    def get(self, client: Any, key: str) -> Any:
        """See `obstore.get`."""
        data = self._ask(lambda: self._found(key))
        return SimpleNamespace(bytes=lambda: data)

    def get_ranges(self, client: Any, key: str, *, starts: Sequence[int], lengths: Sequence[int], **_: Any) -> Any:
        """See `obstore.get_ranges`."""
        data = self._ask(lambda: self._found(key))
        return [data[start : start + length] for start, length in zip(starts, lengths, strict=True)]

    def head(self, client: Any, key: str) -> dict[str, Any]:
        """See `obstore.head`."""
        return self._ask(lambda: self._about(key))

    def put(self, client: Any, key: str, data: bytes, *, mode: str = "overwrite", **_: Any) -> None:
        """See `obstore.put`."""
        self._ask(lambda: self._put(key, data, mode == "create"), writes=True)

    def delete(self, client: Any, keys: str | Sequence[str]) -> None:
        """See `obstore.delete`."""
        self._ask(lambda: self._delete([keys] if isinstance(keys, str) else keys), writes=True)

    def copy(self, client: Any, source: str, key: str) -> None:
        """See `obstore.copy`."""
        self._ask(lambda: self._put(key, self._found(source)), writes=True)

    def list(self, client: Any, prefix: str | None = None, *, offset: str | None = None, **_: Any) -> Iterator[Any]:
        """See `obstore.list`."""
        after = offset or ""
        while page := self._ask(lambda start=after: self._page(prefix or "", start)):
            yield page
            after = page[-1]["path"]

    def list_with_delimiter(self, client: Any, prefix: str | None = None) -> dict[str, Any]:
        """See `obstore.list_with_delimiter`."""
        start = f"{prefix.rstrip('/')}/" if prefix else ""
        rests = [key[len(start) :] for key in self._keys if key.startswith(start)]
        folders = sorted({start + rest.split("/")[0] for rest in rests if "/" in rest})
        return {"common_prefixes": folders, "objects": [self._about(start + rest) for rest in rests if "/" not in rest]}

    def open_writer(self, client: Any, key: str, **_: Any) -> Any:
        """See `obstore.open_writer`."""
        parts: list[bytes] = []

        def close() -> None:
            self._ask(lambda: self._put(key, b"".join(parts)), writes=True)

        return SimpleNamespace(write=lambda data: parts.append(bytes(data)), close=close, __exit__=lambda *_: None)

    def _ask(self, do: Callable[[], Any], *, writes: bool = False) -> Any:
        """Run a request with random faults."""
        self._scheduler.pause()
        self.requests += 1
        lot, weather = self._rng.random(), self.weather
        if (lot := lot - weather.lost) < 0:
            raise GenericError("the request was lost")
        if (lot := lot - weather.unanswered) < 0:
            self._do(do)
            raise GenericError("the answer was lost")
        if (lot := lot - weather.repeated) < 0:
            self._do(do)
            self._scheduler.pause()
        elif writes and lot - weather.late < 0:
            self._scheduler.later.append(lambda: self._regardless(do))
            raise GenericError("the request takes long")
        found = self._do(do)
        self._scheduler.pause()
        return found

    def _do(self, do: Callable[[], Any]) -> Any:
        with self._lock:
            return do()

    def _regardless(self, do: Callable[[], Any]) -> None:
        """Run a delayed request. Its errors reach nobody."""
        try:
            self._do(do)
        except (AlreadyExistsError, FileNotFoundError):
            return

    def _found(self, key: str) -> bytes:
        try:
            return self._objects[key]
        except KeyError:
            raise FileNotFoundError(key) from None

    def _about(self, key: str) -> dict[str, Any]:
        size = len(self._found(key))
        return {"path": key, "size": size, "e_tag": str(hash(self._objects[key])), "last_modified": CREATED}

    def _put(self, key: str, data: bytes, is_new: bool = False) -> None:
        if key not in self._objects:
            bisect.insort(self._keys, key)
        elif is_new:
            raise AlreadyExistsError(key)
        self._objects[key] = data

    def _delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            if self._objects.pop(key, None) is not None:
                del self._keys[bisect.bisect_left(self._keys, key)]

    def _page(self, prefix: str, after: str) -> Sequence[dict[str, Any]]:
        first = max(bisect.bisect_left(self._keys, prefix), bisect.bisect_right(self._keys, after))
        page = self._keys[first : first + self._rng.choice((1, 3, 1000, 1000))]
        return [self._about(key) for key in page if key.startswith(prefix)]


def jumping_clock(rng: Random) -> type[datetime]:
    """Return `datetime` with a clock that jumps by up to a day, forward and back."""

    class JumpingClock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            moment = rng.choice((0, 0, 0, rng.randrange(-86400, 86400))) + rng.random()
            return datetime.fromtimestamp(EPOCH + moment, tz)

    return JumpingClock
