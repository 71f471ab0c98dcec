"""Statistics of a scan, passed to a callback when the scan ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TypeAlias

from lance_duck.arguments import suggest_names
from lance_duck.store.request import watched
from lance_duck.wire import paths


@suggest_names
@dataclass(eq=False)
class ScanStatistics:
    """Statistics of a scan. Reads by other scans in the process at the same time are included.

    Attributes:
        requests: Number of byte ranges that were requested.
        bytes_read: Total size of these ranges, in bytes.
        rows: Number of rows in the result.
        batches: Number of batches.
        indices_loaded: Number of index segments that were read from storage instead of memory.
        parts_loaded: Number of byte ranges that were read from the files of these segments.
    """

    requests: int = 0
    bytes_read: int = 0
    rows: int = 0
    batches: int = 0
    indices_loaded: int = 0
    parts_loaded: int = 0

    @property
    def iops(self) -> int:
        """The same as `requests`. The store may merge requests for adjacent ranges."""
        return self.requests

    @property
    def all_counts(self) -> dict[str, int]:
        """All attributes and `iops`, by name."""
        return {"iops": self.iops, **asdict(self)}


StatisticsCallback: TypeAlias = Callable[[ScanStatistics], object]


@contextmanager
def count_reads(callback: StatisticsCallback | None) -> Iterator[ScanStatistics]:
    """Count reads while the scan runs, then call the callback. Without a callback, nothing is counted."""
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
