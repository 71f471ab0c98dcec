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
    ids, frequencies, token_bounds, positions = copies
    room, moved = np.empty((2, longest), np.uint64), np.empty(most_positions, np.uint32)
    counts = np.empty(1 << digits, np.uint32)
    outcome = sort(bounds, ids, frequencies, token_bounds, positions, room, moved, counts)
    return outcome, [each.tolist() for each in copies]


def _postings(seed: int, most: int, with_positions: bool) -> tuple[Any, tuple[Any, Any, Any, Any]]:
    """Return bounds, and documents, frequencies, token bounds and positions. The documents of some terms are sorted."""
    random = np.random.default_rng(seed)
    lengths = [length for length in random.permutation(np.repeat(LENGTHS, 2)).tolist() if length <= most]
    lists = [random.choice(most, length, replace=False) + random.integers(2) * (2**32 - 1 - most) for length in lengths]
    lists = [np.sort(each) if random.random() < 0.3 else each for each in lists]
    ids = np.concatenate(lists).astype(np.uint32)
    frequencies = random.choice([1, 1, 1, 2, 5], len(ids)).astype(np.uint32)
    positions = random.integers(0, 1 << 32, frequencies.sum() if with_positions else 0, np.uint32)
    bounds = np.append(0, np.cumsum(lengths))
    token_bounds = np.append(0, np.cumsum(frequencies, dtype=np.int64))[bounds if with_positions else bounds[:0]]
    return bounds, (ids, frequencies, token_bounds, positions)


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
    frequencies, token_bounds, positions = np.full(5, 2, np.uint32), 2 * bounds, np.arange(10, dtype=np.uint32)

    def outcome(
        bounds: Any = bounds,
        frequencies: Any = frequencies,
        token_bounds: Any = token_bounds,
        positions: Any = positions,
        **room: int,
    ) -> int:
        arrays = ids, frequencies, token_bounds, positions
        return _sorted(sort_documents, bounds, arrays, **{"longest": 3, "most_positions": 6, **room})[0] & 0xFF

    assert outcome() == status.OK
    assert outcome(longest=2) == status.TOO_SHORT
    assert outcome(digits=DIGIT_BITS - 1) == status.TOO_SHORT
    assert outcome(frequencies=frequencies[:-1]) == status.TOO_SHORT
    assert outcome(token_bounds=token_bounds[:-1]) == status.TOO_SHORT
    assert outcome(bounds=bounds + 1) == status.BAD_OFFSETS
    assert outcome(bounds=np.array([0, 2, 1])) == status.BAD_OFFSETS
    assert outcome(bounds=np.array([-1, 2])) == status.BAD_OFFSETS
    assert outcome(most_positions=5) == status.BAD_OFFSETS
    assert outcome(positions=positions[:-1]) == status.BAD_OFFSETS
    assert outcome(token_bounds=token_bounds - 1) == status.BAD_OFFSETS
    assert outcome(token_bounds=np.array([0, 6, 4])) == status.BAD_LENGTH
    assert outcome(token_bounds=np.array([0, 4, 9])) == status.BAD_LENGTH
    assert outcome(frequencies=np.array([2, 2, 0, 2, 1], np.uint32)) == status.BAD_LENGTH
