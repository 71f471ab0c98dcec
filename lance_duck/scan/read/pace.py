"""How far ahead a scan works: on a local disk as far as processors go, on an object store as far as bytes may wait.

A read of an object store waits tens of milliseconds and computes little. So the files of the first fragments are opened
side by side, morsels are cut as large as what is asked for at once, and `REQUESTS_AT_ONCE` of them are read side by
side; together they hold about `AHEAD_BYTES`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lance_duck.scan.costs import ALONE_BYTES, ALONE_FRAGMENTS, REMOTE_MORSEL_BYTES, REMOTE_MORSEL_ROWS
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
    """How a scan goes ahead.

    Attributes:
        workers: Threads; None: one for each core.
        width: Bytes that a row takes in its files; 0 where its types say it.
        waits: Whether the scan asks an object store ahead.
        most: Rows of the longest fragment.
    """

    workers: int | None = None
    width: int = 0
    waits: bool = False
    most: int = 0

    def sizer(
        self, width: int, rows: int | None = None, bytes_: int | None = None, filtered: int | None = None
    ) -> Sizer:
        """Return what cuts the scan into morsels; arguments as those of `Sizer`."""
        if not self.waits:
            return Sizer(max(width, self.width), rows, bytes_, filtered)
        # Perhaps all rows pass a filter: nothing is learnt before much is asked for.
        return Sizer(max(width, self.width), rows, bytes_ or REMOTE_MORSEL_BYTES, most=REMOTE_MORSEL_ROWS, is_full=True)

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """Yield work(item) for each item, in order."""
        if not self.waits:
            return map_ordered(work, items, workers=self.workers)
        size = min(REMOTE_MORSEL_BYTES, max(1, self.width * self.most))
        count = max(2, min(REQUESTS_AT_ONCE, AHEAD_BYTES // size))
        return map_ordered(work, items, workers=count, ahead=count, at_once=True)


def pace_of(readers: Readers, reads: Sequence[Read], workers: int | None) -> Pace:
    """Decide how a scan goes ahead, and open the files of its first fragments where that waits.

    Args:
        readers: The fragments of its plan.
        reads: Columns that it reads.
        workers: Threads that the caller allows; None: as many as suit.
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
    """Return whether rows of this width are read sooner by one thread than others are begun."""
    fragments = readers.plan.fragments
    if len(fragments) > ALONE_FRAGMENTS:
        return False
    return sum(fragment.physical_rows for fragment in fragments) * max(1, width) <= ALONE_BYTES


def _stored_width(readers: Readers, reads: Sequence[Read]) -> int:
    """Return the bytes that columns of a row take in the files of the first fragment: values may be of a megabyte."""
    if not reads or not len(readers.plan.fragments):
        return 0
    first = readers.at(0)
    return sum(first.stored_bytes(read) for read in reads) // max(1, first.num_rows)
