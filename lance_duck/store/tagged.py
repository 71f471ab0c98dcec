"""Requests for one object whose responses tell the object's size and e-tag, for the disk cache."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import obstore

from lance_duck import forks, lazy
from lance_duck.store.client import call
from lance_duck.store.costs import GETS_AT_ONCE, SHORT_BODY
from lance_duck.store.counted import count_bytes

if TYPE_CHECKING:
    import asyncio

    from lance_duck.store import disk_cache
else:
    asyncio = lazy.modules(globals(), "", "asyncio")
    disk_cache = lazy.modules(globals(), "lance_duck.store", "disk_cache")


class TaggedRequests:
    """An `ObjectReader`: requests for one object, with its size and e-tag."""

    def __init__(self, client: Any, key: str, path: str) -> None:
        self._client = client
        self._key = key
        self._path = path

    def ask(self) -> tuple[int, str]:
        """See `ObjectReader.ask`."""
        metadata = call("head", self._path, lambda: obstore.head(self._client, self._key))
        return metadata["size"], _tag(metadata)

    def fetch(self, runs: Sequence[tuple[int, int]]) -> list[disk_cache.FetchedPart]:
        """See `ObjectReader.fetch`. Up to `GETS_AT_ONCE` requests run concurrently."""
        options = [{"range": (offset, offset + size)} for offset, size in runs]
        if len(runs) == 1:
            return [self._get(options[0])]
        batches = [options[at : at + GETS_AT_ONCE] for at in range(0, len(options), GETS_AT_ONCE)]
        parts = [
            part for batch in batches for part in call("get", self._path, partial(self._get_all, batch), len(batch))
        ]
        count_bytes("get", self._path, sum(len(part.data) for part in parts))
        return parts

    def whole(self) -> disk_cache.FetchedPart:
        """Return the whole object."""
        return self._get({})

    def _get(self, options: Any) -> disk_cache.FetchedPart:
        def get() -> disk_cache.FetchedPart:
            result = obstore.get(self._client, self._key, options=options)
            return _part(result.meta, result.bytes())

        part = call("get", self._path, get)
        count_bytes("get", self._path, len(part.data))
        return part

    def _get_all(self, batch: Sequence[Any]) -> list[disk_cache.FetchedPart]:
        results = asyncio.run_coroutine_threadsafe(self._responses(batch), _loop(forks.count())).result()
        return [_part(result.meta, result.bytes() if data is None else data) for result, data in results]

    async def _responses(self, batch: Sequence[Any]) -> list[tuple[Any, Any]]:
        """Return the responses. Only the bodies of long ones have been read."""

        async def get(each: Any) -> tuple[Any, Any]:
            result = await obstore.get_async(self._client, self._key, options=each)
            start, stop = result.range
            return result, await result.bytes_async() if stop - start > SHORT_BODY else None

        return await asyncio.gather(*map(get, batch))


@lru_cache(1)
def _loop(born: int) -> asyncio.AbstractEventLoop:
    """Return an event loop that runs in a thread. Calling threads may run event loops of their own.

    Args:
        born: Number of forks: a forked child needs a new loop.
    """
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="lance_duck-get", daemon=True).start()
    return loop


def _part(metadata: Any, data: Any) -> disk_cache.FetchedPart:
    return disk_cache.FetchedPart(np.frombuffer(data, np.uint8), metadata["size"], _tag(metadata))


def _tag(metadata: Any) -> str:
    return metadata["e_tag"] or str(metadata["last_modified"])
