"""The table that a statement changes, at one version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lance_duck.arguments import unknown_column
from lance_duck.dataset import LanceDataset
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.tables.table import DuckTable
from lance_duck.errors import InvalidInputError
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot

SOURCE: Final = "__lance_target"
"""The table in statements that are made of clauses, with the addresses of its rows as a last column."""


class AddressedTable(DuckTable):
    """Rows of one version of a table with their addresses, for a statement that changes them."""

    def __init__(self, dataset: LanceDataset) -> None:
        super().__init__(lambda: dataset, pinned=True, hidden=False)

    def _schema(self, dataset: LanceDataset) -> pa.Schema:
        return super()._schema(dataset).append(pa.field(ROW_ADDRESS, pa.uint64()))


@dataclass(frozen=True)
class TargetColumn:
    """A column that a statement writes.

    Attributes:
        name: Its name.
        type: Its type in DuckDB's words.
        arrow: Its type in the table.
        nullable: Whether it may be null.
    """

    name: str
    type: str
    arrow: pa.DataType
    nullable: bool = True

    @property
    def quoted(self) -> str:
        """Its name as an SQL identifier."""
        return quoted(self.name)

    def cast(self, expression: str) -> str:
        """Return SQL of a value as the column holds it, under the name of the column.

        Args:
            expression: SQL, with a newline where a comment may end it.
        """
        return f"{self.value(expression)} AS {self.quoted}"

    def value(self, expression: str) -> str:
        """Return the same without the name."""
        value = f"CAST(({expression}) AS {self.type})"
        return f"epoch_us({value})" if pa.types.is_duration(self.arrow) else value


@dataclass(frozen=True)
class TargetTable:
    """A table that a statement changes, at the version that all its mentions in the statement are read at.

    Attributes:
        name: Its name in the statement, without what qualifies it.
        dataset: The version.
        columns: Its columns, in order.
    """

    name: str
    dataset: LanceDataset
    columns: Sequence[TargetColumn]

    @property
    def sources(self) -> dict[str, Any]:
        """The objects that statements made of clauses read, by name."""
        return {SOURCE: AddressedTable(self.dataset)}

    def column(self, name: str) -> TargetColumn:
        """Return a column by its name, compared without case.

        Raises:
            InvalidInputError: There is none.
        """
        for column in self.columns:
            if folded(column.name) == folded(name):
                return column
        raise unknown_column(name, [column.name for column in self.columns], f"table {self.name}")

    def named(self, names: Sequence[str]) -> list[TargetColumn]:
        """Return the columns by their names, each of which may come once.

        Raises:
            InvalidInputError: One is not there, or comes twice.
        """
        columns = [self.column(name) for name in names]
        repeated = next((column.name for i, column in enumerate(columns) if column in columns[:i]), None)
        if repeated is not None:
            raise InvalidInputError(f"column {repeated!r} is named twice", where=f"table {self.name}")
        return columns

    def stored(self, values: pa.Table) -> pa.Table:
        """Return the values of columns as the table takes them: durations come from DuckDB as microseconds."""
        for column in self.columns:
            place = values.schema.get_field_index(column.name)
            if place >= 0 and pa.types.is_duration(column.arrow):
                values = values.set_column(place, column.name, values.column(place).cast(pa.duration("us")))
        return values


def dataset_of(snapshot: Snapshot) -> LanceDataset:
    """Return a dataset on a version that is open, which need not be one on disk."""
    return LanceDataset(snapshot.uri, table=TableScan(snapshot))


def visible(source: str) -> str:
    """Return SQL for the columns that people see, of a source with addresses."""
    return f'SELECT * EXCLUDE ("{ROW_ADDRESS}") FROM {quoted(source)}'  # noqa: S608


def joined_query(ctes: str, columns: Sequence[str], alias: str, others: str, where: str) -> str:
    """Return SQL for addresses of rows of the target, joined with other tables.

    Args:
        ctes: WITH, or nothing.
        columns: SQL of what is selected besides the address.
        alias: What the statement calls the target.
        others: What follows FROM or USING, or nothing.
        where: WHERE, or nothing.
    """
    selected = ", ".join([f'{quoted(alias)}."{ROW_ADDRESS}"', *columns])
    tables = f"{quoted(SOURCE)} AS {quoted(alias)}" + (f",\n{others}" if others else "\n")
    return f"{ctes}SELECT {selected} FROM {tables}{where}"  # noqa: S608
