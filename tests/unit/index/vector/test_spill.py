"""Codes are returned by partition, sorted by row address."""

import numpy as np
import pytest

from lance_duck.index.vector.spill import SortedRuns, Spill


@pytest.mark.parametrize("limit", [1, 200, 1 << 20])
@pytest.mark.parametrize("by_name", [True, False])
def test_each_partition_holds_its_rows_in_order(limit: int, by_name: bool) -> None:
    random = np.random.default_rng(0)
    names, partitions = random.permutation(60).astype(np.uint64), random.integers(0, 4, 60)
    codes = np.stack([names, partitions], axis=1).astype(np.int64)
    with Spill() as spill:
        runs = SortedRuns(5, limit, spill, by_name=by_name)
        for first in range(0, 60, 13):
            part = slice(first, first + 13)
            runs.add(partitions[part], names[part], codes[part])
        for partition in range(4):
            taken = runs.take(partition)
            assert taken is not None
            expected = names[partitions == partition]
            assert taken[0].tolist() == (sorted(expected.tolist()) if by_name else expected.tolist())
            assert taken[1].tolist() == [[name, partition] for name in taken[0].tolist()]
        assert runs.take(4) is None


def test_ordered_codes_are_not_copied() -> None:
    names, codes = np.arange(20, dtype=np.uint64), np.arange(60).reshape(20, 3)
    with Spill() as spill:
        runs = SortedRuns(2, 1 << 20, spill)
        runs.add(np.repeat([0, 1], 10), names, codes)
        (_, first), (_, again), (rows, second) = (runs.take(partition) or (0, 0) for partition in (0, 0, 1))
    assert np.shares_memory(first, again)
    assert rows.tolist() == list(range(10, 20))
    assert second.tolist() == codes[10:].tolist()
