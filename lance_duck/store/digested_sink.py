"""A new file whose blocks are digested as they are written."""

from __future__ import annotations

from lance_duck.checksums.digests import StreamDigests
from lance_duck.store.sink import Sink


class DigestedSink(Sink):
    """A wrapper of a sink that digests the bytes that go through it.

    Args:
        sink: Sink of the file.

    Attributes:
        digests: Digests of the bytes so far.
    """

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink.path)
        self.digests = StreamDigests()
        self._sink = sink

    def _write(self, data: memoryview) -> None:
        self.digests.update(data)
        self._sink.write(data)

    def _close(self) -> None:
        self._sink.close()

    def _abort(self) -> None:
        self._sink.abort()
