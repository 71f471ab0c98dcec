from __future__ import annotations

import numpy as np
import pytest

from lance_duck.kernels.jit import kernel, readonly
from lance_duck.kernels.postings.search.intersect import fresh_marks
from lance_duck.kernels.postings.search.reading import next_block


@kernel
def fresh(marks, greatest) -> int:
    return int(fresh_marks(marks, greatest))


@kernel
def next_of(last, block, document) -> int:
    return int(next_block(last, block, len(last), document))


def test_marks_restart_before_they_overflow() -> None:
    marks, greatest = np.full(8, 7, np.uint32), np.array([100])
    assert fresh(marks, greatest) == 100
    greatest[0] = (1 << 32) - 9
    assert fresh(marks, greatest) == (1 << 32) - 9
    assert set(marks.tolist()) == {7}
    greatest[0] += 1
    assert fresh(marks, greatest) == 0
    assert set(marks.tolist()) == {0}
    assert greatest[0] == 0


@pytest.mark.parametrize("block", [0, 1, 3])
def test_next_of_finds_the_first_block_that_ends_at_or_after_a_document(block) -> None:
    last = np.array([3, 9, 20, 21, 30, 31, 32, 50, 60, 70, 80, 99])
    for document in range(last[block] + 1, 102):
        expected = next((i for i, end in enumerate(last.tolist()) if end >= document), len(last))
        assert next_of(readonly(last), block, document) == expected
