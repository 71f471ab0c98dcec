"""Datasets of PyTorch over Lance tables; skipped where torch is not installed."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.loading import RowSelection

torch = pytest.importorskip("torch")
data = pytest.importorskip("lance_duck.torch.data")
tensors = pytest.importorskip("lance_duck.torch.data")

ROWS = 50
IDS = [i for i in range(ROWS) if i % 10 != 3]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(np.arange(ROWS), 4), pa.float32()), 4)
    rows = {"id": range(ROWS), "v": vectors, "s": [f"row {i}" for i in range(ROWS)]}
    dataset = ld.write_dataset(rows, tmp_path_factory.mktemp("tables") / "t.lance", max_rows_per_file=20)
    dataset.delete("id % 10 = 3")
    return dataset


def ids(batches: Any) -> list[int]:
    columns = [batch if isinstance(batch, torch.Tensor) else batch["id"] for batch in batches]
    return [number for column in columns for number in column.tolist()]


def test_tensor_batches_are_ordered(table: ld.LanceDataset) -> None:
    first, *rest = data.LanceDataset(table, 20)
    assert (first["id"].dtype, first["v"].dtype, first["v"].shape) == (torch.int64, torch.float32, (20, 4))
    assert first["s"][:2] == ["row 0", "row 1"]
    assert torch.equal(first["v"][:, 0].to(torch.int64), first["id"])
    assert ids([first, *rest]) == IDS
    (few,) = data.LanceDataset(table.uri, 50, columns=["id"], filter="id < 5", with_row_id=True)
    assert few["id"].tolist() == [0, 1, 2, 4]
    assert few["_rowid"].shape == (4,)
    old = data.LanceDataset(table.uri, 50, columns=["id"], dataset_options={"version": 1})
    assert ids(old) == list(range(ROWS))
    (plain,) = data.LanceDataset(table, 50, columns={"twice": "2 * id"}, to_tensor_fn=None)
    assert type(plain) is pa.RecordBatch
    assert plain["twice"].to_pylist()[:2] == [0, 2]


def test_a_single_column_batch_is_a_tensor(table: ld.LanceDataset) -> None:
    (batch,) = data.LanceDataset(table, 50, columns=["v"])
    assert batch.shape == (45, 4)
    (text,) = data.LanceDataset(table, 50, columns=["s"], filter="id < 2")
    assert text == ["row 0", "row 1"]
    (named,) = data.LanceDataset(table, 50, columns=["v"], to_tensor_fn=tensors.to_tensors)
    assert torch.equal(named["v"], batch)


def test_numbers_without_a_sign_are_int64(tmp_path: Path) -> None:
    dataset = ld.write_dataset({"n": pa.array([1, (1 << 63) - 1], pa.uint64())}, tmp_path / "t.lance")
    (batch,) = data.LanceDataset(dataset, 2, with_row_id=True)
    assert (batch["n"].dtype, batch["_rowid"].dtype) == (torch.int64, torch.int64)
    assert batch["n"].tolist() == [1, (1 << 63) - 1]
    vectors = pa.array([[1, 1 << 63]], pa.list_(pa.uint64(), 2))
    assert tensors.only_tensor_or_all(pa.record_batch({"v": vectors})).dtype == torch.uint64
    dataset.insert({"n": pa.array([1 << 63], pa.uint64())})
    with pytest.raises(InvalidInputError, match="column 'n': torch cannot represent integers of 2\\^63"):
        list(data.LanceDataset(dataset, 2))
    assert [b["n"].dtype for b in data.LanceDataset(dataset, 4, to_tensor_fn=tensors.to_tensors)] == [torch.uint64]


def test_pylance_arguments_are_accepted_or_rejected_by_name(table: ld.LanceDataset) -> None:
    assert ids(data.LanceDataset(table, 9, columns=["id"], cache=True, batch_readahead=4)) == IDS
    with pytest.raises(UnsupportedError, match="sampler is not supported; shard_granularity"):
        data.LanceDataset(table, 9, sampler=object())


def test_samples_are_rows_at_random_in_order(table: ld.LanceDataset) -> None:
    rows = ids(data.LanceDataset(table, 4, columns=["id"], filter="id < 40", samples=10))
    assert len(rows) == 10
    assert rows == sorted(set(rows) & {i for i in IDS if i < 40}) != IDS[:10]
    shards = [data.LanceDataset(table, 4, columns=["id"], samples=10, shuffle=2, rank=r, world_size=2) for r in (0, 1)]
    assert len({*ids(shards[0]), *ids(shards[1])}) == 10
    assert ids(data.LanceDataset(table, 50, columns=["id"], samples=99)) == IDS
    with pytest.raises(InvalidInputError, match="samples"):
        data.LanceDataset(table, 4, samples=0)


@pytest.mark.parametrize("by", [None, "batch", "fragment"])
@pytest.mark.parametrize("shuffle", [None, 3])
def test_each_row_is_read_by_one_rank(table: ld.LanceDataset, by: Any, shuffle: int | None) -> None:
    parts = [
        ids(data.LanceDataset(table, 4, columns=["id"], rank=r, world_size=3, shard_granularity=by, shuffle=shuffle))
        for r in range(3)
    ]
    assert sorted(sum(parts, [])) == IDS  # noqa: RUF017
    assert all(parts)


@pytest.mark.parametrize(("kind", "by"), [("ShardedFragmentSampler", "fragment"), ("ShardedBatchSampler", "batch")])
def test_pylance_samplers_determine_the_rows_of_a_rank(table: ld.LanceDataset, kind: str, by: Any) -> None:
    for rank in range(2):
        sampled = data.LanceDataset(table, 4, columns=["id"], sampler=getattr(data, kind)(rank, 2))
        assert ids(sampled) == ids(data.LanceDataset(table, 4, rank=rank, world_size=2, shard_granularity=by))
    sampler = getattr(data, kind).from_torch(randomize=True, seed=3)
    dataset = data.LanceDataset(table, 4, sampler=sampler)
    first = ids(dataset)
    sampler.set_epoch(1)
    assert sorted(first) == sorted(ids(dataset)) == IDS
    assert first != ids(dataset)
    with pytest.raises(InvalidInputError, match="sampler: expected a sampler without rank"):
        data.LanceDataset(table, 4, sampler=sampler, rank=0)


def test_each_epoch_has_a_different_order(table: ld.LanceDataset) -> None:
    dataset = data.LanceDataset(table, 10, columns=["id"], shuffle=3)
    first, again = ids(dataset), ids(dataset)
    dataset.set_epoch(1)
    second = ids(dataset)
    assert first == again != second
    assert sorted(first) == sorted(second) == IDS
    even = [len(ids(data.LanceDataset(table, 4, rank=r, world_size=3, even=True))) for r in range(3)]
    assert even == [12, 12, 12]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_each_row_is_read_by_one_worker(table: ld.LanceDataset, context: str) -> None:
    assert len(list(data.LanceDataset(table, 7))) == 7  # reads before it forks
    rows = RowSelection.of(table, "id < 40").shuffle(1)
    streamed = data.LanceDataset(rows, 7, columns=["id", "v"])
    loader = data.get_safe_loader(streamed, num_workers=2, multiprocessing_context=context)
    for _ in range(2):
        assert Counter(ids(loader)) == Counter(number for number in IDS if number < 40)


def test_workers_read_batches_of_positions(table: ld.LanceDataset) -> None:
    rows = data.BatchedLanceDataset(table, columns=["id", "v"])
    loader = data.get_safe_loader(rows, 7, 2, multiprocessing_context="fork", shuffle=True)
    assert Counter(ids(loader)) == Counter(IDS)


def test_getitems_reads_a_batch_of_positions(table: ld.LanceDataset) -> None:
    rows = data.BatchedLanceDataset(table, columns=["id", "s"])
    assert len(rows) == 45
    found = rows.__getitems__([3, 0, 3])
    assert (found["id"].tolist(), found["s"]) == ([4, 0, 4], ["row 4", "row 0", "row 4"])
    assert rows[1]["id"].tolist() == [1]
    loader = data.get_safe_loader(rows, 10, 0, drop_last=True)
    assert [len(batch["s"]) for batch in loader] == [10] * 4


def test_rows_as_dicts_can_be_collated_by_torch(table: ld.LanceDataset) -> None:
    rows = pickle.loads(pickle.dumps(data.SafeLanceDataset(table.uri, columns=["id", "v"], filter="id >= 40")))
    assert rows[0] == {"id": 40, "v": [40.0] * 4}
    assert [row["id"] for row in rows.__getitems__([2, 0])] == [42, 40]
    assert ids(torch.utils.data.DataLoader(rows, batch_size=4)) == [40, 41, 42, 44, 45, 46, 47, 48, 49]


@pytest.mark.parametrize("shuffle", [None, 5])
def test_each_position_is_in_one_batch_of_one_rank(shuffle: int | None) -> None:
    samplers = [data.RankBatchSampler(45, 4, rank, 3, shuffle=shuffle) for rank in range(3)]
    batches = [list(sampler) for sampler in samplers]
    assert sorted(place for each in batches for batch in each for place in batch) == list(range(45))
    assert [len(sampler) for sampler in samplers] == [len(each) for each in batches] == [4, 4, 4]
    even = [list(data.RankBatchSampler(45, 4, rank, 3, shuffle=shuffle, even=True)) for rank in range(3)]
    assert [[len(batch) for batch in each] for each in even] == [[4, 4, 4]] * 3
    assert len(data.RankBatchSampler(47, 4, 1, 2, even=True)) == 5


def test_a_sampler_changes_its_order_each_epoch(table: ld.LanceDataset) -> None:
    sampler = data.RankBatchSampler(45, 10, shuffle=1)
    rows = data.BatchedLanceDataset(table, columns=["id"])
    loader = data.get_safe_loader(rows, num_workers=0, batch_sampler=sampler)
    first = ids(loader)
    sampler.set_epoch(1)
    assert first != ids(loader)
    assert sorted(first) == sorted(ids(loader)) == IDS


def test_tensors_share_memory_only_with_unshared_buffers(table: ld.LanceDataset) -> None:
    batch = next(RowSelection.of(table).batches(10))
    found = tensors.to_tensors(batch)
    values = batch["v"].flatten().buffers()[1]
    assert found["v"].data_ptr() == values.address or not values.is_mutable
    frozen = tensors.to_tensors(pa.record_batch({"x": pa.array(np.arange(3.0))}))
    assert frozen["x"].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("shuffle", [False, True])
def test_changing_a_tensor_does_not_affect_later_reads(table: ld.LanceDataset, shuffle: bool) -> None:
    rows = RowSelection.of(table).shuffle(2) if shuffle else RowSelection.of(table)
    mapped = data.BatchedLanceDataset(rows, columns=["id", "v"])
    before = ids([mapped.__getitems__(list(range(45)))])
    for dataset in (data.LanceDataset(rows, 9, columns=["id", "v"]), [mapped.__getitems__(list(range(45)))]):
        for batch in dataset:
            batch["id"].zero_()
            batch["v"].zero_()
    found = mapped.__getitems__(list(range(45)))
    assert found["id"].tolist() == before == ids(data.LanceDataset(rows, 9))
    assert torch.equal(found["v"][:, 0].to(torch.int64), found["id"])


def test_other_types_become_tensors() -> None:
    batch = pa.record_batch(
        {
            "b": pa.array([True, False]),
            "h": pa.array(np.array([1.5, 2], np.float16)),
            "t": pa.array([1, 2], pa.timestamp("us")),
            "x": pa.array([None, 2.0]),
            "u": pa.array([1, 255], pa.uint8()),
        }
    )
    found = tensors.to_tensors(batch.slice(0, 2))
    assert [found[name].dtype for name in "bhtu"] == [torch.bool, torch.float16, torch.int64, torch.uint8]
    assert found["x"].isnan().tolist() == [True, False]
    assert found["t"].tolist() == [1, 2]
    assert tensors.to_tensors(batch.slice(0, 0))["h"].shape == (0,)
    bits = pa.array([b"\xc0\x3f"], pa.binary(2))
    brain = pa.schema([pa.field("z", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})])
    assert tensors.to_tensors(pa.record_batch([bits], schema=brain))["z"].tolist() == [1.5]


def test_invalid_arguments_are_rejected(table: ld.LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="rank"):
        list(data.LanceDataset(table, 4, rank=3, world_size=3))
    with pytest.raises(InvalidInputError, match="dataset is already open"):
        data.LanceDataset(table, 4, dataset_options={"version": 1})
    with pytest.raises(InvalidInputError, match="batch_size"):
        data.RankBatchSampler(4, 0)
    with pytest.raises(InvalidInputError, match="batch_size"):
        list(data.LanceDataset(table, 0))


def test_the_table_may_be_written_while_workers_read(tmp_path: Path) -> None:
    dataset = ld.write_dataset({"id": range(20)}, tmp_path / "t.lance")
    rows = data.BatchedLanceDataset(dataset)
    loader = data.get_safe_loader(rows, 5, 1, multiprocessing_context="fork")
    dataset.delete("id < 10")
    assert ids(loader) == list(range(20))


def test_tensor_columns_keep_their_shape(tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    column = pa.FixedShapeTensorArray.from_numpy_ndarray(values)
    dataset = ld.write_dataset(pa.table({"t": column}), tmp_path / "t.lance")
    (batch,) = data.LanceDataset(dataset, 4, filter="_rowid > 0")
    assert torch.equal(batch, torch.from_numpy(values[1:]))


def test_items_are_transformed_in_threads(table: ld.LanceDataset) -> None:
    def shifted(batch: Any) -> Any:
        return batch + 100

    rows = data.LanceDataset(table, 4, columns=["id"], transform=shifted, threads=2)
    assert ids(rows) == [number + 100 for number in IDS]
    first = next(iter(rows)).tolist()
    again = data.LanceDataset(table, 4, columns=["id"], transform=shifted, threads=2)
    again.load_state_dict(rows.state_dict())
    assert first + ids(again) == ids(rows)
    with pytest.raises(InvalidInputError, match="threads: expected 0 or more, found -1"):
        data.LanceDataset(table, 4, threads=-1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pack": True}, "pack: expected a whole number, found True"),
        ({"pack": 2.5}, "pack: expected a whole number, found 2.5"),
        ({"threads": "2"}, "threads: expected a whole number, found '2'"),
        ({"transform": "x"}, "transform: expected a function or None, found str"),
        ({"to_tensor_fn": 3}, "to_tensor_fn: expected a function or None, found int"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused_before_reading(
    table: ld.LanceDataset, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(WrongTypeError, match=message):
        data.LanceDataset(table, 4, **options)


def test_tokens_are_packed(tmp_path: Path) -> None:
    tokens = [[i] * (i % 5) for i in range(40)]
    dataset = ld.write_dataset({"tokens": tokens}, tmp_path / "t.lance")
    items = list(data.LanceDataset(dataset, 2, columns=["tokens"], pack=8))
    assert [item["tokens"].shape for item in items] == [(2, 8)] * 5
    assert torch.cat([item["tokens"].reshape(-1) for item in items]).tolist() == [t for row in tokens for t in row]
    assert items[0]["document_ids"][0].tolist() == [0, 1, 1, 2, 2, 2, 3, 3]
    assert items[0]["position_ids"][1].tolist() == [0, 1, 0, 0, 1, 0, 1, 2]
    with pytest.raises(UnsupportedError, match="packed sequences cannot be continued"):
        data.LanceDataset(dataset, 2, pack=8).state_dict()
    with pytest.raises(InvalidInputError, match="pack: expected 1 or more, found 0"):
        data.LanceDataset(dataset, 2, pack=0)
