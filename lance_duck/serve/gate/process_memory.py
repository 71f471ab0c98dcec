"""Limits the memory of a server's process, so that a huge value fails in its request and not in the machine.

DuckDB and Arrow count a part of their memory only. Linux counts the private writable memory of a process, and refuses
more of it than the limit. Allocations then fail, and become errors of the request.
"""

from __future__ import annotations

import ctypes
import gc
import re
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from lance_duck import lazy
from lance_duck.arrow import memory
from lance_duck.serve.gate.refusals import BusyError

if sys.platform != "win32":
    import resource

_LEAST_ROOM: Final = 1 << 30
"""Minimum memory for results, indexes and thread stacks, in bytes. It is added to the limit of DuckDB."""
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
"""Options of mallopt in glibc: the number of heaps, and the size from which a block is mapped alone."""
_LITTLE: Final = 48 << 20
"""Memory that a request needs to begin, in bytes."""
_PATIENCE: Final = 5.0
"""Maximum time that a request waits for memory, in seconds."""
_PAUSE: Final = 0.1
"""Time between two looks, in seconds."""


def limit_process(counted: int) -> int | None:
    """Limit the memory of this process. Return the limit in bytes. None except on Linux.

    Args:
        counted: Memory limit of DuckDB, in bytes. Half of it is added for all other work, at least 1 GiB, and so is
            the memory in use now.
    """
    if sys.platform != "linux":
        return None
    _return_freed_blocks()
    lazy.load()  # a failed import would leave broken modules behind
    wanted = _in_use() + counted + max(counted // 2, _LEAST_ROOM)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = min([wanted, *(each for each in (soft, hard) if each != resource.RLIM_INFINITY)])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    return limit


def _return_freed_blocks() -> None:
    """Let C's allocator keep less freed memory. The limit counts what it keeps."""
    with suppress(OSError, AttributeError):  # libraries of C without this function
        set_option = ctypes.CDLL(None).mallopt
        set_option(_ARENA_MAX, 2)
        set_option(_MMAP_THRESHOLD, 1 << 20)


def release() -> None:
    """Return unused memory of the allocators to the system, after a request that used too much."""
    gc.collect()
    memory.release_unused()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # libraries of C without this function
            ctypes.CDLL(None).malloc_trim(0)


def wait_for_room() -> None:
    """Wait until a request has room to begin. Allocators return freed memory after about a second.

    Raises:
        BusyError: Other requests use the whole memory. Python itself fails without a little of it.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            memory.check_room(_LITTLE)
            return
        except MemoryError:
            if time.monotonic() > end:
                raise BusyError("other requests use the memory of the server", remedy="try again later") from None
        release()
        time.sleep(_PAUSE)


def _in_use() -> int:
    """Return the memory that the limit counts, in bytes."""
    found = re.search(r"^VmData:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) << 10 if found else 0
