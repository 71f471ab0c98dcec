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
        for at in range(0, len(data), PART_BYTES):  # obstore takes in a whole buffer before it waits for room
            piece = data[at : at + PART_BYTES]
            call(self.path, lambda piece=piece: self._upload.write(piece))  # type: ignore[misc]

    def _close(self) -> None:
        call(self.path, self._upload.close)

    def _abort(self) -> None:
        """Have the service drop the uploaded parts: those of an upload that is merely forgotten stay, and cost."""
        with suppress(StoreError):  # obstore aborts an upload whose block ends with an error, and closes it otherwise
            call(self.path, lambda: self._upload.__exit__(StoreError, None, None))
