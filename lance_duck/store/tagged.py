"""Requests for one object whose responses tell the object's size and e-tag, for the disk cache."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import obstore

from lance_duck import lazy
from lance_duck.store.client import call
from lance_duck.store.costs import GETS_AT_ONCE
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
        """See `ObjectReader.fetch`. Requests run concurrently."""
        options = [{"range": (offset, offset + size)} for offset, size in runs]
        if len(runs) == 1:
            return [self._get(options[0])]

        def get() -> list[disk_cache.FetchedPart]:
            # The calling thread may run an event loop of its own.
            with ThreadPoolExecutor(1, thread_name_prefix="lance_duck-get") as pool:
                return pool.submit(lambda: asyncio.run(self._get_all(options))).result()

        parts = call("get", self._path, get, len(runs))
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

    async def _get_all(self, options: Sequence[Any]) -> list[disk_cache.FetchedPart]:
        free = asyncio.Semaphore(GETS_AT_ONCE)

        async def get(each: Any) -> disk_cache.FetchedPart:
            async with free:
                result = await obstore.get_async(self._client, self._key, options=each)
                return _part(result.meta, await result.bytes_async())

        return await asyncio.gather(*map(get, options))


def _part(metadata: Any, data: Any) -> disk_cache.FetchedPart:
    return disk_cache.FetchedPart(np.frombuffer(data, np.uint8), metadata["size"], _tag(metadata))


def _tag(metadata: Any) -> str:
    return metadata["e_tag"] or str(metadata["last_modified"])
