"""Natural logarithms of float32, bit for bit equal to Lance's.

Lance calls the `logf` of the C library. For about one number in a hundred, its result is not the nearest float32, so
neither the rounded float64 logarithm nor numpy's logarithm always matches it.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from functools import cache
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

_LIBRARIES: Final = MappingProxyType({"linux": "libm.so.6", "darwin": "libm.dylib", "win32": "ucrtbase"})


def natural_log(value: np.float32) -> np.float32:
    """Return the logarithm of a number above 0."""
    return np.float32(_logf()(float(value)))


def natural_logs(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the logarithms of positive numbers. Fast if few numbers are distinct."""
    distinct, places = np.unique(values, return_inverse=True)
    logf = _logf()
    return np.array([logf(value) for value in distinct.tolist()], np.float32)[places]


@cache
def _logf() -> Callable[[float], float]:
    """Return the C library's `logf`. If it is missing, returns `math.log`. The caller rounds the results."""
    try:
        logf = ctypes.CDLL(_LIBRARIES[sys.platform]).logf
    except (KeyError, OSError, AttributeError):
        return math.log
    logf.restype, logf.argtypes = ctypes.c_float, (ctypes.c_float,)
    return logf
