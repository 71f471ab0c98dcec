"""How far the readers of a selection are, so that a later run continues at the next row.

A pass over the rows of an epoch is shared by ranks and workers. A stopped pass is described by its numbers of ranks and
workers and by the number of batches that a rank has received. The rows that are left follow from these numbers, and are
shared again by the readers of the next pass.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from lance_duck.errors import InvalidInputError
from lance_duck.loading.selection import Granularity, RowSelection

_WHERE: Final = "load_state_dict"
_MOST_READERS: Final = 1 << 16
_NUMBERS: Final = ("world_size", "num_workers", "batch_size", "batches")


@dataclass(frozen=True)
class Reader:
    """One of the readers that share the rows.

    Attributes:
        rank: Rank of its process, 0 to world_size - 1.
        world_size: Number of processes.
        worker: Number of the worker in its process.
        num_workers: Number of workers of each process, 1 or more.
    """

    rank: int = 0
    world_size: int = 1
    worker: int = 0
    num_workers: int = 1


@dataclass(frozen=True)
class StoppedPass:
    """A pass that stopped, as one rank saw it.

    Attributes:
        world_size: Number of ranks.
        num_workers: Number of workers of each rank, 1 or more.
        batch_size: Rows of a batch.
        batches: Number of batches that the rank received, from its workers in turn.
    """

    world_size: int
    num_workers: int
    batch_size: int
    batches: int


@dataclass(frozen=True)
class Sharing:
    """How readers share rows: see `RowSelection.shard`."""

    by: Granularity = "rows"
    even: bool = False

    def part(self, order: RowSelection, passes: Sequence[StoppedPass], reader: Reader, batch_size: int) -> RowSelection:
        """Return the rows of a reader, without the rows that earlier passes of the epoch read.

        Args:
            order: All rows of the epoch, in their order.
            passes: The earlier passes, oldest first.
            reader: The reader.
            batch_size: Rows of a batch.

        Raises:
            InvalidInputError: A pass has more batches than there are rows.
        """
        share = self._shares(order, passes, reader.rank, reader.world_size)
        return share(reader.worker, reader.num_workers, batch_size)

    def _shares(
        self, order: RowSelection, passes: Sequence[StoppedPass], rank: int, world_size: int
    ) -> Callable[[int, int, int], RowSelection]:
        """Return a function that returns the rows of one of a rank's workers: see `Reader`, and `part`."""
        if not passes:

            def of_all(worker: int, count: int, batch_size: int) -> RowSelection:
                return order.shard(rank * count + worker, world_size * count, self.by, batch_size, self.even)

            return of_all
        *before, last = passes
        if last.world_size != world_size:  # all ranks have received equally many batches
            left = RowSelection.concat([self._left(order, before, last, each) for each in range(last.world_size)])
            return self._shares(left, (), rank, world_size)
        left = self._left(order, before, last, rank)
        return lambda worker, count, batch_size: left.shard(worker, count, self.by, batch_size, self.even)

    def _left(self, order: RowSelection, before: Sequence[StoppedPass], last: StoppedPass, rank: int) -> RowSelection:
        """Return the rows of a rank that are left after a pass."""
        share = self._shares(order, before, rank, last.world_size)
        parts = [share(worker, last.num_workers, last.batch_size) for worker in range(last.num_workers)]
        taken = in_turn([-(-len(part) // last.batch_size) for part in parts], last.batches)
        return RowSelection.concat([part[n * last.batch_size :] for part, n in zip(parts, taken, strict=True)])


def in_turn(batches: Sequence[int], count: int) -> list[int]:
    """Return how many batches each worker gave, if `count` batches were taken from the workers in turn.

    Args:
        batches: Number of batches of each worker. A worker without further batches is skipped.
        count: Number of batches taken.

    Raises:
        InvalidInputError: The workers have fewer batches.
    """
    if count > sum(batches):
        found = f"{count} of {sum(batches)} batches"
        raise InvalidInputError("the state does not fit these rows", where=_WHERE, found=found)
    turns = range(max(batches, default=0) + 1)
    whole = bisect_right(turns, count, key=lambda turn: sum(min(each, turn) for each in batches)) - 1
    taken = [min(each, whole) for each in batches]
    rest = count - sum(taken)
    for worker, each in enumerate(batches):
        if rest and each > whole:
            taken[worker] += 1
            rest -= 1
    return taken


class Progress:
    """Counts the batches of the current pass.

    Attributes:
        passes: The stopped passes before the current one, or before the next one if none has begun.
        skipped: Rows of a single worker that an earlier run of the same worker read.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all passes: the next pass begins at the first row."""
        self.passes: tuple[StoppedPass, ...] = ()
        self.skipped = 0
        self._current: StoppedPass | None = None
        self._is_loaded = False

    @property
    def is_loaded(self) -> bool:
        """Whether a loaded state waits for the next pass."""
        return self._is_loaded

    def begin(self, reader: Reader, batch_size: int) -> None:
        """Begin a pass: after a loaded state, or otherwise at the first row."""
        if not self._is_loaded:
            self.reset()
        self._is_loaded = False
        self._current = StoppedPass(reader.world_size, reader.num_workers, batch_size, 0)

    def advance(self) -> None:
        """Count one batch."""
        assert self._current is not None  # a pass has begun
        self._current = replace(self._current, batches=self._current.batches + 1)

    def stopped(self, current: StoppedPass | None = None) -> tuple[StoppedPass, ...]:
        """Return all passes as if the current one, or the one given, stopped now."""
        last = current or self._current
        return self.passes if last is None or not last.batches else (*self.passes, last)

    @property
    def read_by_worker(self) -> int:
        """Rows that this worker has read, in this pass and in earlier runs of the worker."""
        last = self._current
        return self.skipped + (0 if last is None else last.batches * last.batch_size)

    def load(self, passes: Sequence[StoppedPass], skipped: int = 0) -> None:
        """Let the next pass begin after the given passes."""
        self.reset()
        self.passes, self.skipped, self._is_loaded = tuple(passes), skipped, True


def passes_as_dicts(passes: Sequence[StoppedPass]) -> list[dict[str, int]]:
    """Return passes as plain dicts."""
    return [asdict(each) for each in passes]


def passes_of_dicts(values: Any) -> list[StoppedPass]:
    """Return passes from plain dicts.

    Raises:
        InvalidInputError: The value is not a list of passes.
    """
    if not isinstance(values, list):
        raise InvalidInputError("passes", where=_WHERE, expected="a list of dicts", found=type(values).__name__)
    for value in values:
        names = value.keys() if isinstance(value, Mapping) else ()
        if set(names) != set(_NUMBERS) or any(type(each) is not int for each in value.values()):
            expected = f"a dict of whole numbers: {', '.join(_NUMBERS)}"
            raise InvalidInputError("passes", where=_WHERE, expected=expected, found=repr(value))
        if (
            value["batches"] < 0
            or value["batch_size"] < 1
            or any(not 1 <= value[name] <= _MOST_READERS for name in _NUMBERS[:2])
        ):
            raise InvalidInputError("passes", where=_WHERE, expected=f"1 to {_MOST_READERS} readers", found=repr(value))
    return [StoppedPass(**value) for value in values]
