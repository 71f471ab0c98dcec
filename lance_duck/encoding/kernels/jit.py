"""How kernels are compiled: without the GIL, cached on disk, without exceptions for division by zero.

A kernel checks every offset and length against its buffers before it touches them, and reports what it found as a
status (`kernels/status.py`): compiled code does not check bounds and must not raise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=np.generic)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles `function` on its first call for the types that it is called with."""
    compiled: Any = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return cast("Callable[P, R]", compiled)


def readonly(array: NDArray[S]) -> NDArray[S]:
    """A C-contiguous view that cannot be written to, so that mapped and owned memory share one compiled kernel."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
