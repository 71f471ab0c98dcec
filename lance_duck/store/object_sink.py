"""A stream into an object: uploaded in parts while it is written."""

from __future__ import annotations

from typing import Any, Final

import obstore

from lance_duck.store.client import call
from lance_duck.store.sink import Sink

PART: Final = 10 << 20  # services allow 10,000 parts: 97 GiB
PARTS_AT_ONCE: Final = 4


class ObjectSink(Sink):
    """See `Sink`.

    Args:
        client: The bucket.
        key: Key of the object.
        path: Its URI, for messages.
    """

    def __init__(self, client: Any, key: str, path: str) -> None:
        super().__init__(path)
        self._upload = call(
            path, lambda: obstore.open_writer(client, key, buffer_size=PART, max_concurrency=PARTS_AT_ONCE)
        )

    def _write(self, data: memoryview) -> None:
        for at in range(0, len(data), PART):  # the library takes in what it is given before it waits for room
            piece = data[at : at + PART]
            call(self.path, lambda piece=piece: self._upload.write(piece))  # type: ignore[misc]

    def _close(self) -> None:
        call(self.path, self._upload.close)

    def _abort(self) -> None:
        """Let go of the upload: the object appears only when it is closed."""
        del self._upload
