"""Logarithms of float32, as the C library gives them."""

from __future__ import annotations

import ctypes
import math
import sys
from typing import Any

import numpy as np
import pytest

from lance_duck.index.inverted.codecs import logarithms
from lance_duck.index.inverted.codecs.logarithms import natural_log, natural_logs

VALUES = np.concatenate([np.linspace(1, 2, 997), np.geomspace(2, 1e9, 997), [1.2032192945480347]]).astype(np.float32)


def test_logarithms_differ_from_the_nearest_float_by_at_most_one_step() -> None:
    nearest = np.log(VALUES.astype(np.float64)).astype(np.float32)
    found = natural_logs(VALUES)
    assert found.dtype == np.float32
    assert np.all(np.abs(found - nearest) <= np.spacing(nearest))


def test_scalar_and_array_logarithms_agree() -> None:
    values = np.concatenate([VALUES[::-1], VALUES[:5]])
    assert natural_logs(values).tolist() == [natural_log(value) for value in values]
    assert len(natural_logs(values[:0])) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the C library of Linux")
def test_logarithms_equal_those_of_the_c_library() -> None:
    logf = ctypes.CDLL("libm.so.6").logf
    logf.restype, logf.argtypes = ctypes.c_float, [ctypes.c_float]
    assert [float(natural_log(value)) for value in VALUES] == [logf(float(value)) for value in VALUES]


def test_without_a_c_library_the_logarithm_is_the_nearest_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> Any:
        raise OSError("not found")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    logarithms._logf.cache_clear()
    try:
        assert natural_log(np.float32(1.2032193)) == np.float32(math.log(float(np.float32(1.2032193))))
    finally:
        logarithms._logf.cache_clear()
