"""Kernels that sort postings give what their plain references do."""

from typing import Any

import numpy as np
import pytest

from lance_duck.kernels import status
from lance_duck.kernels.postings import sort


def _runs(seed: int, with_positions: bool, write: Any = sort.write_runs) -> tuple[list[Any], list[int]]:
    """Return order, counts, starts and bytes of the runs of 7 terms in 20 documents, some without tokens."""
    random = np.random.default_rng(seed)
    bounds = np.append(0, np.cumsum(random.integers(0, 9, 20)))
    term_ids = random.integers(0, 7, bounds[-1]).astype(np.uint32)
    far = random.integers(0, 1 << random.integers(1, 32), len(term_ids)) * (random.random(len(term_ids)) < 0.2)
    steps = np.where(np.isin(np.arange(len(term_ids)), bounds), 0, 1 + far)
    positions = np.cumsum(steps).astype(np.uint32)
    ends, entries = np.zeros(9, np.uint32), np.empty(len(term_ids), np.uint64)
    order, counts, starts = np.zeros(9, np.uint32), np.zeros((2, 9), np.uint32), np.zeros(9, np.uint32)
    out, state = np.zeros(15 * len(term_ids) + 50, np.uint8), np.zeros(2, np.int64)
    arguments = term_ids, bounds, positions if with_positions else positions[:0]
    assert write(*arguments, ends, entries, order, counts, starts, out, state) == status.OK
    runs, size = state.tolist()
    return [order[:runs], counts[:, :runs], starts[:runs], out[:size]], [each.tolist() for each in arguments]


@pytest.mark.parametrize("with_positions", [True, False])
@pytest.mark.parametrize("seed", range(9))
def test_runs_equal_those_of_the_reference(seed: int, with_positions: bool) -> None:
    runs, _ = _runs(seed, with_positions)
    expected, _ = _runs(seed, with_positions, sort.write_runs_reference)
    assert [each.tolist() for each in runs] == [each.tolist() for each in expected]


@pytest.mark.parametrize("with_positions", [True, False])
@pytest.mark.parametrize("seed", range(9))
def test_runs_become_the_postings_of_their_tokens(seed: int, with_positions: bool) -> None:
    (order, counts, starts, data), (term_ids, bounds, positions) = _runs(seed, with_positions)
    places = np.argsort(order)
    terms, starts, counts = order[places] + np.uint32(3), starts[places], counts[:, places]
    results = []
    names = np.random.default_rng(seed).permutation(20).astype(np.uint32) + np.uint32(100)
    for fill in (sort.fill_runs, sort.fill_runs_reference):
        ends, position_ends = np.zeros((2, 7), np.int64)
        ends[order[places]], position_ends[order[places]] = np.cumsum(counts, axis=1) - counts
        if not with_positions:
            position_ends = position_ends[:0]
        ids, frequencies = np.zeros((2, counts[0].sum()), np.uint32)
        out = np.zeros(counts[1].sum() if with_positions else 0, np.uint32)
        assert fill(data, terms, starts, 3, names, ends, ids, frequencies, position_ends, out) == status.OK
        results.append([each.tolist() for each in (ends, ids, frequencies, position_ends, out)])
    assert results[0] == results[1]
    tokens: dict[int, dict[int, list[int]]] = {}
    for i in range(len(bounds) - 1):
        for j in range(bounds[i], bounds[i + 1]):
            tokens.setdefault(term_ids[j], {}).setdefault(int(names[i]), []).append(positions[j] if positions else 0)
    in_order = [tokens[term] for term in sorted(tokens)]
    _, ids, frequencies, _, out = results[0]
    assert ids == [document for documents in in_order for document in documents]
    assert frequencies == [len(places) for documents in in_order for places in documents.values()]
    if with_positions:
        assert out == [place for documents in in_order for places in documents.values() for place in places]


def test_runs_without_enough_space_are_rejected() -> None:
    (order, counts, starts, data), _ = _runs(1, True)
    places = np.argsort(order)
    terms, starts, counts = order[places], starts[places], counts[:, places]
    bounds, position_bounds = np.cumsum(counts, axis=1) - counts
    ids, frequencies = np.zeros((2, counts[0].sum()), np.uint32)
    out = np.zeros(counts[1].sum(), np.uint32)

    def filled(data: Any = data, first: int = 0, ids: Any = ids, positions: Any = out, documents: int = 20) -> int:
        ends, position_ends = np.zeros((2, 7), np.int64)
        ends[terms], position_ends[terms] = bounds, position_bounds
        names = np.arange(documents, dtype=np.uint32)
        return (
            sort.fill_runs(data, terms, starts, first, names, ends, ids, frequencies, position_ends, positions) & 0xFF
        )

    assert filled() == status.OK
    assert filled(data[:-1]) == status.TOO_SHORT
    assert filled(ids=ids[:-1]) == status.TOO_SHORT
    assert filled(positions=out[:-1]) == status.TOO_SHORT
    assert filled(first=1) == status.BAD_CODE
    assert filled(documents=9) == status.BAD_CODE


def test_inconsistent_tokens_return_a_status() -> None:
    def written(term_ids: list[int], bounds: list[int], positions: int = 0, room: int = 99) -> int:
        entries, state = np.zeros(9, np.uint64), np.zeros(2, np.int64)
        ends, order, starts = np.zeros((3, 2), np.uint32)
        counts, out = np.zeros((2, 2), np.uint32), np.zeros(room, np.uint8)
        places = np.zeros(positions, np.uint32)
        arguments = np.array(term_ids, np.uint32), np.array(bounds), places
        return sort.write_runs(*arguments, ends, entries, order, counts, starts, out, state) & 0xFF

    assert written([0, 1], [0, 2]) == status.OK
    assert written([0, 2], [0, 2]) == status.BAD_CODE
    assert written([0, 1], [0, 3]) == status.BAD_OFFSETS
    assert written([0, 1], [1, 0]) == status.BAD_OFFSETS
    assert written([0, 1], [0, 2], positions=1) == status.TOO_SHORT
    assert written([0, 1], [0, 2], room=19) == status.TOO_SHORT
    assert written([0] * 10, [0, 10]) == status.TOO_SHORT


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
def test_live_postings_equal_those_of_the_reference(seed: int) -> None:
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


def test_inconsistent_postings_return_a_status() -> None:
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
