"""PyTorch datasets, samplers and a loader, and batches as tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import torch
from torch.utils import data

from lance_duck.arguments import checked_calls
from lance_duck.dataset import LanceDataset as Table
from lance_duck.dataset import dataset as open_dataset
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.loading.forms import numbers_of_column
from lance_duck.loading.selection import Granularity, RowSelection
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.projection import ColumnsLike

__all__ = [
    "BatchedLanceDataset",
    "LanceDataset",
    "RankBatchSampler",
    "SafeLanceDataset",
    "ShardedBatchSampler",
    "ShardedFragmentSampler",
    "as_it_is",
    "get_safe_loader",
]

_SPAWN: Final = "spawn"


def to_tensors(batch: pa.RecordBatch) -> dict[str, Any]:
    """Return a batch as tensors, by column.

    Fixed-size lists become matrices, fixed-shape tensors keep their shape, and times become integer ticks. Strings,
    variable-length lists and other types without numbers become lists of Python objects. A tensor shares the memory of
    its column only if that memory is not used elsewhere. You may therefore modify tensors.

    Raises:
        InvalidInputError: A column of integers, booleans, times or arrays contains a null.
    """
    return {field.name: _tensor(batch.column(place), field) for place, field in enumerate(batch.schema)}


def only_tensor_or_all(batch: pa.RecordBatch) -> Any:
    """Return the tensor of a single column, or a dict of tensors for several columns, like pylance.

    Converts like `to_tensors`, except that uint64 columns, such as row ids, become int64, because PyTorch supports few
    operations on uint64. uint64 vectors remain uint64.

    Raises:
        InvalidInputError: A column contains a null (see `to_tensors`), or a number of 2^63 or more.
    """
    tensors = {name: _signed(tensor, name) for name, tensor in to_tensors(batch).items()}
    return next(iter(tensors.values())) if len(tensors) == 1 else tensors


def _signed(tensor: Any, name: str) -> Any:
    if not isinstance(tensor, torch.Tensor) or tensor.dtype != torch.uint64 or tensor.ndim != 1:
        return tensor
    signed = tensor.view(torch.int64)
    if signed.numel() and int(signed.min()) < 0:
        raise InvalidInputError(
            "torch cannot represent integers of 2^63 or more",
            where=f"column {name!r}",
            remedy="pass to_tensor_fn=to_tensors to keep uint64",
        )
    return signed


def _tensor(array: pa.Array, field: pa.Field) -> Any:
    numbers = numbers_of_column(array, field)
    if numbers is None:
        return array.to_pylist()
    if pa.types.is_boolean(numbers.values.type):
        return torch.from_numpy(numbers.values.to_numpy(zero_copy_only=False)).reshape(numbers.shape)
    values = torch.from_dlpack(numbers.values)
    memory = numbers.values.buffers()[1]
    if memory is not None and not memory.is_mutable:  # later reads may use the same memory
        values = values.clone()
    return (values.view(torch.bfloat16) if numbers.is_bfloat16 else values).reshape(numbers.shape)


@dataclass
class RankSampler:
    """The share of one rank, which is split among its workers. Attributes are named like pylance's arguments.

    Attributes:
        rank: Rank of this process. Default: the rank in torch.distributed, or 0.
        world_size: Number of processes. Default: the world size of torch.distributed, or 1.
        randomize: Whether rows are in random order, which differs in each epoch.
        seed: Seed of the random order.
        epoch: The epoch, see `set_epoch`.
    """

    rank: int | None = None
    world_size: int | None = None
    randomize: bool = False
    seed: int = 0
    epoch: int = field(default=0, init=False)
    granularity: ClassVar[Granularity] = "rows"

    def set_epoch(self, epoch: int) -> None:
        """Set the current epoch, the same on all ranks. Call it before the workers of a DataLoader start."""
        self.epoch = epoch

    def order_seed(self, epoch: int = 0) -> tuple[int, int] | None:
        """Return the seed for the epoch set by `set_epoch`, or else for `epoch`. Returns None without random order."""
        return (self.seed, self.epoch or epoch) if self.randomize else None


class ShardedFragmentSampler(RankSampler):
    """Every world_size-th fragment for each rank, like `shard_granularity="fragment"`."""

    granularity = "fragment"

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedFragmentSampler:
        """Return the sampler of this process in the group of torch.distributed."""
        return ShardedFragmentSampler(randomize=randomize, seed=seed)


class ShardedBatchSampler(RankSampler):
    """Every world_size-th batch for each rank, like `shard_granularity="batch"`."""

    granularity = "batch"

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedBatchSampler:
        """Return the sampler of this process in the group of torch.distributed."""
        return ShardedBatchSampler(randomize=randomize, seed=seed)


@checked_calls
class LanceDataset(data.IterableDataset[Any]):  # type: ignore[misc]
    """Batches of a table in order, divided among torch.distributed ranks and DataLoader workers.

    Each row is read once, by one worker of one rank: `DataLoader(LanceDataset(uri, 256), batch_size=None)`.

    Args:
        dataset: A table, its URI, or a selection of its rows.
        batch_size: Rows of a batch.
        dataset_options: Arguments of `lance_duck.dataset` for a URI.
        columns: Columns, or SQL expressions by name. Default: all columns.
        filter: Condition that the rows must meet. Default: all rows.
        samples: Number of rows to sample at random. The sample is the same in each epoch. Default: all rows.
        with_row_id: Whether batches have `_rowid`.
        rank: Rank of this process. Default: the rank in torch.distributed, or 0.
        world_size: Number of processes. Default: the world size of torch.distributed, or 1.
        shard_granularity: None selects contiguous ranges of nearly equal length. "batch" selects every n-th batch, and
            "fragment" every n-th fragment.
        to_tensor_fn: Function that converts a RecordBatch to an item. The default is `only_tensor_or_all`, which
            matches pylance. `to_tensors` always returns a dict, and keeps uint64. If None, items are RecordBatches.
        shuffle: Seed of a random order, which differs in each epoch: see `set_epoch`. Default: the table's order.
        even: Whether all workers read the same number of whole batches. If True, remaining rows are not read.
        cache: Without effect. Repeated reads use the caches of the table and the system.
        batch_readahead: Without effect. Use `prefetch_factor` of the DataLoader.
        sampler: `ShardedFragmentSampler` or `ShardedBatchSampler`, as in pylance. It replaces `rank`, `world_size`,
            `shard_granularity` and `shuffle`.

    Raises:
        InvalidInputError: An argument is invalid.
        UnsupportedError: The sampler is not a `RankSampler`. Other samplers are not needed, because a row selection
            determines the rows.
    """

    def __init__(
        self,
        dataset: Table | RowSelection | str | os.PathLike[str],
        batch_size: int,
        *,
        dataset_options: Mapping[str, Any] | None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        samples: int | None = None,
        with_row_id: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        shard_granularity: Granularity | None = None,
        to_tensor_fn: Callable[[pa.RecordBatch], Any] | None = only_tensor_or_all,
        shuffle: int | None = None,
        even: bool = False,
        cache: bool | str | None = None,
        batch_readahead: int | None = None,
        sampler: RankSampler | None = None,
    ) -> None:
        super().__init__()
        if sampler is not None:
            _check_sampler(sampler, (rank, world_size, shard_granularity, shuffle))
            rank, world_size, shard_granularity = sampler.rank, sampler.world_size, sampler.granularity
        rows = _rows(dataset, dataset_options, filter)
        self.rows = rows if samples is None else _sample(rows, samples, shuffle or 0)
        self.batch_size = batch_size
        self.columns = _with_row_id(self.rows, columns) if with_row_id else columns
        self._part = rank, world_size
        self._granularity = shard_granularity
        self._convert = to_tensor_fn
        self._seed = shuffle
        self._sampler = sampler
        self._even = even
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the current epoch, the same on all ranks. Call it before the workers of a DataLoader start."""
        self._epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        index, count = _place(*self._part)
        seed = None if self._seed is None else (self._seed, self._epoch)
        if self._sampler is not None:
            seed = self._sampler.order_seed(self._epoch)
        rows = self.rows if seed is None else self.rows.shuffle(seed)
        part = rows.shard(index, count, self._granularity or "rows", self.batch_size, self._even)
        for batch in part.batches(self.batch_size, self.columns):
            yield batch if self._convert is None else self._convert(batch)


@checked_calls
class BatchedLanceDataset(data.Dataset[Any]):  # type: ignore[misc]
    """Rows of a table by position. The rows of a batch are read together, and returned as a batch.

    A DataLoader needs `collate_fn=as_it_is`, because the dataset itself creates the tensors of a batch.
    `get_safe_loader` sets it.

    Args:
        dataset: A table, its URI, or a selection of its rows.
        dataset_options: Arguments of `lance_duck.dataset` for a URI.
        columns: Columns, or SQL expressions by name. Default: all columns.
        filter: Condition that the rows must meet. Default: all rows.
        to_tensor_fn: Function that converts a RecordBatch, or None to return the RecordBatch itself.
    """

    def __init__(
        self,
        dataset: Table | RowSelection | str | os.PathLike[str],
        *,
        dataset_options: Mapping[str, Any] | None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        to_tensor_fn: Callable[[pa.RecordBatch], Any] | None = to_tensors,
    ) -> None:
        self.rows = _rows(dataset, dataset_options, filter)
        self.columns = columns
        self._convert = to_tensor_fn

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.__getitems__([index])

    def __getitems__(self, indices: list[int]) -> Any:
        """Return rows by position, in the order of `indices`."""
        batch = self.rows.take(indices, self.columns)
        return batch if self._convert is None else self._convert(batch)


@checked_calls
class SafeLanceDataset(data.Dataset[Any]):  # type: ignore[misc]
    """Table rows as dicts of Python values, which a DataLoader collates. Each batch is read in one call.

    Args:
        uri: A table, its URI, or a selection of its rows.
        dataset_options: Arguments of `lance_duck.dataset` for a URI.
        columns: Columns, or SQL expressions by name. Default: all columns.
        filter: Condition that the rows must meet. Default: all rows.
    """

    def __init__(
        self,
        uri: Table | RowSelection | str | os.PathLike[str],
        *,
        dataset_options: Mapping[str, Any] | None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
    ) -> None:
        self.rows = _rows(uri, dataset_options, filter)
        self.columns = columns

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: list[int]) -> list[dict[str, Any]]:
        """Return rows by position, in the order of `indices`."""
        rows: list[dict[str, Any]] = self.rows.take(indices, self.columns).to_pylist()
        return rows


class RankBatchSampler(data.Sampler[list[int]]):  # type: ignore[misc]
    """Row positions of one rank's batches, as the `batch_sampler` of a DataLoader. Ranks do not share positions.

    Args:
        length: Number of rows of the dataset.
        batch_size: Rows of a batch.
        rank: Rank of this process. Default: the rank in torch.distributed, or 0.
        world_size: Number of processes. Default: the world size of torch.distributed, or 1.
        shuffle: Seed of a random order, which differs in each epoch: see `set_epoch`. Default: ascending positions.
        even: Whether all ranks have the same number of whole batches. If True, remaining rows are dropped.
    """

    def __init__(
        self,
        length: int,
        batch_size: int,
        rank: int | None = None,
        world_size: int | None = None,
        *,
        shuffle: int | None = None,
        even: bool = False,
    ) -> None:
        if batch_size < 1:
            raise InvalidInputError("batch_size", expected="1 or more", found=batch_size)
        self._length = length // batch_size * batch_size if even else length
        self._batch_size = batch_size
        self._rank, self._world_size = _rank(rank, world_size)
        self._seed = shuffle
        self._even = even
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the current epoch, the same on all ranks."""
        self._epoch = epoch

    def __len__(self) -> int:
        batches = -(-self._length // self._batch_size)
        if self._even:
            return batches // self._world_size
        return len(range(self._rank, batches, self._world_size))

    def __iter__(self) -> Iterator[list[int]]:
        order = np.arange(self._length)
        if self._seed is not None:
            order = np.random.default_rng((self._seed, self._epoch)).permutation(self._length)
        for number in range(len(self)):
            start = (number * self._world_size + self._rank) * self._batch_size
            yield order[start : start + self._batch_size].tolist()


def get_safe_loader(
    dataset: data.Dataset[Any], batch_size: int = 32, num_workers: int = 4, **options: Any
) -> data.DataLoader[Any]:
    """Return a DataLoader with spawned workers that keep their files open. Object stores require spawned processes.

    Args:
        dataset: A dataset of this module.
        batch_size: Batch size in rows. Without effect for a `LanceDataset`, which creates its own batches.
        num_workers: Number of worker processes, or 0 to read in this process.
        options: Other arguments of `torch.utils.data.DataLoader`.
    """
    if num_workers:
        options = {"multiprocessing_context": _SPAWN, "persistent_workers": True, **options}
    if isinstance(dataset, LanceDataset):
        options["batch_size"] = None
    elif "batch_sampler" not in options:
        options["batch_size"] = batch_size
    if isinstance(dataset, BatchedLanceDataset):
        options.setdefault("collate_fn", as_it_is)
    return data.DataLoader(dataset, num_workers=num_workers, **options)


def as_it_is(batch: Any) -> Any:
    """Return a batch unchanged: the `collate_fn` for `BatchedLanceDataset`."""
    return batch


def _rows(
    dataset: Table | RowSelection | str | os.PathLike[str],
    options: Mapping[str, Any] | None,
    condition: FilterLike | None,
) -> RowSelection:
    if options:
        if isinstance(dataset, Table | RowSelection):
            raise InvalidInputError("dataset_options", expected="None, because the dataset is already open")
        dataset = open_dataset(dataset, **options)
    return RowSelection.of(dataset, condition)


def _check_sampler(sampler: object, others: tuple[object, ...]) -> None:
    """Raise an error unless a sampler is a `RankSampler` and no other argument selects rows."""
    if not isinstance(sampler, RankSampler):
        remedy = "shard_granularity, a ShardedFragmentSampler or ShardedBatchSampler, or pass a RowSelection"
        raise UnsupportedError("sampler is not supported", where="LanceDataset", remedy=remedy)
    if any(other is not None for other in others):
        expected = "a sampler without rank, world_size, shard_granularity or shuffle"
        raise InvalidInputError("sampler", where="LanceDataset", expected=expected)


def _sample(rows: RowSelection, count: int, seed: int) -> RowSelection:
    """Return a random sample in the order of the rows. The sample is the same on all ranks."""
    if count < 1:
        raise InvalidInputError("samples", expected="1 or more", found=count)
    places = np.asarray(rows.shuffle(seed).places, np.int64)[:count]
    return RowSelection(rows.dataset, np.sort(places))


def _with_row_id(rows: RowSelection, columns: ColumnsLike | None) -> ColumnsLike:
    if isinstance(columns, Mapping):
        return {**columns, "_rowid": "_rowid"}
    return [*(rows.dataset.schema.names if columns is None else columns), "_rowid"]


def _rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the rank of this process and the process count."""
    is_running = torch.distributed.is_available() and torch.distributed.is_initialized()
    if rank is None:
        rank = torch.distributed.get_rank() if is_running else 0
    if world_size is None:
        world_size = torch.distributed.get_world_size() if is_running else 1
    if not 0 <= rank < world_size:
        raise InvalidInputError("rank", expected=f"0 to {world_size - 1}", found=rank)
    return rank, world_size


def _place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the global number of this worker, and the total number of workers."""
    rank, world_size = _rank(rank, world_size)
    worker = data.get_worker_info()
    if worker is None:
        return rank, world_size
    return rank * worker.num_workers + worker.id, world_size * worker.num_workers
