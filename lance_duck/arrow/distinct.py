"""Sets of numbers as ascending numpy arrays.

numpy's own functions gather distinct numbers in a hash table, which takes 10 to 100 times as long as sorting them:
0.6 s for a million row addresses, sorting 6 ms. `benchmarks/distinct.py` measures it.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.generic)


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """Return the distinct numbers of an array of any shape, ascending, as `np.unique` does.

    Args:
        values: Integers, or floats without NaN.
    """
    ordered = np.sort(values, axis=None)
    if len(ordered) < 2:
        return ordered
    is_new = np.empty(len(ordered), np.bool_)
    is_new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def union_of(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct numbers of either array, ascending, as `np.union1d` does."""
    return distinct(np.concatenate([left, right], axis=None))


def difference_of(left: NDArray[_Number], right: NDArray[Any]) -> NDArray[_Number]:
    """Return the distinct numbers of the first array that the second one lacks, ascending, as `np.setdiff1d` does."""
    return np.setdiff1d(distinct(left), distinct(right), assume_unique=True)


def intersection_of(left: NDArray[_Number], right: NDArray[Any]) -> NDArray[_Number]:
    """Return the distinct numbers of both arrays, ascending, as `np.intersect1d` does."""
    return np.intersect1d(distinct(left), distinct(right), assume_unique=True)
