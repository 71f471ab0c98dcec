"""Residency of the pages of mapped files, by mincore, which Linux and macOS have.

Where the system does not tell, or does not tell this user, all pages count as resident.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lance_duck.store.request import Bytes

_FLAG = ctypes.c_ubyte * 1
_Mincore = Callable[[int, int, ctypes.Array[ctypes.c_ubyte]], int]
"""From an address, a number of bytes and room for a flag of each page to 0, or to -1 where the system does not tell."""


def are_resident(data: Bytes, places: NDArray[np.int64]) -> bool:
    """Return whether the bytes at some places of a mapped file are in memory.

    Args:
        data: The whole file, as mapped.
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


@cache
def _mincore() -> _Mincore | None:
    if sys.platform not in ("linux", "darwin"):
        return None
    function = getattr(ctypes.CDLL(None), "mincore", None)
    if function is not None:
        function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, _FLAG)
    mincore: _Mincore | None = function
    return mincore
