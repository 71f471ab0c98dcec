"""The handle of a dataset: the version of the table that it is on, and its moves to other versions."""

from __future__ import annotations

from abc import abstractmethod

from lance_duck.errors import InvalidInputError
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot


class Handle:
    """The version of a table that a dataset is on. Each dataset has exactly one, and changes move it.

    Args:
        uri: Path or URI of the table, as the user passed it.
        table: Reads of the version, perhaps restricted to some of its rows.
    """

    def __init__(self, uri: str, table: TableScan) -> None:
        self.uri = uri
        self.table = table

    @property
    def snapshot(self) -> Snapshot:
        """The version that the handle is on."""
        return self.table.snapshot

    @property
    def base(self) -> Snapshot:
        """The version that a change of rows starts from; refused if the handle sees only some of the rows."""
        if self.table.restriction is not None:
            raise InvalidInputError(
                "this dataset is a part of a table, chosen by a filter", remedy="change the rows of the table itself"
            )
        return self.snapshot

    def checkout(self, snapshot: Snapshot) -> None:
        """Move to another version of the table; other handles stay where they are."""
        self.table = TableScan(snapshot, self.table.restriction)

    def move_to(self, snapshot: Snapshot) -> None:
        """Move to the version that a change resulted in; other handles stay where they are."""
        self.checkout(snapshot)


class TableMethods:
    """Base of the mixins with the methods of a dataset, which reach the table by its handle."""

    handle: Handle

    @abstractmethod
    def __init__(self, uri: str, *, table: TableScan) -> None:
        """Make a dataset on an open version."""
