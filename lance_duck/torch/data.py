"""PyTorch datasets, samplers and a loader, and batches as tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, Final

import numpy as np
import pyarrow as pa
from torch import from_numpy
from torch.utils import data

from lance_duck.arguments import checked_calls
from lance_duck.dataset import LanceDataset as Table
from lance_duck.dataset import dataset as open_dataset
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.loading.packing import packed_sequences
from lance_duck.loading.progress import Progress, Reader, Sharing, StoppedPass, passes_as_dicts, passes_of_dicts
from lance_duck.loading.selection import Granularity, RowSelection
from lance_duck.loading.threads import mapped
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.projection import ColumnsLike
from lance_duck.torch.samplers import (
    RankBatchSampler,
    RankSampler,
    ShardedBatchSampler,
    ShardedFragmentSampler,
    rank_of,
)
from lance_duck.torch.tensors import only_tensor_or_all, to_tensors

__all__ = [
    "BatchedLanceDataset",
    "LanceDataLoader",
    "LanceDataset",
    "RankBatchSampler",
    "SafeLanceDataset",
    "ShardedBatchSampler",
    "ShardedFragmentSampler",
    "as_it_is",
    "get_safe_loader",
]

_SPAWN: Final = "spawn"
_PACKED_ROWS: Final = 1024
"""Rows that are read at once to pack their tokens."""


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
        transform: Function that is applied to each item.
        threads: Number of threads that convert and transform items. Their order stays. Default: the reading thread.
        pack: Tokens of a sequence. The columns are lists of tokens, which are concatenated and cut. An item is a dict
            of tensors (batch_size, pack): the columns, `document_ids` (the number of the list in its sequence, -1 for
            padding) and `position_ids` (the position in the list's part in this sequence). `batch_size` is the number
            of sequences. `state_dict` then raises an error.
        sampler: `ShardedFragmentSampler` or `ShardedBatchSampler`, as in pylance. It replaces `rank`, `world_size`,
            `shard_granularity` and `shuffle`.

    Raises:
        InvalidInputError: An argument is invalid.
        WrongTypeError: An argument has a wrong type.
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
        transform: Callable[[Any], Any] | None = None,
        threads: int = 0,
        pack: int | None = None,
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
        self._sharing = Sharing(shard_granularity or "rows", even)
        self._convert = to_tensor_fn
        self._seed = shuffle
        self._sampler = sampler
        _check_numbers(threads, pack)
        for name, function in (("to_tensor_fn", to_tensor_fn), ("transform", transform)):
            if function is not None and not callable(function):
                found = type(function).__name__
                raise WrongTypeError(name, where="LanceDataset", expected="a function or None", found=found)
        self._transform, self._threads, self._pack = transform, threads, pack
        self._epoch = 0
        self._progress = Progress()

    @property
    def epoch(self) -> int:
        """The current epoch, see `set_epoch`."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Set the current epoch, the same on all ranks. Call it before the workers of a DataLoader start.

        Each epoch begins at the first row, except the one in which `load_state_dict` continues.
        """
        if epoch != self._epoch:
            self._progress.reset()
        self._epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        reader = _reader(*self._part)
        self._progress.begin(reader, self.batch_size)
        part = self._sharing.part(self._order(), self._progress.passes, reader, self.batch_size)
        if self._pack is None:
            batches: Iterator[Any] = part[self._progress.skipped :].batches(self.batch_size, self.columns)
        else:
            batches = packed_sequences(part.batches(_PACKED_ROWS, self.columns), self._pack, self.batch_size)
        for item in mapped(self._item, batches, self._threads):
            self._progress.advance()
            yield item

    def _item(self, batch: Any) -> Any:
        """Return the item of a batch, or of packed sequences."""
        if isinstance(batch, dict):
            item: Any = {name: from_numpy(array) for name, array in batch.items()}
        else:
            item = batch if self._convert is None else self._convert(batch)
        return item if self._transform is None else self._transform(item)

    def _order(self) -> RowSelection:
        """Return all rows in the order of the epoch."""
        seed = None if self._seed is None else (self._seed, self._epoch)
        if self._sampler is not None:
            seed = self._sampler.order_seed(self._epoch)
        return self.rows if seed is None else self.rows.shuffle(seed)

    def state_dict(self, batches: int | None = None, num_workers: int = 0) -> dict[str, Any]:
        """Return which rows were read, as a dict of numbers, so that a later run continues at the next row.

        In a worker of torchdata's `StatefulDataLoader`, the state is the worker's own. A DataLoader of PyTorch with
        workers does not tell how many batches it returned: use `get_safe_loader`, or pass the numbers.

        Args:
            batches: Number of batches that the loader returned since the pass began. Default: the batches that this
                object returned.
            num_workers: Number of workers of the loader, with `batches`.

        Raises:
            InvalidInputError: A number is negative, or is not a whole number.
            UnsupportedError: The dataset packs sequences.
        """
        for name, value in (("batches", batches), ("num_workers", num_workers)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise InvalidInputError(name, where="state_dict", expected="a whole number from 0", found=repr(value))
        if self._pack is not None:
            raise UnsupportedError("packed sequences cannot be continued", where="state_dict")
        sampler = self._sampler
        state: dict[str, Any] = {
            "version": self.rows.dataset.version,
            "rows": len(self.rows),
            "order": [
                self._sharing.by,
                self._sharing.even,
                sampler.seed if sampler and sampler.randomize else self._seed,
            ],
            "epoch": (sampler.epoch if sampler else 0) or self._epoch,
        }
        worker = data.get_worker_info()
        if worker is not None:
            own = {"id": worker.id, "num_workers": worker.num_workers, "rows": self._progress.read_by_worker}
            return {**state, "passes": passes_as_dicts(self._progress.passes), "worker": own}
        current = None
        if batches is not None:
            current = StoppedPass(rank_of(*self._part)[1], max(num_workers, 1), self.batch_size, batches)
        return {**state, "passes": passes_as_dicts(self._progress.stopped(current))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue after the rows of a state, in its epoch. Call it before a DataLoader starts its workers.

        The number of workers and the batch size may differ. If the number of ranks differs, all ranks must have
        received equally many batches. The next pass reads the rows that are left, and later passes read all rows.

        Args:
            state: A result of `state_dict` of this rank.

        Raises:
            InvalidInputError: The state is of other rows, of another order, or of another worker.
        """
        current = self.state_dict()
        for name, what in (("version", "version of the table"), ("rows", "number of rows"), ("order", "order of rows")):
            found = state.get(name)
            if (list(found) if isinstance(found, tuple) else found) != current[name]:
                remedy = 'open it with dataset_options={"version": …}' if name == "version" else None
                expected = f"{current[name]}, as in this dataset"
                raise InvalidInputError(what, where="load_state_dict", expected=expected, found=found, remedy=remedy)
        passes, skipped = passes_of_dicts(state.get("passes")), 0
        if (own := state.get("worker")) is not None:
            worker = data.get_worker_info()
            whole = [_whole(own, name) for name in ("id", "num_workers", "rows")]
            if worker is None or whole[:2] != [worker.id, worker.num_workers]:
                found = f"worker {whole[0]} of {whole[1]}"
                raise InvalidInputError("a state of another worker", where="load_state_dict", found=found)
            skipped = whole[2]
        self._epoch = _whole(state, "epoch")
        if self._sampler is not None:
            self._sampler.set_epoch(self._epoch)
        self._progress.load(passes, skipped)


@checked_calls
class LanceDataLoader(data.DataLoader[Any]):  # type: ignore[misc]
    """A DataLoader that knows which rows of a `LanceDataset` it returned. See `get_safe_loader`.

    Args:
        dataset: A dataset.
        options: Arguments of `torch.utils.data.DataLoader`.
    """

    def __init__(self, dataset: data.Dataset[Any], **options: Any) -> None:
        super().__init__(dataset, **options)
        self._started: int | None = None

    def __iter__(self) -> Iterator[Any]:
        rows = self.dataset
        if not isinstance(rows, LanceDataset) or not self.num_workers:
            yield from super().__iter__()
            return
        if self._started != rows.epoch or rows._progress.is_loaded:
            self._iterator = None  # workers that persist have the state of their start
        self._started = rows.epoch
        batches = super().__iter__()
        rows._progress.begin(replace(_reader(*rows._part), num_workers=self.num_workers), rows.batch_size)
        for batch in batches:
            rows._progress.advance()
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return which rows the loader returned: see `LanceDataset.state_dict`.

        Raises:
            UnsupportedError: The dataset is not a `LanceDataset`, or `in_order=False` lets workers overtake each other.
        """
        return self._rows().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue after the rows of a state, also with another number of workers: see `LanceDataset.load_state_dict`.

        Raises:
            UnsupportedError: The dataset is not a `LanceDataset`.
            InvalidInputError: The state does not fit the dataset.
        """
        self._rows().load_state_dict(state)

    def _rows(self) -> LanceDataset:
        if not isinstance(self.dataset, LanceDataset):
            found = type(self.dataset).__name__
            raise UnsupportedError("only a LanceDataset can resume", where="LanceDataLoader", found=found)
        if not getattr(self, "in_order", True):
            raise UnsupportedError("in_order=False is not supported", where="LanceDataLoader.state_dict")
        return self.dataset


def get_safe_loader(
    dataset: data.Dataset[Any], batch_size: int = 32, num_workers: int = 4, **options: Any
) -> LanceDataLoader:
    """Return a DataLoader with spawned workers that keep their files open. Object stores require spawned processes.

    The loader of a `LanceDataset` has `state_dict` and `load_state_dict`, which continue at the next row.

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
    return LanceDataLoader(dataset, num_workers=num_workers, **options)


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


def _check_numbers(threads: object, pack: object) -> None:
    """Raise an error unless the number of threads and of packed tokens, if any, are in range."""
    for name, value, least in (("threads", threads, 0), ("pack", 1 if pack is None else pack, 1)):
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise WrongTypeError(name, where="LanceDataset", expected="a whole number", found=repr(value))
        if value < least:
            raise InvalidInputError(name, expected=f"{least} or more", found=value)


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


def _reader(rank: int | None, world_size: int | None) -> Reader:
    """Return this process, or this worker of it, as one of the readers."""
    worker = data.get_worker_info()
    return Reader(*rank_of(rank, world_size), *((0, 1) if worker is None else (worker.id, worker.num_workers)))


def _whole(state: Any, name: str) -> int:
    """Return a whole number of a state."""
    value = state.get(name) if isinstance(state, Mapping) else None
    if type(value) is not int or value < 0:
        raise InvalidInputError(name, where="load_state_dict", expected="a whole number", found=repr(value))
    return value
