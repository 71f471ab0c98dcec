from __future__ import annotations

import numpy as np
import pytest

from lance_duck.kernels.jit import kernel, readonly
from lance_duck.kernels.postings.lanes import ROWS, unpack_lanes, unpack_sums
from lance_duck.kernels.postings.packing import pack_lanes


@kernel
def packed(values, width, lanes, out, target) -> None:
    pack_lanes(values, 0, width, lanes, out, target)


@kernel
def unpacked(data, source, width, lanes, out, place) -> None:
    unpack_lanes(data, source, width, lanes, out, place)


@kernel
def added_up(first, data, source, width, lanes, out, place) -> None:
    unpack_sums(first, data, source, width, lanes, out, place)


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("width", range(33))
def test_numbers_and_their_sums_are_unpacked(lanes, width) -> None:
    random = np.random.default_rng(width)
    values = random.integers(0, 1 << width, ROWS * lanes, dtype=np.uint64).astype(np.uint32)
    data = np.zeros(3 + width * lanes * 4, np.uint8)  # ends with the group, which begins at an odd byte
    packed(values, width, lanes, data, 3)
    first = np.uint32(random.integers(1 << 32))
    for unpack, expected in (
        (unpacked, values),
        (lambda *to: added_up(first, *to), np.cumsum(values, dtype=np.uint32) + first),
    ):
        out = np.full(ROWS * lanes + 7, 99, np.uint32)
        unpack(readonly(data), 3, width, lanes, out, 5)
        assert out[5:-2].tolist() == expected.tolist()
        assert out[:5].tolist() == [99] * 5
        assert out[-2:].tolist() == [99] * 2
