"""Which rows a rank reads, with pylance's names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch.utils import data

from lance_duck.errors import InvalidInputError
from lance_duck.loading.selection import Granularity


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
        self._rank, self._world_size = rank_of(rank, world_size)
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


def rank_of(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return the rank of this process and the process count."""
    is_running = torch.distributed.is_available() and torch.distributed.is_initialized()
    if rank is None:
        rank = torch.distributed.get_rank() if is_running else 0
    if world_size is None:
        world_size = torch.distributed.get_world_size() if is_running else 1
    if not 0 <= rank < world_size:
        raise InvalidInputError("rank", expected=f"0 to {world_size - 1}", found=rank)
    return rank, world_size
