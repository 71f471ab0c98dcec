from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.kernels.jit import readonly
from lance_duck.scan.costs import FLAGS
from lance_duck.scan.predicate.masks import keep_members
from lance_duck.scan.predicate.number_set import NumberSet


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("count", [0, 1, 40, 3000])
def test_membership_masks_keep_only_matching_rows(dtype: type[np.integer], count: int) -> None:
    rng = np.random.default_rng(count)
    limits = np.iinfo(dtype)
    edges = np.array([limits.min, limits.max], dtype)
    pool = np.concatenate([edges, rng.integers(limits.min, limits.max, 6000, dtype)])

    assert _kept(rng.choice(pool, 20_000), rng.choice(pool, count), rng)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("end", ["first", "last", "middle"])
@pytest.mark.parametrize("width", [FLAGS - 1, FLAGS, FLAGS + 1])
def test_a_range_of_members_is_found_at_the_ends_of_a_type(dtype: type[np.integer], end: str, width: int) -> None:
    rng = np.random.default_rng(width)
    limits = np.iinfo(dtype)
    low = {"first": int(limits.min), "last": int(limits.max) - width, "middle": int(limits.max) // 3}[end]
    members = np.array([low, *(low + int(step) for step in rng.integers(0, width, 90)), low + width], dtype)
    pool = np.concatenate([members, rng.integers(limits.min, limits.max, 500, dtype)])
    near = [low + step for step in (-1, 1, width - 1, width + 1) if limits.min <= low + step <= limits.max]

    assert _kept(np.concatenate([rng.choice(pool, 5000), np.array(near, dtype)]), members, rng)
    assert NumberSet.of(members).is_exact == (width < FLAGS)


def _kept(numbers: np.ndarray, members: np.ndarray, rng: np.random.Generator) -> bool:
    """Return whether exactly the members are kept, of the rows that the mask kept before."""
    before = rng.integers(0, 2, len(numbers), np.uint8)
    mask = before.copy()
    keep_members(readonly(numbers), NumberSet.of(members), pa.array(members), mask)
    wanted = set(members.tolist())
    expected = before & np.array([number in wanted for number in numbers.tolist()])
    return mask.tolist() == expected.tolist()
