"""Digests: XXH3-64 of blocks of 64 KiB, counted from the start of each buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import xxhash
from numpy.typing import NDArray

ALGORITHM: Final = 1
"""XXH3-64, seed 0. 2 is reserved for CRC-32C."""

LOG2_BLOCK: Final = 16
BLOCK: Final = 1 << LOG2_BLOCK
"""Bytes of a block: a point read checks the block that it lies in, for which this many bytes have to be there."""

Digests = NDArray[np.uint64]


def digest(data: Any) -> int:
    """Return the digest of bytes: of whatever memoryview() takes, contiguous."""
    return xxhash.xxh3_64_intdigest(data)


def digests(data: Any) -> Digests:
    """Return the digest of each block of a buffer, the last of which may be shorter; none of an empty one."""
    view = memoryview(data).cast("B")
    return np.array([digest(view[at : at + BLOCK]) for at in range(0, len(view), BLOCK)], np.uint64)


def num_blocks(sizes: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of blocks of buffers of these sizes in bytes."""
    return -(-np.asarray(sizes, np.int64) // BLOCK)
