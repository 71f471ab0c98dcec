"""The kernel compiler: releases the GIL, caches on disk, and does not raise on division by zero.

Kernels do not allocate memory. numba therefore does not need to count array references at each call from one kernel to
another.
A kernel checks every offset and length against its buffers before it uses them. It reports errors as a status
(`kernels/status.py`), because compiled code does not check bounds and must not raise.

numba spends half of the compile time of a small function on entry points that are never used
(`benchmarks/first_use.py`). Kernels are therefore built without C wrappers. Subroutines, which only kernels call, do
not get Python wrappers either. A constant argument is compiled like any other number, not once for each value.

A subroutine is inlined into each kernel that calls it (`kernels/lean.py`). LLVM would not inline larger subroutines.
This would double the run time of kernels that call a subroutine for each string.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numba.np import numpy_support
from numpy.typing import NDArray

from lance_duck.arrow.memory import check_room
from lance_duck.errors import UnsupportedError
from lance_duck.forks import hold_over_forks
from lance_duck.kernels.cache import KernelCache
from lance_duck.kernels.lean import KernelCompiler, SubroutineCompiler
from lance_duck.kernels.notice import first_use

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=np.generic)

hold_over_forks(global_compiler_lock)

KernelError: Final = numba.core.errors.NumbaError
"""Raised by numba for a kernel that does not compile."""

OPTIONS: Final[Any] = MappingProxyType({"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True})
"""numba options of all kernels. `_nrt` is numba's runtime, which allocates and counts references."""

_config: Final[Any] = numba.config
_dtype: Final[Any] = numpy_support.from_dtype
_layout: Final[Any] = numpy_support.map_layout
_SUMS: Final = frozenset({"reassoc", "contract", "nsz"})
"""Fast-math flags for sums. NaN and infinity keep their meaning."""


_MEMORY: Final = 64 << 20
"""Memory that LLVM may need for a kernel, in bytes. Without it, LLVM ends the process."""


class Kernel(CPUDispatcher):
    """A function that is compiled, or loaded from disk, once for each signature."""

    def compile(self, sig: Any) -> Any:
        """Compile the kernel for a signature, unless it is compiled already."""
        with global_compiler_lock:
            first_use.enter()
            try:
                check_room(_MEMORY)
                return super().compile(sig)
            finally:
                first_use.leave()

    def typeof_pyval(self, val: Any) -> Any:
        """Return numba's type of an argument without importing `numpy.ma`."""
        if type(val) is not np.ndarray or val.dtype.kind not in "biuf" or not val.dtype.isnative:
            return super().typeof_pyval(val)
        found: Any = types.Array(_dtype(val.dtype), val.ndim, _layout(val), readonly=not val.flags.writeable)
        self._types_active_call.add(found)
        return found

    def _compilation_chain_init_hook(self) -> None:
        """Skip numba's search for extensions in all packages. `KernelCache` runs it before a kernel compiles."""

    _cache: KernelCache
    _types_active_call: set[Any]

    @property
    def cache(self) -> KernelCache:
        """The disk cache of compiled versions."""
        return self._cache

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Resolve a call from another kernel with the types of its constant arguments, not with their values."""
        if self._cache.link(self.overloads):
            dispatcher: Any = self
            dispatcher._make_finalizer()()
            dispatcher._reset_overloads()
        plain: Any = types.unliteral
        return super().get_call_template(tuple(map(plain, args)), {name: plain(arg) for name, arg in kws.items()})


_KERNELS: Final[list[Kernel]] = []


def kernels() -> list[Kernel]:
    """Return the kernels and subroutines of all imported modules."""
    return list(_KERNELS)


class Subroutine(Kernel):
    """A function that only kernels call."""

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error: Python cannot call a subroutine."""
        raise TypeError(f"{self.py_func.__name__} is called by kernels only, not from Python")

    def add_overload(self, result: Any) -> None:
        """Keep a compiled version for the kernels that call it."""
        self.overloads[tuple(result.signature.args)] = result


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on its first call with each signature."""
    return _compiled(function, OPTIONS, Kernel)


def summing_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `kernel`, but let the compiler reorder float sums. The order is the same for each row."""
    return _compiled(function, {**OPTIONS, "fastmath": set(_SUMS)}, Kernel)


def subroutine(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` like `kernel`, for calls from kernels only."""
    return _compiled(function, {**OPTIONS, "no_cpython_wrapper": True, "forceinline": True}, Subroutine)


def summing_subroutine(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` like `summing_kernel`, for calls from kernels only."""
    options = {**OPTIONS, "no_cpython_wrapper": True, "forceinline": True, "fastmath": set(_SUMS)}
    return _compiled(function, options, Subroutine)


def _compiled(function: Callable[P, R], options: Mapping[str, Any], kind: type[Kernel]) -> Callable[P, R]:
    if _config.DISABLE_JIT:
        raise UnsupportedError(
            "NUMBA_DISABLE_JIT is not supported", where="NUMBA_DISABLE_JIT", remedy="unset the environment variable"
        )
    pipeline: Any = SubroutineCompiler if kind is Subroutine else KernelCompiler
    compiled: Any = numba.njit(pipeline_class=pipeline, **options)(function)
    compiled.__class__ = kind
    compiled._cache = KernelCache(function)
    _KERNELS.append(compiled)
    return cast("Callable[P, R]", compiled)


def readonly(array: NDArray[S]) -> NDArray[S]:
    """Return a read-only C-contiguous view. Mapped and owned memory then share one compiled kernel.

    An array that is already read-only and C-contiguous is returned unchanged.
    """
    flags = array.flags
    if not flags.writeable and flags.c_contiguous:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
