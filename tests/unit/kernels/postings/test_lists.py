"""Kernels for binary lists equal slices of Python lists, and reject invalid input."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest

from lance_duck.errors import CorruptError
from lance_duck.index.inverted.codecs.arrays import BinaryLists
from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.lists import count_postings, locate_blocks, size_lists
from lance_duck.kernels.postings.scores import bound_windows


def lists_of(values: list[list[bytes]]) -> BinaryLists:
    flat = [value for each in values for value in each]
    data = np.frombuffer(b"".join(flat), np.uint8)
    offsets = np.cumsum([0, *map(len, flat)])
    return BinaryLists(readonly(data), readonly(offsets), readonly(np.cumsum([0, *map(len, values)])))


def values_of(lists: BinaryLists) -> list[list[bytes]]:
    spans = [lists.data[a:b].tobytes() for a, b in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)]
    return [spans[a:b] for a, b in zip(lists.lists[:-1], lists.lists[1:], strict=True)]


def test_lists_can_be_taken_in_any_order() -> None:
    values = [[b"ab", b""], [], [b"c"], [b"defg", b"h", b"ij"]]
    for rows in ([], [3], [2, 0, 3, 0], [1, 1], [0, 1, 2, 3]):
        assert values_of(lists_of(values).take(np.array(rows, np.int64), "x")) == [values[row] for row in rows]


@pytest.mark.parametrize(
    ("offsets", "lists", "row"),
    [
        ([0, 1, 2], [0, 1, 2], 2),
        ([0, 1, 2], [0, 1, 2], -1),
        ([0, 1, 9], [0, 1, 2], 1),
        ([-1, 1, 2], [0, 1, 2], 0),
        ([0, 2, 1], [0, 1, 2], 1),
        ([0, 1, 2], [0, 1, 3], 1),
        ([0, 1, 2], [1, 0, 2], 0),
        ([0, 1, 2], [-1, 1, 2], 0),
    ],
)
def test_invalid_lists_are_rejected(offsets: list[int], lists: list[int], row: int) -> None:
    broken = BinaryLists(*(readonly(np.array(a, t)) for a, t in (([1, 2], np.uint8), (offsets, int), (lists, int))))
    sizes = np.zeros(2, np.int64)
    assert size_lists(2, broken.offsets, broken.lists, readonly(np.array([row])), sizes) == status.BAD_OFFSETS
    with pytest.raises(CorruptError, match="lists of blocks, list 0"):
        broken.take(np.array([row]), "x")


def test_postings_are_counted_and_fit_their_blocks() -> None:
    blocks = lists_of([[b"12345678", b"1"], [], [b"12"]])

    def count(lengths: list[int]) -> int:
        return count_postings(blocks.offsets, blocks.lists, readonly(np.array(lengths, np.int64)), 4, 1)

    assert count([5, 0, 2]) == 7
    assert [count(each) for each in ([4, 0, 2], [5, 1, 2], [5, 0, -1], [5, 0], [5, 0, 5])] == [-1] * 5
    assert count_postings(blocks.offsets, blocks.lists, readonly(np.array([8, 0, 4])), 4, 1) == -2


def test_blocks_of_streams_are_located() -> None:
    def locate(
        terms: list[int], starts: list[int], lists: list[int], counts: list[int], rows: tuple[int, ...] = (0, 1)
    ) -> object:
        bounds = [0, *accumulate(counts)]
        begins, ends = np.empty((2, bounds[-1]), np.int64)
        given = ((terms, int), (starts, np.uint32), (lists, int), (rows, int), (bounds, int))
        arrays = (readonly(np.array(values, type_)) for values, type_ in given)
        code = locate_blocks(*arrays, begins, ends)  # type: ignore[arg-type]
        return (begins.tolist(), ends.tolist()) if code == status.OK else (code & 255, code >> 8)

    assert locate([0, 9, 12], [7, 0, 4, 0], [1, 3, 4], [2, 1]) == ([0, 4, 9], [4, 9, 12])
    assert locate([0, 9, 12], [7, 0, 4, 0], [1, 3, 4], [1, 2], (1, 0)) == ([9, 0, 4], [12, 4, 9])
    assert locate([0, 9, 12], [7, 0, 4, 0], [1, 3, 4], [1], (2,)) == (status.BAD_OFFSETS, 0)
    assert locate([0, 9, 12], [0, 4, 0], [0, 2, 3], [2, 2]) == (status.BAD_LENGTH, 1)
    assert locate([0, 9, 12], [0, 10, 0], [0, 2, 3], [2, 1]) == (status.BAD_OFFSETS, 0)
    assert locate([0, 9, 12], [5, 4, 0], [0, 2, 3], [2, 1]) == (status.BAD_OFFSETS, 0)


@pytest.mark.parametrize("every", [False, True])
def test_windows_have_score_bounds_and_are_ordered_by_score(every: bool) -> None:
    random = np.random.default_rng(5)
    count, size = 40, 8
    lists, last, bounds, expected = [0], [], [], np.zeros((3, count))
    for term in range(3):
        ends = np.sort(random.permutation(count * size)[: random.integers(5, 20)])
        for first, end in zip([0, *(ends[:-1] + 1)], ends, strict=True):
            bounds.append(float(random.integers(1, 9)))
            window = slice(first // size, end // size + 1)
            expected[term, window] = np.maximum(expected[term, window], 2 * bounds[-1])
        last += ends.tolist()
        lists.append(len(last))
    out, totals, order = np.zeros((3, count)), np.empty(count), np.empty(count, np.int64)
    bound_windows(np.array(lists), np.array(last), np.array(bounds), size, every, 2.0, 4, out, totals, order)
    assert out.tolist() == expected.tolist()
    sums = expected.sum(axis=0)
    void = (expected == 0).any(axis=0) if every else sums == 0
    assert totals.tolist() == np.where(void, -1, sums).tolist()
    assert totals[order[:4]].tolist() == np.sort(totals)[::-1][:4].tolist()
    assert order[4:].tolist() == sorted(set(range(count)) - set(order[:4].tolist()))
