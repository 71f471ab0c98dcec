"""A stopped pass and the passes after it read each row once, whoever shares the rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import InvalidInputError
from lance_duck.loading import RowSelection
from lance_duck.loading.progress import Reader, Sharing, StoppedPass, in_turn, passes_as_dicts, passes_of_dicts

COUNTS = st.integers(1, 4)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> RowSelection:
    uri = tmp_path_factory.mktemp("rows") / "t.lance"
    return RowSelection.of(ld.write_dataset({"id": range(60)}, uri, max_rows_per_file=17))


def batches(part: RowSelection, size: int) -> list[list[int]]:
    return [list(part.places[start : start + size]) for start in range(0, len(part), size)]


def received(sharing: Sharing, order: RowSelection, passes: Any, rank: int, world: int, workers: int, size: int) -> Any:
    """Return the batches of a rank, from its workers in turn."""
    readers = [Reader(rank, world, worker, workers) for worker in range(workers)]
    queues = [batches(sharing.part(order, passes, reader, size), size) for reader in readers]
    taken = []
    while any(queues):
        taken += [queue.pop(0) for queue in queues if queue]
    return taken


@given(
    length=st.integers(0, 60),
    by=st.sampled_from(["rows", "batch", "fragment"]),
    seed=st.none() | st.integers(0, 5),
    world=COUNTS,
    cuts=st.lists(st.tuples(COUNTS, st.integers(1, 9), st.integers(0, 12)), max_size=3),
    last=st.tuples(COUNTS, st.integers(1, 9)),
)
def test_each_row_is_read_once_by_passes_of_any_workers_and_batch_sizes(
    rows: RowSelection, length: int, by: Any, seed: int | None, world: int, cuts: Any, last: Any
) -> None:
    order = rows[:length] if seed is None else rows[:length].shuffle(seed)
    sharing, seen = Sharing(by), []
    for rank in range(world):
        passes: list[StoppedPass] = []
        for workers, size, count in cuts:
            taken = received(sharing, order, passes, rank, world, workers, size)[:count]
            seen += taken
            passes.append(StoppedPass(world, workers, size, len(taken)))
        seen += received(sharing, order, passes_of_dicts(passes_as_dicts(passes)), rank, world, *last)
    assert sorted(place for batch in seen for place in batch) == sorted(order.places)


@given(
    st.tuples(COUNTS, COUNTS, st.integers(1, 9), st.integers(0, 3)), COUNTS, COUNTS, st.sampled_from(["rows", "batch"])
)
def test_other_ranks_share_the_rows_that_are_left(
    rows: RowSelection, first: Any, world: int, workers: int, by: Any
) -> None:
    ranks, own, size, count = first
    sharing = Sharing(by)
    before = [received(sharing, rows, [], rank, ranks, own, size)[:count] for rank in range(ranks)]
    if {len(each) for each in before} != {count}:
        return
    passes = [StoppedPass(ranks, own, size, count)]
    after = [received(sharing, rows, passes, rank, world, workers, 5) for rank in range(world)]
    seen = [place for taken in (*before, *after) for batch in taken for place in batch]
    assert sorted(seen) == list(range(60))


@given(st.lists(st.integers(0, 6), max_size=5), st.integers(0, 30))
def test_batches_are_taken_from_the_workers_in_turn(workers: list[int], count: int) -> None:
    if count > sum(workers):
        with pytest.raises(InvalidInputError, match="does not fit these rows"):
            in_turn(workers, count)
        return
    left, expected = list(workers), [0] * len(workers)
    while sum(expected) < count:
        for worker in range(len(workers)):
            if left[worker] and sum(expected) < count:
                left[worker], expected[worker] = left[worker] - 1, expected[worker] + 1
    assert in_turn(workers, count) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        [3],
        [{"world_size": 1}],
        [{"world_size": 1, "num_workers": 1, "batch_size": 1, "batches": True}],
        [{"world_size": 1, "num_workers": 1, "batch_size": 0, "batches": 1}],
        [{"world_size": 1, "num_workers": 1, "batch_size": 1, "batches": -1}],
        [{"world_size": 1, "num_workers": 1 << 40, "batch_size": 1, "batches": 1}],
    ],
)
def test_damaged_passes_are_rejected(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="load_state_dict: passes"):
        passes_of_dicts(value)


def test_selections_of_one_version_are_joined(rows: RowSelection) -> None:
    assert list(RowSelection.concat([rows[3:5], rows[:0], rows[:2]]).places) == [3, 4, 0, 1]
    assert RowSelection.concat([rows[:0], rows[3:5]]).places == range(3, 5)
    assert len(RowSelection.concat([rows[:0]])) == 0
    with pytest.raises(InvalidInputError, match="selections: expected one or more"):
        RowSelection.concat([])
