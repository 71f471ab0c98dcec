"""Kernels that sort postings give what their plain references do."""

from typing import Any

import numpy as np
import pytest

from lance_duck.kernels import status
from lance_duck.kernels.postings import sort


def _tokens(seed: int) -> tuple[Any, Any, Any]:
    """Return term ids of 7 terms, the numbers of these among 11, and the bounds of documents, some without tokens."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, 9, 20)
    bounds = np.append(0, np.cumsum(lengths))
    numbers = random.permutation(11)[:7].astype(np.int64)
    return random.integers(0, 7, bounds[-1]).astype(np.uint32), numbers, bounds


@pytest.mark.parametrize("seed", range(5))
def test_tokens_are_counted_and_filled_as_by_the_reference(seed: int) -> None:
    term_ids, numbers, bounds = _tokens(seed)
    states = []
    for count in (sort.count_tokens, sort.count_tokens_reference):
        state = (np.full(11, sort.NO_DOCUMENT, np.uint32), np.zeros(11, np.int64), np.zeros(11, np.int64))
        assert count(term_ids, numbers, bounds, 5, *state) == status.OK
        states.append([a.tolist() for a in state])
    assert states[0] == states[1]
    total = sum(states[0][1])
    starts = np.append(0, np.cumsum(states[0][1]))
    for first, end in ((0, 11), (2, 9), (4, 4)):
        results = []
        for fill in (sort.fill_tokens, sort.fill_tokens_reference):
            last, ends = np.full(end - first, sort.NO_DOCUMENT, np.uint32), starts[first:end].copy()
            documents, frequencies = np.zeros(total, np.uint32), np.zeros(total, np.uint32)
            assert fill(term_ids, numbers - first, bounds, 5, last, ends, documents, frequencies) == status.OK
            results.append([a.tolist() for a in (last, ends, documents, frequencies)])
        assert results[0] == results[1]
        assert results[0][1] == starts[first + 1 : end + 1].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_positions_are_filled_as_by_the_reference(seed: int) -> None:
    term_ids, numbers, _ = _tokens(seed)
    positions = np.arange(len(term_ids), dtype=np.uint32)
    starts = np.append(0, np.cumsum(np.bincount(numbers[term_ids], minlength=11)))
    for first, end in ((0, 11), (2, 9), (4, 4)):
        results = []
        for fill in (sort.fill_positions, sort.fill_positions_reference):
            ends, out = starts[first:end].copy(), np.zeros(len(term_ids), np.uint32)
            assert fill(term_ids, numbers - first, positions, ends, out) == status.OK
            results.append((ends.tolist(), out.tolist()))
        assert results[0] == results[1]
        assert results[0][0] == starts[first + 1 : end + 1].tolist()


def test_arrays_of_unlike_sizes_are_refused() -> None:
    term_ids, numbers, bounds = _tokens(0)
    last, ends = np.zeros(10, np.uint32), np.zeros(11, np.int64)
    ids, frequencies = np.zeros((2, len(term_ids)), np.uint32)
    assert sort.fill_tokens(term_ids, numbers, bounds, 5, last, ends, ids, frequencies) == status.TOO_SHORT
    last = np.zeros(11, np.uint32)
    assert sort.fill_tokens(term_ids, numbers, bounds, 5, last, ends, ids, frequencies[:-1]) == status.TOO_SHORT


def _partition(seed: int) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return bounds, documents, frequencies, names, numbers and positions of a partition of 6 terms, 12 documents."""
    random = np.random.default_rng(seed)
    lists = [np.sort(random.permutation(12)[: random.integers(0, 9)]) for _ in range(6)]
    documents = np.concatenate(lists).astype(np.uint32)
    frequencies = random.integers(1, 4, len(documents)).astype(np.uint32)
    lives = random.random(12) < 0.6
    names = np.where(lives, np.cumsum(lives) + 2, -1)
    numbers = random.permutation(8)[:6].astype(np.int64)
    positions = random.integers(0, 99, frequencies.sum()).astype(np.uint32)
    return np.append(0, np.cumsum([len(each) for each in lists])), documents, frequencies, names, numbers, positions


@pytest.mark.parametrize("seed", range(5))
def test_living_postings_are_counted_and_filled_as_by_the_reference(seed: int) -> None:
    bounds, documents_of, frequencies_of, names, numbers, positions = _partition(seed)
    partition = (bounds, documents_of, frequencies_of, names, numbers)
    counts = np.zeros((2, 2, 8), np.int64)
    assert sort.count_living(*partition, counts[0]) == status.OK
    assert sort.count_living_reference(*partition, counts[1]) == status.OK
    np.testing.assert_array_equal(counts[0], counts[1])
    starts, token_starts = (np.append(0, np.cumsum(each)) for each in counts[0])
    results = []
    for fill in (sort.fill_living, sort.fill_living_reference):
        ends, documents, frequencies = starts[:-1].copy(), *np.zeros((2, starts[-1]), np.uint32)
        assert fill(*partition, ends, documents, frequencies) == status.OK
        results.append([each.tolist() for each in (ends, documents, frequencies)])
    assert results[0] == results[1]
    results = []
    for fill_positions in (sort.fill_living_positions, sort.fill_living_positions_reference):
        ends, out = token_starts[:-1].copy(), np.zeros(token_starts[-1], np.uint32)
        assert fill_positions(*partition, positions, ends, out) == status.OK
        results.append([ends.tolist(), out.tolist()])
    assert results[0] == results[1]


def test_what_does_not_fit_together_is_a_status_and_not_touched() -> None:
    bounds, documents, frequencies, names, numbers, positions = _partition(1)
    counts = np.zeros((2, 8), np.int64)
    assert sort.count_living(bounds + 1, documents, frequencies, names, numbers, counts) & 0xFF == status.BAD_OFFSETS
    assert sort.count_living(bounds, documents, frequencies, names[:2], numbers, counts) & 0xFF == status.BAD_CODE
    assert sort.count_living(bounds, documents, frequencies, names, numbers + 5, counts) & 0xFF == status.BAD_CODE
    assert sort.count_living(bounds, documents, frequencies[1:], names, numbers, counts) == status.TOO_SHORT
    ends, out = np.zeros(8, np.int64), np.zeros(999, np.uint32)
    partition = (bounds, documents, frequencies, names, numbers)
    assert sort.fill_living_positions(*partition, positions[:-1], ends, out) & 0xFF == status.TOO_SHORT
    ends[:] = 0
    assert sort.fill_living_positions(*partition, np.append(positions, positions), ends, out) == status.TRAILING
    last, one = np.zeros(8, np.uint32), np.zeros(8, np.int64)
    term_ids = np.array([0, 9], np.uint32)
    assert sort.count_tokens(term_ids, numbers, np.array([0, 2]), 0, last, one, one) & 0xFF == status.BAD_CODE
    assert sort.count_tokens(term_ids, numbers, np.array([0, 3]), 0, last, one, one) & 0xFF == status.BAD_OFFSETS
