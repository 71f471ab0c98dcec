"""Memory for decoded values, from Arrow's pool."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

POOLED_BYTES: Final = 128 * 1024
"""Minimum size of an array that Arrow's pool allocates, in bytes. `benchmarks/fresh_memory.py`: relative to numpy's
memory, an array that is written once and dropped takes 1.1 to 1.2 times the CPU time with 64 KiB, 0.65 to 0.8 with 128
KiB, half with 256 KiB, and 0.1 to 0.25 from 1 MiB."""


def unset(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialized array (count,) of a dtype, like `numpy.empty`.

    The memory of a scan's batches is allocated and dropped over and over. C's allocator returns this memory to the
    system each time. The system then allocates it again page by page, filled with zeros, which takes a third of the
    time of decoding plain numbers. Arrow's pool keeps it for the next batch, and returns it after some idle time.
    """
    kind = np.dtype(dtype)
    if count * kind.itemsize < POOLED_BYTES:
        return np.empty(count, kind)
    return np.frombuffer(pa.allocate_buffer(count * kind.itemsize), kind)


def release_unused() -> None:
    """Return unused memory of Arrow's pool to the system, as far as the calling thread can.

    Multithreaded work leaves the pool with ten times its peak memory use, because each thread keeps memory freed by
    other threads. A call takes 0.1 to 0.7 ms (`benchmarks/merges.py`, after each compaction). Call this at the end of a
    long operation and between its steps, never for each batch of a scan.
    """
    pa.default_memory_pool().release_unused()
