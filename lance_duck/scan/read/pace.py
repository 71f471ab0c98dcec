"""Decides how far a scan reads ahead: on a local disk by the number of cores, on an object store by bytes.

A read from an object store waits tens of milliseconds and computes little. Therefore, the files of the first fragments
are opened concurrently, and a morsel has the size of a request. `REQUESTS_AT_ONCE` morsels are read concurrently. Their
total size is about `AHEAD_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lance_duck.scan.costs import ALONE_BYTES, FRAGMENTS_AT_ONCE, REMOTE_MORSEL_BYTES, REMOTE_MORSEL_ROWS
from lance_duck.scan.plan import Sizer
from lance_duck.scan.projection import Read
from lance_duck.scan.read.fragment_reader import open_at_once
from lance_duck.scan.read.ordered import map_ordered
from lance_duck.scan.read.tasks import Readers
from lance_duck.store.costs import AHEAD_BYTES, REQUESTS_AT_ONCE

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Pace:
    """Number of threads of a scan, and its morsel sizes.

    Attributes:
        workers: Thread count. None means one per core.
        width: Row width in the files, in bytes. It is 0 if the width must be estimated from the types.
        waits: Whether the scan reads ahead from an object store.
        most: Largest row count among the first fragments. It is set only for object stores.
    """

    workers: int | None = None
    width: int = 0
    waits: bool = False
    most: int = 0

    def sizer(
        self, width: int, rows: int | None = None, bytes_: int | None = None, filtered: int | None = None
    ) -> Sizer:
        """Return the morsel sizer. The arguments are passed to `Sizer`."""
        if not self.waits:
            return Sizer(max(width, self.width), rows, bytes_, filtered)
        # All rows may pass a filter, and many morsels are requested before the sizer observes the first batch.
        return Sizer(max(width, self.width), rows, bytes_ or REMOTE_MORSEL_BYTES, most=REMOTE_MORSEL_ROWS, is_full=True)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Yield work(item) for each item, in order."""
        if not self.waits:
            return map_ordered(work, items, workers=self.workers)
        size = min(REMOTE_MORSEL_BYTES, max(1, self.width * self.most))
        count = max(2, min(REQUESTS_AT_ONCE, AHEAD_BYTES // size))
        return map_ordered(work, items, workers=count, ahead=count, at_once=True)


def pace_of(readers: Readers, reads: Sequence[Read], workers: int | None) -> Pace:
    """Decide how far a scan reads ahead, and open the files of its first fragments if they are in an object store.

    Args:
        readers: Readers of the plan's fragments.
        reads: Columns that the scan reads.
        workers: Maximum thread count set by the caller. None chooses it automatically.
    """
    plan = readers.plan
    wants_little = plan.limit is not None and plan.filter is not None
    if workers is not None or wants_little or plan.choices is not None or not readers.is_remote or not reads:
        width = _stored_width(readers, [read for read in reads if not read.is_fixed])
        alone = workers is None and not readers.is_remote and _is_small(readers, max(plan.width, width))
        return Pace(1 if alone else workers, width)
    first = [readers.at(index) for index in range(min(len(plan.fragments), REQUESTS_AT_ONCE))]
    open_at_once(first, reads)
    rows = max((reader.num_rows for reader in first), default=0)
    return Pace(workers, _stored_width(readers, reads), waits=True, most=rows)


def _is_small(readers: Readers, width: int) -> bool:
    """Return whether one thread can read all rows of this width before other threads would start."""
    fragments = readers.plan.fragments
    if len(fragments) > FRAGMENTS_AT_ONCE:
        return False
    return sum(fragment.physical_rows for fragment in fragments) * max(1, width) <= ALONE_BYTES


def _stored_width(readers: Readers, reads: Sequence[Read]) -> int:
    """Return the row width in the files of the first fragment, in bytes. An estimate from types may be too small."""
    if not reads or not len(readers.plan.fragments):
        return 0
    first = readers.at(0)
    return sum(first.stored_bytes(read) for read in reads) // max(1, first.num_rows)
