"""Statistics of a scan, passed to a callback when the scan ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TypeAlias

from lance_duck.store.request import watched
from lance_duck.wire import paths


@dataclass(eq=False)
class ScanStatistics:
    """Reads of all scans in the process during one scan.

    Attributes:
        requests: Number of byte ranges that were requested.
        bytes_read: Their bytes.
        rows: Number of rows in the result.
        batches: Number of batches.
        indices_loaded: Index segments that were read from storage, not from memory.
        parts_loaded: Ranges of bytes of their files.
    """

    requests: int = 0
    bytes_read: int = 0
    rows: int = 0
    batches: int = 0
    indices_loaded: int = 0
    parts_loaded: int = 0

    @property
    def iops(self) -> int:
        """The number of `requests`. The store may merge adjacent ones."""
        return self.requests

    @property
    def all_counts(self) -> dict[str, int]:
        """All of the above, by name."""
        return {"iops": self.iops, **asdict(self)}


StatisticsCallback: TypeAlias = Callable[[ScanStatistics], object]


@contextmanager
def count_reads(callback: StatisticsCallback | None) -> Iterator[ScanStatistics]:
    """Count reads while the scan runs, then call the callback. Counts nothing without a callback."""
    statistics = ScanStatistics()
    if callback is None:
        yield statistics
        return
    with watched() as reads:
        yield statistics
    statistics.requests, statistics.bytes_read = reads.ranges, reads.size
    of_indexes = {path: count for path, count in reads.by_path.items() if paths.is_of_index(path)}
    statistics.indices_loaded = len({path.rpartition("/")[0] for path in of_indexes})
    statistics.parts_loaded = sum(of_indexes.values())
    callback(statistics)
