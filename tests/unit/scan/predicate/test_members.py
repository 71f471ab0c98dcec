from __future__ import annotations

import numpy as np
import pytest

from lance_duck.scan.predicate.masks import keep_members


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("count", [0, 1, 40, 3000])
def test_membership_masks_keep_only_matching_rows(dtype: type[np.integer], count: int) -> None:
    rng = np.random.default_rng(count)
    limits = np.iinfo(dtype)
    edges = np.array([limits.min, limits.max], dtype)
    pool = np.concatenate([edges, rng.integers(limits.min, limits.max, 6000, dtype)])
    numbers = rng.choice(pool, 20_000)
    members = rng.choice(pool, count)
    before = rng.integers(0, 2, len(numbers), np.uint8)

    mask = before.copy()
    keep_members(numbers, members, mask)

    wanted = set(members.tolist())
    expected = before & np.array([number in wanted for number in numbers.tolist()])
    assert mask.tolist() == expected.tolist()
