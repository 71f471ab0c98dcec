"""Digests: XXH3-64 per 64 KiB block, counted from the start of each buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import xxhash
from numpy.typing import NDArray

ALGORITHM: Final = 1
"""XXH3-64 with seed 0. The number 2 is reserved for CRC-32C."""

LOG2_BLOCK: Final = 16
BLOCK: Final = 1 << LOG2_BLOCK
"""Block size in bytes. A point read verifies whole blocks, so it must fetch at least this many bytes."""

Digests = NDArray[np.uint64]


def digest(data: Any) -> int:
    """Return the digest of a contiguous bytes-like object."""
    return xxhash.xxh3_64_intdigest(data)


def digests(data: Any) -> Digests:
    """Return the digest of each block. The last block may be shorter. An empty buffer has no digests."""
    view = memoryview(data).cast("B")
    return np.array([digest(view[at : at + BLOCK]) for at in range(0, len(view), BLOCK)], np.uint64)


class StreamDigests:
    """The digests of bytes that arrive in chunks."""

    def __init__(self) -> None:
        self._blocks: list[int] = []
        self._open = xxhash.xxh3_64()
        self._open_bytes = 0

    def update(self, data: Any) -> None:
        """Add the next bytes."""
        view = memoryview(data).cast("B")
        at = 0
        if self._open_bytes:
            at = min(BLOCK - self._open_bytes, len(view))
            self._open.update(view[:at])
            self._open_bytes += at
            if self._open_bytes == BLOCK:
                self._blocks.append(self._open.intdigest())
                self._open.reset()
                self._open_bytes = 0
        for start in range(at, len(view) - BLOCK + 1, BLOCK):
            self._blocks.append(digest(view[start : start + BLOCK]))
            at = start + BLOCK
        if at < len(view):
            self._open.update(view[at:])
            self._open_bytes += len(view) - at

    def digests(self) -> Digests:
        """Return the digest of each block. The last block may be shorter."""
        last = [self._open.intdigest()] if self._open_bytes else []
        return np.array([*self._blocks, *last], np.uint64)


def num_blocks(sizes: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Return the block counts of buffers with these sizes in bytes."""
    return -(-np.asarray(sizes, np.int64) // BLOCK)
