"""Statement results on stdout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lance_duck.cli.show import Form, Row, write_rows
from lance_duck.cli.sql.script import first_word
from lance_duck.cli.terminal import Console, printable, write_line

_BATCH: Final = 10_000
_COUNTS: Final = (["Count"], ["Success"])
_QUERIES: Final = frozenset({"select", "from", "with", "values", "table", ""})
_PLAN: Final = ["explain_key", "explain_value"]


@dataclass
class Results:
    """Writer of consecutive statement results.

    Attributes:
        form: Output format for rows.
        max_rows: Maximum number of rows of a terminal table.
    """

    form: Form
    max_rows: int = 100
    _written: int = 0

    def write(self, relation: Any, sql: str) -> None:
        """Write the result of a statement: rows, or the number of changed rows.

        Args:
            relation: Result of `Connection.sql`, or None.
            sql: The statement.
        """
        if relation is None:
            return
        with closing(relation.to_arrow_reader(_BATCH)) as reader:
            names = distinct(reader.schema.names)
            rows = _rows(reader, names)
            if reader.schema.names in _COUNTS and first_word(sql) not in _QUERIES:
                rows = iter(counts := list(rows))
                if not counts:
                    return
            self._separate()
            if self.form is Form.table and names == _PLAN:
                _write_plans(rows)
            else:
                write_rows(rows, names, self.form, self.max_rows)

    def _separate(self) -> None:
        """Write an empty line between the CSV of two results."""
        if self.form is Form.csv and self._written:
            write_line()
        self._written += 1


def distinct(names: Sequence[str]) -> list[str]:
    """Make column names unique with a number, as in DuckDB's subqueries."""
    taken: set[str] = set()
    result = []
    for name in names:
        other, number = name, 0
        while other in taken or (number and other in names):
            number += 1
            other = f"{name}_{number}"
        taken.add(other)
        result.append(other)
    return result


def _rows(reader: pa.RecordBatchReader, names: list[str]) -> Iterator[Row]:
    for batch in reader:
        yield from batch.rename_columns(names).to_pylist()


def _write_plans(rows: Iterator[Row]) -> None:
    """Write EXPLAIN plans as DuckDB draws them. A table cell would truncate them."""
    console = Console()
    for row in rows:
        console.print(printable(row["explain_key"]), style="dim", markup=False)
        console.print(printable(row["explain_value"]), markup=False, highlight=False, soft_wrap=True)
