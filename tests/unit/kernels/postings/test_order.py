"""The kernel that sorts postings by document gives what its plain reference does."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from lance_duck.kernels import status
from lance_duck.kernels.postings.order import DIGIT_BITS, sort_documents, sort_documents_reference

LENGTHS = (0, 1, 2, 23, 24, 25, 31, 300, 2_047, 2_500)


def _sorted(sort: Any, bounds: Any, arrays: Any, longest: int, most_positions: int, digits: int = DIGIT_BITS) -> Any:
    copies = [each.copy() for each in arrays]
    room, moved = np.empty((2, longest), np.uint64), np.empty(most_positions, np.uint32)
    return sort(bounds, *copies, room, moved, np.empty(1 << digits, np.uint32)), [each.tolist() for each in copies]


def _postings(seed: int, most: int, with_positions: bool) -> tuple[Any, tuple[Any, Any, Any]]:
    """Return bounds, documents, frequencies and positions. The documents of some terms are sorted."""
    random = np.random.default_rng(seed)
    lengths = [length for length in random.permutation(np.repeat(LENGTHS, 2)).tolist() if length <= most]
    lists = [random.choice(most, length, replace=False) + random.integers(2) * (2**32 - 1 - most) for length in lengths]
    lists = [np.sort(each) if random.random() < 0.3 else each for each in lists]
    ids = np.concatenate(lists).astype(np.uint32)
    frequencies = random.choice([1, 1, 1, 2, 5], len(ids)).astype(np.uint32)
    positions = random.integers(0, 1 << 32, frequencies.sum() if with_positions else 0, np.uint32)
    return np.append(0, np.cumsum(lengths)), (ids, frequencies, positions)


@pytest.mark.parametrize("with_positions", [True, False])
@pytest.mark.parametrize("most", [40, 3_000, 200_000])
@pytest.mark.parametrize("seed", range(5))
def test_postings_are_sorted_like_those_of_the_reference(seed: int, most: int, with_positions: bool) -> None:
    bounds, arrays = _postings(seed, most, with_positions)
    longest, most_positions = np.diff(bounds).max(), int(arrays[1].sum())
    outcome, result = _sorted(sort_documents, bounds, arrays, longest, most_positions)
    assert outcome == status.OK
    assert result == _sorted(sort_documents_reference, bounds, arrays, longest, most_positions)[1]
    for low, high in pairwise(bounds.tolist()):
        assert result[0][low:high] == sorted(arrays[0][low:high].tolist())


def test_inconsistent_postings_are_rejected() -> None:
    bounds, ids = np.array([0, 2, 5]), np.array([4, 3, 7, 9, 8], np.uint32)
    arrays = ids, np.full(5, 2, np.uint32), np.arange(10, dtype=np.uint32)

    def outcome(bounds: Any = bounds, arrays: Any = arrays, **room: int) -> int:
        return _sorted(sort_documents, bounds, arrays, **{"longest": 3, "most_positions": 6, **room})[0] & 0xFF

    assert outcome() == status.OK
    assert outcome(longest=2) == status.TOO_SHORT
    assert outcome(most_positions=5) == status.TOO_SHORT
    assert outcome(digits=DIGIT_BITS - 1) == status.TOO_SHORT
    assert outcome(arrays=(ids, arrays[1], arrays[2][:-1])) == status.TOO_SHORT
    assert outcome(arrays=(ids, arrays[1][:-1], arrays[2])) == status.TOO_SHORT
    assert outcome(bounds=bounds + 1) == status.BAD_OFFSETS
    assert outcome(bounds=np.array([0, 3, 2])) == status.BAD_OFFSETS
    assert outcome(bounds=np.array([-1, 2])) == status.BAD_OFFSETS
