"""Pages of mapped files, through the Linux and macOS system calls mmap, madvise and mincore.

Before Python 3.13, the `mmap` module keeps a descriptor of each file open. The module is therefore used only on other
systems. If the system does not report the residency of pages to this user, they count as resident.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.store.request import Bytes

RANDOM: Final[int | None] = getattr(mmap, "MADV_RANDOM", None)
WILL_NEED: Final[int | None] = getattr(mmap, "MADV_WILLNEED", None)
DONT_NEED: Final[int | None] = getattr(mmap, "MADV_DONTNEED", None)
"""The advice value for madvise, or None if the system does not support it."""

_FLAG = ctypes.c_ubyte * 1
_Mincore = Callable[[int, int, ctypes.Array[ctypes.c_ubyte]], int]
"""Signature of mincore: address, size in bytes, output with a flag for each page. Returns 0, or -1 if residency is
unknown."""


class FilePages:
    """The pages of a file, mapped read-only, without an open file descriptor.

    They remain mapped while a view of them exists.

    Args:
        descriptor: The open file, which may be closed afterwards.
        size: Size of the file in bytes, at least one.

    Raises:
        OSError: The system cannot map the file.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self._size = size
        system = _system()
        if system is None:
            map_: Any = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
            self._advise: Callable[[int, int, int], object] | None = getattr(map_, "madvise", None)
            self.data: Bytes = np.frombuffer(map_, np.uint8)
            return
        address = system.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, 0)
        if address in (None, _FAILED):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        self._advise = partial(_advise, system, address)
        self.data = np.asarray(_Mapped(system, address, size))

    def advise(self, advice: int | None, start: int = 0, size: int | None = None) -> None:
        """Advise the system about a byte range. `start` must be the beginning of a page."""
        size = self._size - start if size is None else min(size, self._size - start)
        if advice is None or start < 0 or size <= 0:
            return
        if self._advise is not None:
            self._advise(advice, start, size)


def _advise(system: Any, address: int, advice: int, start: int, size: int) -> None:
    system.madvise(address + start, size, advice)


class _Mapped:
    """An address range that is unmapped when the last reference to it is gone."""

    def __init__(self, system: Any, address: int, size: int) -> None:
        self._unmap = system.munmap
        self._range = address, size
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, True), "version": 3}

    def __del__(self) -> None:
        self._unmap(*self._range)


def are_resident(data: Bytes, places: NDArray[np.int64]) -> bool:
    """Return whether the bytes at all given offsets of a mapped file are in memory. True if this is unknown.

    Args:
        data: The whole mapped file.
        places: int64, (n,), offsets in the file.
    """
    mincore = _mincore()
    if mincore is None:
        return True
    flag = _FLAG()
    for page in ((places & -mmap.PAGESIZE) + data.ctypes.data).tolist():
        if mincore(page, 1, flag):
            return True
        if not flag[0] & 1:
            return False
    return True


_FAILED: Final = ctypes.c_void_p(-1).value


@cache
def _system() -> Any:
    """Return the C library with mmap, munmap and madvise, or None if the system is not 64-bit Linux or macOS."""
    if sys.platform not in ("linux", "darwin") or ctypes.sizeof(ctypes.c_long) != ctypes.sizeof(ctypes.c_int64):
        return None
    library = ctypes.PyDLL(None, use_errno=True)  # calls are too short to release the GIL
    number, size, address = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
    library.mmap.restype = address
    library.mmap.argtypes = (address, size, number, number, number, ctypes.c_long)
    library.munmap.argtypes = (address, size)
    library.madvise.argtypes = (address, size, number)
    return library


@cache
def _mincore() -> _Mincore | None:
    function = getattr(_system(), "mincore", None)
    if function is not None:
        function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, _FLAG)
    mincore: _Mincore | None = function
    return mincore
