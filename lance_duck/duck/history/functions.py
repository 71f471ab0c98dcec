"""Runs the history and metadata functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.history.about import branches, info, tags, versions
from lance_duck.duck.history.comparisons import branch_diff, near_duplicates
from lance_duck.duck.history.names import BRANCH_DIFF, CHANGES, NEAR_DUPLICATES
from lance_duck.duck.history.source import BatchRows
from lance_duck.duck.history.storage import files, fragments
from lance_duck.duck.history.table_changes import Bound, table_changes

TABLES: Final[Mapping[str, Callable[[LanceDataset], pa.Table]]] = {
    "versions": versions,
    "tags": tags,
    "branches": branches,
    "fragments": fragments,
    "files": files,
    "info": info,
}


@dataclass(frozen=True)
class HistoryCall:
    """A call of one of the functions.

    Attributes:
        name: Name of the function, without its prefix.
        arguments: More arguments, as strings. `table_changes` gets two strings for each bound: the caller's string, and
            the microseconds since the epoch if it is a time.
    """

    name: str
    arguments: Sequence[str | None]

    def rows(self, dataset: LanceDataset) -> BatchRows:
        """Return the rows for a table at a version.

        Raises:
            LanceDuckError: The rows cannot be read.
        """
        if self.name == NEAR_DUPLICATES:
            return near_duplicates(dataset, *self.arguments)
        if self.name == BRANCH_DIFF:
            return BatchRows.of(branch_diff(dataset, *self.arguments))
        if self.name != CHANGES:
            return BatchRows.of(TABLES[self.name](dataset))
        start, start_time, end, end_time = self.arguments
        return table_changes(dataset, Bound.of(start, start_time), Bound.of(end, end_time))
