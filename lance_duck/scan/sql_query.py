"""Queries of one version of a table from Python, compatible with pylance: `LanceDataset.sql`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Final, Literal, Self

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.arguments import checked_calls, unknown_value
from lance_duck.errors import InvalidInputError, UnsupportedError

_BLOB_HANDLING = ("all_binary", "blobs_descriptions", "all_descriptions")


@dataclass(frozen=True)
class SqlRequest:
    """A query of one version of a table.

    Attributes:
        sql: The query.
        dataset: The version, a `LanceDataset`.
        table_name: Name of the table in the query.
        with_row_id: Whether rows have `_rowid`.
        with_row_addr: Whether rows have `_rowaddr`.
        batch_size: Maximum rows per batch, or None for DuckDB's batch size.
        batch_size_bytes: Approximate maximum batch size, in bytes, or None for no limit.
    """

    sql: str
    dataset: pads.Dataset
    table_name: str = "dataset"
    with_row_id: bool = False
    with_row_addr: bool = False
    batch_size: int | None = None
    batch_size_bytes: int | None = None


Engine = Callable[[SqlRequest], pa.RecordBatchReader]
_ENGINES: list[Engine] = []
_ENGINE: Final = "lance_duck.duck.dataset_sql"


def set_engine(engine: Engine) -> None:
    """Register the engine that runs queries. A higher layer provides it."""
    _ENGINES[:] = [engine]


class SqlQuery:
    """A query that can be run repeatedly. Created by `SqlQueryBuilder.build`."""

    def __init__(self, request: SqlRequest) -> None:
        self._request = request

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """Run the query and return its rows as a list of nonempty batches.

        Raises:
            InvalidInputError: The text is not a single query.
            UnsupportedError: The statement changes a table.
            duckdb.Error: DuckDB rejects the query.
        """
        return [batch for batch in self.to_stream_reader() if batch.num_rows]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Run the query and return its rows as a stream. Raises the errors of `to_batch_records`."""
        if not _ENGINES:
            import_module(_ENGINE)  # its import calls `set_engine`
        reader = _ENGINES[0](self._request)
        return pa.RecordBatchReader.from_batches(reader.schema, self._batches(reader))

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        limit = self._request.batch_size_bytes
        for batch in reader:
            rows = batch.num_rows
            if limit is not None and batch.nbytes > limit:
                rows = max(1, rows * limit // batch.nbytes)
            for start in range(0, batch.num_rows, max(rows, 1)):
                yield batch.slice(start, rows)


@checked_calls
class SqlQueryBuilder:
    """Builds a query on one table version. Returned by `LanceDataset.sql`."""

    def __init__(self, request: SqlRequest) -> None:
        self._request = request

    def table_name(self, table_name: str) -> Self:
        """Set the name of the table in the query, instead of "dataset"."""
        return self._with(table_name=table_name)

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Add `_rowid` to the table's columns, and to the end of results without grouping."""
        return self._with(with_row_id=with_row_id)

    def with_row_addr(self, with_row_addr: bool = True) -> Self:
        """Add `_rowaddr` to the table's columns, and to the end of results without grouping, after `_rowid`."""
        return self._with(with_row_addr=with_row_addr)

    def blob_handling(self, blob_handling: Literal["all_binary", "blobs_descriptions", "all_descriptions"]) -> Self:
        """Set how blobs are read. SQL supports only "all_binary", which reads their bytes.

        Raises:
            UnsupportedError: Only pylance supports the value.
        """
        if blob_handling not in _BLOB_HANDLING:
            raise unknown_value("blob_handling", blob_handling, _BLOB_HANDLING)
        if blob_handling != "all_binary":
            raise UnsupportedError(
                "SQL cannot read blob descriptions", found=blob_handling, remedy="use scanner(blob_handling=…)"
            )
        return self

    def batch_size(self, batch_size: int) -> Self:
        """Set the maximum number of rows per batch."""
        return self._with(batch_size=_positive("batch_size", batch_size))

    def batch_size_bytes(self, batch_size_bytes: int) -> Self:
        """Set the approximate batch size, in bytes."""
        return self._with(batch_size_bytes=_positive("batch_size_bytes", batch_size_bytes))

    def build(self) -> SqlQuery:
        """Return the query without running it."""
        return SqlQuery(self._request)

    def _with(self, **changes: str | bool | int) -> Self:
        self._request = replace(self._request, **changes)  # type: ignore[arg-type]
        return self


def _positive(name: str, value: int) -> int:
    if value < 1:
        raise InvalidInputError(name, expected="1 or more", found=value)
    return value
