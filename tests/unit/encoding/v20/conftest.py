from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.encoding.layouts.page import EncodingDescription, Page
from lance_duck.encoding.v20.array import EncodedArray
from lance_duck.encoding.v20.buffers import PageBuffers
from lance_duck.encoding.v20.registry import Context, array_from_proto
from lance_duck.store.request import Bytes
from lance_duck.wire.pb import encodings20_pb2 as pb


@dataclass
class Counting:
    """A file in memory that remembers which ranges were read."""

    remote = False

    data: bytes
    path: str = "memory"
    ranges: list[tuple[int, int]] = field(default_factory=list)

    @property
    def size(self) -> int:
        return len(self.data)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        self.ranges += ranges
        for offset, size in ranges:
            assert min(offset, size) >= 0
            assert offset + size <= len(self.data)
        return [np.frombuffer(self.data, np.uint8, size, offset) for offset, size in ranges]


@dataclass
class Opened:
    """An array in a separate page, and its file."""

    array: EncodedArray
    source: Counting


def _open(encoding: pb.ArrayEncoding, buffers: Sequence[bytes], length: int, arrow_type: pa.DataType) -> Opened:
    data, extents = b"\xee" * 64, []
    for buffer in buffers:
        extents.append((len(data), len(buffer)))
        data += buffer + b"\xee" * (64 - len(buffer) % 64)
    source = Counting(data)
    page = Page(source, "page", tuple(extents), length, 0, EncodingDescription("", b""))
    return Opened(array_from_proto(encoding, Context(PageBuffers(page), length, arrow_type)), source)


@pytest.fixture(scope="session")
def open_array() -> Callable[..., Opened]:
    """(encoding, buffers of the page, length, Arrow type) → the array, in a file that counts reads."""
    return _open
