"""Loads, stores and views of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_duck.kernels.cache import KernelCache
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import as_readonly


def test_a_read_only_view_has_the_elements_of_the_array() -> None:
    inner: Any = subroutine(lambda numbers, at: numbers[at])
    inner._cache = KernelCache(inner.py_func, [])

    def write_and_read(numbers: Any) -> Any:
        numbers[2] = 7
        return inner(as_readonly(numbers), 2) + inner(as_readonly(numbers), 4)

    outer: Any = kernel(write_and_read)
    outer._cache = KernelCache(write_and_read, [])
    assert outer(np.array([3, 1, 4, 1, 5])) == 12
    ((array, _),) = inner.signatures
    assert not array.mutable
