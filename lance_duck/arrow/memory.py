"""Memory for decoded values, from Arrow's pool."""

from __future__ import annotations

import mmap
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray

if sys.platform != "win32":
    import resource

POOLED_BYTES: Final = 128 * 1024
"""Minimum size of an array that Arrow's pool allocates, in bytes. `benchmarks/fresh_memory.py` compares the CPU time of
pool and numpy memory for arrays that are written once and dropped. The pool takes 1.1 to 1.2 times as long at 64 KiB,
0.65 to 0.8 times at 128 KiB, half as long at 256 KiB, and 0.1 to 0.25 times from 1 MiB.
"""


def unset(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an uninitialized array (count,) of a dtype, like `numpy.empty`.

    A scan allocates and frees memory for each batch. C's allocator returns freed memory to the system each time. The
    system then provides new pages filled with zeros. This costs a third of the time that plain numbers take to decode.
    Arrow's pool keeps freed memory for the next batch, and returns it to the system after some idle time.
    """
    kind = np.dtype(dtype)
    if count * kind.itemsize < POOLED_BYTES:
        return np.empty(count, kind)
    return np.frombuffer(pa.allocate_buffer(count * kind.itemsize), kind)


def release_unused() -> None:
    """Return unused memory of Arrow's pool to the system, to the extent that the calling thread can free it.

    After multithreaded work, the pool holds ten times the peak memory use, because each thread keeps memory that other
    threads freed. A call takes 0.1 to 0.7 ms (`benchmarks/merges.py`, after each compaction). Call this at the end of a
    long operation and between its steps, never for each batch of a scan.
    """
    pa.default_memory_pool().release_unused()


def check_room(size: int) -> None:
    """Raise MemoryError if a memory limit of the process leaves less than a size in bytes.

    Call this before a library that ends the process when an allocation fails. Without a limit, a call takes less than a
    microsecond. With a limit, it requests the memory, which takes several microseconds.
    """
    if not _may_be_refused():
        return
    try:
        mmap.mmap(-1, size, **_PRIVATE).close()
    except OSError:
        raise MemoryError("the memory limit of the process is reached") from None


def _may_be_refused() -> bool:
    """Return whether the process or the system has a limit that can refuse memory."""
    if sys.platform != "linux" or _is_strict():
        return True
    limit, unlimited = resource.getrlimit, resource.RLIM_INFINITY
    return limit(resource.RLIMIT_AS)[0] != unlimited or limit(resource.RLIMIT_DATA)[0] != unlimited


@cache
def _is_strict() -> bool:
    """Return whether Linux may refuse memory to a process without limits, because it counts all reserved memory."""
    try:
        return Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "2"
    except OSError:
        return True


_PRIVATE: Final[Any] = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}
