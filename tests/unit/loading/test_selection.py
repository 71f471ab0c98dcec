"""Selections of rows."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import InvalidInputError
from lance_duck.loading import RowSelection

ROWS = 60


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    rows = {"id": range(ROWS), "half": [i / 2 for i in range(ROWS)]}
    dataset = ld.write_dataset(rows, tmp_path_factory.mktemp("tables") / "t.lance", max_rows_per_file=17)
    dataset.delete("id % 10 = 3")
    return dataset


IDS = [i for i in range(ROWS) if i % 10 != 3]


def ids(rows: RowSelection, batch_size: int = 7) -> list[int]:
    return [number for batch in rows.batches(batch_size, ["id"]) for number in batch["id"].to_pylist()]


def test_all_rows_are_returned_in_equal_batches(table: ld.LanceDataset) -> None:
    rows = RowSelection.of(table)
    assert (len(rows), ids(rows)) == (54, IDS)
    assert [batch.num_rows for batch in rows.batches(20)] == [20, 20, 14]
    assert [batch.num_rows for batch in rows.batches(20, drop_last=True)] == [20, 20]
    assert next(rows.batches(5)).schema.names == ["id", "half"]
    assert next(rows.batches(2, {"twice": "2 * id"}))["twice"].to_pylist() == [0, 2]


def test_a_filter_selects_rows_in_order(table: ld.LanceDataset) -> None:
    expected = [number for number in IDS if number >= 41]
    assert ids(RowSelection.of(table, "id >= 41")) == expected
    assert ids(RowSelection.of(table.filter("id >= 41"))) == expected
    assert ids(RowSelection(table.filter("id >= 41"), [2, 0])) == [44, 41]
    shuffled = RowSelection.of(table).shuffle(3)
    assert ids(shuffled.filter("id >= 41")) == [number for number in ids(shuffled) if number >= 41]


def test_a_seed_reproduces_a_shuffle(table: ld.LanceDataset) -> None:
    rows = RowSelection.of(table)
    assert ids(rows.shuffle(3)) == ids(rows.shuffle(3)) != ids(rows.shuffle(4))
    assert ids(rows.shuffle((3, 1))) != ids(rows.shuffle(3)) != IDS
    assert sorted(ids(rows.shuffle(3))) == IDS


def test_shuffling_in_blocks_keeps_neighbours_together(table: ld.LanceDataset) -> None:
    order = ids(RowSelection.of(table).shuffle(1, block=4))
    assert sorted(order) == IDS
    blocks = [IDS[start : start + 4] for start in range(0, 54, 4)]
    firsts = {block[0]: block for block in blocks}
    while order:
        block = firsts.pop(order[0])
        assert order[: len(block)] == block
        del order[: len(block)]


def test_split_sizes_follow_the_shares(table: ld.LanceDataset) -> None:
    rows = RowSelection.of(table)
    pieces = rows.split([0.5, 0.3, 0.2])
    assert [number for piece in pieces for number in ids(piece)] == IDS
    assert [len(piece) for piece in rows.split([0.1] * 10)] == [5, 6, 5, 6, 5, 5, 6, 5, 6, 5]
    assert [len(piece) for piece in rows.split([0.5, 0.25])] == [27, 13]
    for wrong in ([0.7, 0.7], [-0.1, 0.5], [float("nan")]):
        with pytest.raises(InvalidInputError):
            rows.split(wrong)


@given(
    st.integers(1, 9),
    st.sampled_from(["rows", "batch", "fragment"]),
    st.integers(1, 9),
    st.sampled_from(["", "shuffled", "few"]),
)
def test_each_row_is_in_one_shard(table: ld.LanceDataset, count: int, by: str, size: int, which: str) -> None:
    rows = RowSelection.of(table, "half < 20" if which == "few" else None)
    rows = rows.shuffle(1) if which == "shuffled" else rows
    shards = [rows.shard(index, count, by, size) for index in range(count)]  # type: ignore[arg-type]
    places = [place for shard in shards for place in shard.places]
    assert sorted(places) == sorted(rows.places)
    if by != "fragment":
        assert max(map(len, shards)) - min(map(len, shards)) <= (1 if by == "rows" else size)
    even = [len(rows.shard(index, count, by, size, even=True)) for index in range(count)]  # type: ignore[arg-type]
    assert set(even) == {len(rows) // (count * size) * size}


def test_take_uses_positions_in_the_selection(table: ld.LanceDataset) -> None:
    rows = RowSelection.of(table, "id >= 41")
    assert rows.take([3, 0, 3], ["id"])["id"].to_pylist() == [45, 41, 45]
    assert RowSelection.of(table)[10:].take(np.array([1]), ["id"])["id"].to_pylist() == [12]
    assert RowSelection.of(table)[::10].take([2], ["id"])["id"].to_pylist() == [22]
    assert rows.take([], ["id"]).num_rows == 0
    for wrong in ([-1], [len(rows)]):
        with pytest.raises(InvalidInputError, match="indices"):
            rows.take(wrong)


def test_a_selection_is_stored_for_its_version(table: ld.LanceDataset, tmp_path: Path) -> None:
    rows = RowSelection.of(table).shuffle(5)[:20]
    rows.save(tmp_path / "order.lance")
    assert ids(RowSelection.load(table, tmp_path / "order.lance")) == ids(rows)
    rows[:3].save(tmp_path / "order.lance")
    assert len(RowSelection.load(table, tmp_path / "order.lance")) == 3
    with pytest.raises(InvalidInputError, match="the selection belongs to another version"):
        RowSelection.load(table.checkout_version(1), tmp_path / "order.lance")
    with pytest.raises(InvalidInputError, match="not a selection"):
        RowSelection.load(table, table.uri)


def test_a_selection_stays_on_its_version_and_pickles(tmp_path: Path) -> None:
    dataset = ld.write_dataset({"id": range(9)}, tmp_path / "t.lance")
    rows = RowSelection.of(dataset)
    dataset.delete("id < 5")
    assert ids(rows) == ids(pickle.loads(pickle.dumps(rows))) == list(range(9))
    assert len(pickle.dumps(rows)) < 5000
    assert ids(RowSelection.of(dataset)) == [5, 6, 7, 8]


def test_empty_selections_have_no_batches(table: ld.LanceDataset) -> None:
    rows = RowSelection.of(table, "id < 0")
    assert (len(rows), ids(rows), ids(rows.shuffle(1))) == (0, [], [])
    assert [len(shard) for shard in (rows.shard(0, 2), rows.shard(1, 2, "batch"))] == [0, 0]


def test_invalid_selections_are_rejected(table: ld.LanceDataset) -> None:
    rows = RowSelection.of(table)
    for wrong in (
        lambda: RowSelection(table, [54]),
        lambda: RowSelection(table, [-1]),
        lambda: rows.batches(0),
        lambda: rows.batches(1, form="arow"),
        lambda: rows.shard(2, 2),
        lambda: rows.shard(0, 2, "row"),  # type: ignore[arg-type]
        lambda: rows.shuffle(1, block=0),
        lambda: rows[3],  # type: ignore[index]
    ):
        with pytest.raises(InvalidInputError):
            wrong()


@given(st.lists(st.tuples(st.integers(0, 53), st.integers(0, 40)), max_size=4), st.integers(1, 4))
def test_runs_of_rows_are_returned_in_equal_batches(
    table: ld.LanceDataset, runs: list[tuple[int, int]], size: int
) -> None:
    places = [place for start, length in runs for place in range(start, min(start + length, len(IDS)))]
    batches = list(RowSelection(table, places).batches(size, ["id"]))
    assert [number for batch in batches for number in batch["id"].to_pylist()] == [IDS[place] for place in places]
    assert {batch.num_rows for batch in batches[:-1]} <= {size}
