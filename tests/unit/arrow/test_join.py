from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_duck.arrow.join import joined, joined_arrays


def test_arrays_are_concatenated_in_order() -> None:
    pieces = [np.array([1, 2], np.uint32), np.array([], np.uint32), np.array([3], np.uint32)]
    assert joined(iter(pieces), np.uint32).tolist() == [1, 2, 3]
    assert joined_arrays([pa.array([1, None]), pa.array([2])], pa.int64()).equals(pa.array([1, None, 2]))


def test_a_single_array_is_copied() -> None:
    numbers = np.array([1, 2])
    copy = joined([numbers], np.int64)
    copy[0] = 5
    assert numbers.tolist() == [1, 2]


def test_concatenating_no_arrays_gives_an_empty_array_of_the_type() -> None:
    numbers, array = joined([], np.uint64), joined_arrays([], pa.string())
    assert (numbers.shape, numbers.dtype) == ((0,), np.uint64)
    assert array.equals(pa.array([], pa.string()))
