"""Memory for decoded values, from Arrow's pool."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

POOLED_BYTES: Final = 128 * 1024
"""Minimum size of an array that Arrow's pool allocates, in bytes. `benchmarks/fresh_memory.py`: relative to numpy's
memory, an array that is written once and dropped takes 1.1 to 1.2 times the processor time with 64 KiB, 0.65 to 0.8
with 128 KiB, half with 256 KiB, and 0.1 to 0.25 from 1 MiB."""


def unset(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an array (count,) of a dtype whose values are yet to be written, as `numpy.empty` does.

    The memory of a scan's batches is allocated and dropped over and over. C's allocator returns such memory to the
    system each time, which then hands it out again page by page, filled with zeros: a third of the time of decoding
    plain numbers. Arrow's pool keeps it for the next batch, and returns it after a while without requests.
    """
    kind = np.dtype(dtype)
    if count * kind.itemsize < POOLED_BYTES:
        return np.empty(count, kind)
    return np.frombuffer(pa.allocate_buffer(count * kind.itemsize), kind)


def release_unused() -> None:
    """Return memory to the system that Arrow's pool keeps for later requests, as far as the calling thread may.

    Work in several threads leaves the pool with ten times its peak memory in use: a thread keeps the memory that other
    threads have freed for it. A call takes 0.1 to 0.7 ms (`benchmarks/merges.py`, after each compaction). Call it at
    the end of a long operation and between its steps, never for each batch of a scan.
    """
    pa.default_memory_pool().release_unused()
