"""A table as a polars IO source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from lance_duck.arrow.types import storage_type
from lance_duck.errors import UnsupportedError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.polars.expressions import PushedDown, pushed_down
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.table_scan import TableScan

_NOTHING: Final = PushedDown(None, is_whole=True)


def lazy_frame(table: TableScan, columns: tuple[str, ...] | None = None) -> pl.LazyFrame:
    """Return a table as a LazyFrame. No data is read before it is collected.

    Args:
        table: The table.
        columns: Names of the columns of the frame. None selects all.

    Raises:
        UnknownColumnError: A column does not exist.
        UnsupportedError: A column has a type that polars does not support.
    """
    schema = LanceScanner(table, ScanOptions(columns=columns)).projected_schema
    for field in schema:
        _check(field.type, field.name)
    frame = cast("pl.DataFrame", pl.from_arrow(schema.empty_table()))
    source = PolarsSource(table, tuple(schema.names), schema)
    return register_io_source(source, schema=frame.schema, validate_schema=True, is_pure=True)


@dataclass(frozen=True, eq=False)
class PolarsSource:
    """The picklable callable that polars calls to read a table.

    Attributes:
        table: The table.
        columns: Names of the columns of the frame.
        schema: Arrow schema of these columns.
    """

    table: TableScan
    columns: tuple[str, ...]
    schema: pa.Schema

    def __call__(
        self, with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Read rows.

        Args:
            with_columns: Names of the columns to read, including the predicate's columns. None reads all columns.
            predicate: Condition that selects the rows to read. None reads all rows.
            n_rows: Maximum number of rows, before the predicate is applied.
            batch_size: Maximum number of rows per frame.
        """
        names = list(self.columns if with_columns is None else with_columns)
        done = _NOTHING if predicate is None else PushedDown(None, is_whole=False)
        if predicate is not None and n_rows is None:
            done = pushed_down(predicate, self.schema)
        options = ScanOptions(columns=names, filter=done.predicate, limit=n_rows, batch_size=batch_size)
        for batch in LanceScanner(self.table, options).to_batches():
            frame = cast("pl.DataFrame", pl.from_arrow(batch, rechunk=False))
            yield frame if predicate is None or done.is_whole else frame.filter(predicate)


def _check(type_: pa.DataType, name: str) -> None:
    """Reject types that make polars panic."""
    type_ = storage_type(type_)
    if pa.types.is_decimal256(type_) or pa.types.is_union(type_) or pa.types.is_interval(type_):
        raise UnsupportedError("polars does not support this type", where=f"column {name}", found=type_)
    for place in range(type_.num_fields):
        _check(type_.field(place).type, name)
