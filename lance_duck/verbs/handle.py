"""The handle of a dataset: holds the table version that the dataset reads, and moves to other versions."""

from __future__ import annotations

from abc import abstractmethod

from lance_duck.errors import InvalidInputError
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.with_log import refuse_change


class Handle:
    """The table version that a dataset reads. Each dataset has exactly one handle, and changes move it.

    Args:
        uri: Path or URI of the table, as the user passed it.
        table: The version's scan, possibly restricted to some rows.
    """

    def __init__(self, uri: str, table: TableScan) -> None:
        self.uri = uri
        self.table = table

    @property
    def snapshot(self) -> Snapshot:
        """The version that the handle reads."""
        return self.table.snapshot

    @property
    def main(self) -> Snapshot:
        """The version that the handle reads. Raises an error if it contains rows of a write-ahead log."""
        refuse_change(self.snapshot)
        return self.snapshot

    @property
    def base(self) -> Snapshot:
        """The version that row changes start from.

        Raises an error if the handle is restricted to some rows, or contains rows of a write-ahead log.
        """
        if self.table.restriction is not None:
            raise InvalidInputError(
                "a filtered dataset cannot be changed",
                remedy="open the table again, and change its rows with a predicate",
            )
        return self.main

    def checkout(self, snapshot: Snapshot) -> None:
        """Move to another version of the table. Other handles do not move."""
        self.table = TableScan(snapshot, self.table.restriction)

    def move_to(self, snapshot: Snapshot) -> None:
        """Move to the version that a change produced. Other handles do not move."""
        self.checkout(snapshot)


class TableMethods:
    """Base class of the dataset mixins. They access the table through the handle."""

    handle: Handle

    @abstractmethod
    def __init__(self, uri: str, *, table: TableScan) -> None:
        """Create a dataset for an open version."""
