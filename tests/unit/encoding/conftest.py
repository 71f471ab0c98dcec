from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from lance_duck.encoding.codec import Chunks


def _make_chunks(chunks: Sequence[Sequence[bytes]], counts: Sequence[int], pad: int = 3) -> Chunks:
    num_buffers = len(chunks[0]) if chunks else 1
    starts = np.zeros((num_buffers, len(chunks)), np.int64)
    sizes = np.zeros((num_buffers, len(chunks)), np.int64)
    data = bytearray(b"\xee" * pad)
    for k, buffers in enumerate(chunks):
        for b, buffer in enumerate(buffers):
            starts[b, k], sizes[b, k] = len(data), len(buffer)
            data += buffer + b"\xee" * pad
    array = np.frombuffer(bytes(data), np.uint8)
    return Chunks(array, starts, sizes, np.array(counts, np.int64))


@pytest.fixture(scope="session")
def make_chunks() -> Callable[..., Chunks]:
    """(buffers of each chunk, counts) → Chunks, with bytes of 0xEE before, between and after the buffers."""
    return _make_chunks
