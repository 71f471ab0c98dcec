from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import types

from lance_duck.kernels.cache import KernelCache
from lance_duck.kernels.jit import Kernel, KernelError, kernel, subroutine, summing_kernel


def uncached(compiled: Any) -> Any:
    """Return the kernel without its disk cache."""
    compiled._cache = KernelCache(compiled.py_func, ())
    return compiled


def test_nested_kernels_do_not_count_references() -> None:
    inner = uncached(kernel(lambda a, i: a[i] + 1))
    outer = uncached(kernel(lambda a: inner(a, 0) + inner(a, 1)))
    assert outer(np.arange(2)) == 3
    assert not any("NRT" in code for code in outer.inspect_llvm().values())


def test_constant_arguments_do_not_add_signatures() -> None:
    inner = uncached(subroutine(lambda a, i: a[i]))
    outer = uncached(kernel(lambda a, i: inner(a, 0) + inner(a, 1) + inner(a, i)))
    assert outer(np.array([1, 10, 100]), 2) == 111
    assert inner.signatures == [(types.Array(types.int64, 1, "C"), types.int64)]


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "M8[s]"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 3, 4)])
def test_argument_types_equal_those_of_numba(dtype: str, shape: tuple[int, ...]) -> None:
    made = uncached(kernel(lambda a: a))
    array = np.zeros(shape, dtype)
    forms = [array, np.asfortranarray(array), array.T, np.zeros((*shape, 2), dtype)[..., 0]]
    for form in forms:
        for writeable in (True, False):
            form = form.view()
            form.flags.writeable = writeable
            assert made.typeof_pyval(form) == numba.typeof(form)


@pytest.mark.parametrize("array", [np.ma.masked_array([1]), np.zeros(1, ">i4")])
def test_unsupported_array_types_are_rejected(array: Any) -> None:
    with pytest.raises(KernelError):
        uncached(kernel(lambda a: a[0]))(array)


def test_python_cannot_call_a_subroutine() -> None:
    inner: Any = subroutine(lambda x: x + 1)
    outer: Any = kernel(lambda x: inner(x))
    assert outer(1) == 2
    with pytest.raises(TypeError, match="is called by kernels only"):
        inner(1)


def test_every_kind_of_kernel_is_cached_on_disk() -> None:
    for compiled in (kernel(lambda x: x), summing_kernel(lambda x: x), subroutine(lambda x: x)):
        assert isinstance(compiled, Kernel)
        assert isinstance(compiled._cache, KernelCache)


def test_subroutines_have_no_python_wrapper() -> None:
    inner = uncached(subroutine(lambda x: x + 1))
    outer = uncached(kernel(lambda x: inner(x)))
    assert outer(1) == 2
    assert "cfunc" not in "".join(outer.inspect_llvm().values())
    assert "cpython" in "".join(outer.inspect_llvm().values())
    assert "cpython" not in "".join(inner.inspect_llvm().values())


def test_kernels_run_without_a_writable_folder(tmp_path: Path) -> None:
    script = """
import numpy as np
from lance_duck.kernels import cache
from lance_duck.kernels import jit
cache.cache_folders = lambda: (cache.Path("/proc/nowhere"),)
assert jit.kernel(lambda a: a[0] + 1)(np.arange(3)) == 1
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, timeout=120)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_can_compile_kernels() -> None:
    script = """
import os, signal, threading, time
from numba.core.compiler_lock import global_compiler_lock
import lance_duck.kernels.jit
held = threading.Event()

def compile():
    with global_compiler_lock:
        held.set()
        time.sleep(0.5)

thread = threading.Thread(target=compile)
thread.start()
held.wait()
if child := os.fork():
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    with global_compiler_lock:
        pass
else:
    signal.alarm(20)
    with global_compiler_lock:
        os._exit(0)
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr


def test_a_numba_with_compilation_disabled_is_rejected() -> None:
    script = "import lance_duck.kernels.numbers.flat"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert (
        "UnsupportedError: NUMBA_DISABLE_JIT: NUMBA_DISABLE_JIT is not supported; unset the environment variable"
        in run.stderr
    )
