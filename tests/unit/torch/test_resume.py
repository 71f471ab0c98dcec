"""Loaders continue at the next row."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError

torch = pytest.importorskip("torch")
data = pytest.importorskip("lance_duck.torch.data")

ROWS = 50


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    return ld.write_dataset({"id": range(ROWS)}, tmp_path_factory.mktemp("tables") / "t.lance", max_rows_per_file=20)


def taken(batches: Any, count: int | None = None) -> list[int]:
    """Return the ids of the next batches."""
    found: list[int] = []
    for number, batch in enumerate(batches, 1):
        found += batch.tolist()
        if number == count:
            break
    return found


def loader(table: ld.LanceDataset, batch_size: int, workers: int, **options: Any) -> Any:
    dataset = data.LanceDataset(table, batch_size, **options)
    return data.get_safe_loader(
        dataset, num_workers=workers, **({"multiprocessing_context": "fork"} if workers else {})
    )


@pytest.mark.parametrize("shuffle", [None, 4])
@pytest.mark.parametrize(("first", "second"), [(0, 0), (2, 0), (0, 1), (1, 2)])
def test_a_loader_continues_with_another_number_of_workers(
    table: ld.LanceDataset, shuffle: int | None, first: int, second: int
) -> None:
    begun = loader(table, 4, first, shuffle=shuffle)
    begun.dataset.set_epoch(2)
    before = taken(begun, 5)
    state = json.loads(json.dumps(begun.state_dict()))
    resumed = loader(table, 7, second, shuffle=shuffle)
    resumed.load_state_dict(state)
    assert resumed.dataset.epoch == 2
    middle = taken(resumed, 2)
    last = loader(table, 3, 0, shuffle=shuffle)
    last.load_state_dict(resumed.state_dict())
    after = taken(last)
    assert sorted(before + middle + after) == list(range(ROWS))
    assert len(before) == 20
    assert len(middle) == 14
    whole = data.LanceDataset(table, 4, shuffle=shuffle)
    whole.set_epoch(2)
    if first == second == 0:
        assert before + middle + after == taken(whole)
    assert sorted(taken(last)) == list(range(ROWS))  # the next pass has all rows


def test_an_epoch_begins_at_the_first_row(table: ld.LanceDataset) -> None:
    rows = data.LanceDataset(table, 10, shuffle=1)
    first = taken(rows)
    assert taken(rows, 2) == first[:20]
    state = rows.state_dict()
    assert taken(rows) == first
    rows.load_state_dict(state)
    assert rows.state_dict() == state
    rows.set_epoch(0)
    assert taken(rows) == first[20:]
    rows.load_state_dict(state)
    rows.set_epoch(1)
    assert sorted(taken(rows)) == sorted(first)
    rows.load_state_dict(rows.state_dict())
    assert taken(rows) == []


def test_persistent_workers_follow_the_epoch(table: ld.LanceDataset) -> None:
    shuffled = loader(table, 50, 1, shuffle=3)
    epochs = []
    for epoch in (0, 1, 1):
        shuffled.dataset.set_epoch(epoch)
        epochs.append(taken(shuffled))
    plain = data.LanceDataset(table, 50, shuffle=3)
    expected = taken(plain)
    plain.set_epoch(1)
    assert epochs == [expected, taken(plain), taken(plain)]


def test_ranks_continue_with_their_own_rows(table: ld.LanceDataset) -> None:
    seen = []
    for rank, count in ((0, 1), (1, 3)):
        begun = data.LanceDataset(table, 4, rank=rank, world_size=2)
        seen += taken(begun, count)
        resumed = data.LanceDataset(table, 4, rank=rank, world_size=2)
        resumed.load_state_dict(begun.state_dict())
        seen += taken(resumed)
    assert sorted(seen) == list(range(ROWS))
    halves = [data.LanceDataset(table, 4, rank=rank, world_size=2) for rank in (0, 1)]
    seen = [row for half in halves for row in taken(half, 3)]
    for rank in range(3):
        third = data.LanceDataset(table, 4, rank=rank, world_size=3)
        third.load_state_dict(halves[0].state_dict())
        seen += taken(third)
    assert sorted(seen) == list(range(ROWS))


def test_a_plain_loader_needs_the_number_of_batches(table: ld.LanceDataset) -> None:
    rows = data.LanceDataset(table, 4)
    plain = torch.utils.data.DataLoader(rows, batch_size=None, num_workers=2, multiprocessing_context="fork")
    before = taken(plain, 5)
    again = data.LanceDataset(table, 4)
    again.load_state_dict(rows.state_dict(batches=5, num_workers=2))
    assert sorted(before + taken(again)) == list(range(ROWS))


def test_samplers_of_pylance_continue(table: ld.LanceDataset) -> None:
    def rows() -> Any:
        return data.LanceDataset(table, 4, sampler=data.ShardedBatchSampler(0, 1, randomize=True, seed=5))

    begun, resumed = rows(), rows()
    begun._sampler.set_epoch(3)
    before = taken(begun, 4)
    resumed.load_state_dict(begun.state_dict())
    whole = rows()
    whole._sampler.set_epoch(3)
    assert before + taken(resumed) == taken(whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 3}, "number of rows: expected 50, as in this dataset, found 3"),
        ({"version": 9}, "version of the table: expected 1.*dataset_options"),
        ({"order": ["rows", False, 8]}, "order of rows: expected"),
        ({"passes": None}, "passes: expected a list"),
        ({"epoch": "x"}, "epoch: expected a whole number, found 'x'"),
        ({"worker": {"id": 0, "num_workers": 2, "rows": 4}}, "a state of another worker: found worker 0 of 2"),
        ({"worker": 3}, "id: expected a whole number"),
    ],
)
def test_states_that_do_not_fit_are_rejected(table: ld.LanceDataset, changes: Any, message: str) -> None:
    rows = data.LanceDataset(table, 4)
    with pytest.raises(InvalidInputError, match=message):
        rows.load_state_dict({**rows.state_dict(), **changes})
    assert taken(rows) == list(range(ROWS))


def test_only_datasets_in_order_continue(table: ld.LanceDataset) -> None:
    with pytest.raises(UnsupportedError, match="only a LanceDataset can resume"):
        data.get_safe_loader(data.BatchedLanceDataset(table), num_workers=0).state_dict()
    rows = data.LanceDataset(table, 4)
    passes = [{"world_size": 1, "num_workers": 1, "batch_size": 4, "batches": 99}]
    rows.load_state_dict({**rows.state_dict(), "passes": passes})
    with pytest.raises(InvalidInputError, match="found 99 of 13 batches"):
        taken(rows)


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("workers", [0, 2])
def test_the_loader_of_torchdata_continues(table: ld.LanceDataset, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def make() -> Any:
        context = {"multiprocessing_context": "fork"} if workers else {}
        rows = data.LanceDataset(table, 4, shuffle=2)
        return stateful.StatefulDataLoader(rows, batch_size=None, num_workers=workers, **context)

    begun, resumed, again = make(), make(), make()
    before = taken(begun, 5)
    resumed.load_state_dict(begun.state_dict())
    middle = taken(resumed, 3)
    again.load_state_dict(resumed.state_dict())
    assert before + middle + taken(again) == taken(make())
    assert np.unique(taken(again)).tolist() == list(range(ROWS))


@pytest.mark.parametrize("batches", [-1, 3.5, "x", True])
def test_a_state_needs_a_number_of_batches(table: ld.LanceDataset, batches: Any) -> None:
    with pytest.raises(InvalidInputError, match="batches"):
        data.LanceDataset(table, 4).state_dict(batches=batches)
