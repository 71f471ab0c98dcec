"""pylance's samplers, which say what each rank reads of a table: other words for arguments of `LanceDataset`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from lance_duck.loading.selection import Granularity


@dataclass
class RankSampler:
    """What one rank reads; the workers of a rank divide it.

    Attributes:
        rank: Number of this process; None for that of torch.distributed, or 0.
        world_size: Number of processes; None for that of torch.distributed, or 1.
        randomize: Whether rows come in a random order, another one in each epoch.
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
        """Set the epoch that begins, the same on all ranks; call it before the workers of a DataLoader start."""
        self.epoch = epoch

    def order_seed(self, epoch: int = 0) -> tuple[int, int] | None:
        """Return the seed of the order in the epoch that was set, or in `epoch` if none was; None for no order."""
        return (self.seed, self.epoch or epoch) if self.randomize else None


class ShardedFragmentSampler(RankSampler):
    """Every world_size-th fragment for each rank, as `shard_granularity="fragment"`."""

    granularity = "fragment"

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedFragmentSampler:
        """Return the sampler of this process among those of torch.distributed."""
        return ShardedFragmentSampler(randomize=randomize, seed=seed)


class ShardedBatchSampler(RankSampler):
    """Every world_size-th batch for each rank, as `shard_granularity="batch"`."""

    granularity = "batch"

    @staticmethod
    def from_torch(randomize: bool = False, seed: int = 0) -> ShardedBatchSampler:
        """Return the sampler of this process among those of torch.distributed."""
        return ShardedBatchSampler(randomize=randomize, seed=seed)
