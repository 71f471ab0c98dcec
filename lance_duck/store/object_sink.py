"""A stream into an object: uploaded in parts while it is written."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import obstore

from lance_duck.errors import StoreError
from lance_duck.store.client import call
from lance_duck.store.costs import PART_BYTES, PARTS_AT_ONCE
from lance_duck.store.sink import Sink


class ObjectSink(Sink):
    """See `Sink`.

    Args:
        client: The bucket.
        key: Key of the object.
        path: URI of the object, for messages.
    """

    def __init__(self, client: Any, key: str, path: str) -> None:
        super().__init__(path)
        self._upload = call(
            path, lambda: obstore.open_writer(client, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
        )

    def _write(self, data: memoryview) -> None:
        for at in range(0, len(data), PART_BYTES):  # the library takes in what it is given before it waits for room
            piece = data[at : at + PART_BYTES]
            call(self.path, lambda piece=piece: self._upload.write(piece))  # type: ignore[misc]

    def _close(self) -> None:
        call(self.path, self._upload.close)

    def _abort(self) -> None:
        """Have the service forget what was uploaded: one that is only let go of keeps its parts, and their price."""
        with suppress(StoreError):  # with an error the library aborts the upload, without one it closes it
            call(self.path, lambda: self._upload.__exit__(StoreError, None, None))
