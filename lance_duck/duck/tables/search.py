"""The source behind the SQL search functions. The search runs when DuckDB scans the source."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.scan_observer import WATCHES, Scan
from lance_duck.redact import shown
from lance_duck.scan.duckdb.source import PushedScan, ScanSource
from lance_duck.scan.predicate.tree import In

ADDRESS: Final = "_rowaddr"


class SearchRows(pads.Dataset, ScanSource):  # type: ignore[misc]
    """The result rows of a search, best first.

    The columns are the table's columns in DuckDB types, then the search's columns.

    An object is created at each bind. DuckDB applies the filters of the statement to the found rows.

    Args:
        dataset: One version of a table.
        schema: Columns of the rows.
    """

    def __init__(self, dataset: LanceDataset, schema: pa.Schema) -> None:
        self.obj = self
        self._dataset = dataset
        self._schema = schema
        for watch in WATCHES:
            watch.bound.append(self)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, then the search's columns."""
        return self._schema

    def __arrow_c_schema__(self) -> object:
        """See `ScanSource`."""
        return self._schema.__arrow_c_schema__()

    @property
    def dataset(self) -> LanceDataset:
        """The version that is searched."""
        return self._dataset

    @property
    def facts(self) -> Mapping[str, str]:
        """Details for EXPLAIN, by their names in DuckDB's `lance` extension."""
        return {"Lance Path": shown(self._dataset.uri)}

    @abstractmethod
    def count_rows(self) -> int:
        """Return an upper bound of the number of rows."""

    @abstractmethod
    def explained(self) -> str:
        """Describe the search."""

    @abstractmethod
    def rows_found(self, output: pa.Schema) -> pa.Table:
        """Run the search, and read some columns of `schema`."""

    def accepts(self, predicate: Any) -> bool:
        """Return False: the search does not apply DuckDB's filters."""
        return False

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """See `ScanSource.stream`."""
        schema = self._schema
        output = schema if columns is None else pa.schema([schema.field(i) for i in columns])
        return self._found(output).__arrow_c_stream__(), columns is not None

    def scanner(self, *, columns: Sequence[str] | None = None, filter: Any = None) -> PushedScan:  # noqa: A002
        """See `ScanSource.pushed_scanner`.

        DuckDB 1.x only passes runtime filters of joins (see `select_found`). They are ignored, because a filtered
        search would find different rows. The join also applies them.
        """
        output = self._schema if columns is None else pa.schema([self._schema.field(name) for name in columns])
        return PushedScan(output, lambda: self._found(output))

    def _found(self, output: pa.Schema) -> pa.RecordBatchReader:
        began = time.perf_counter()
        rows = self.rows_found(output).to_reader()
        for watch in WATCHES:
            scan = Scan(self._dataset, output.names, None, seconds=time.perf_counter() - began, plan=self.explained())
            watch.scans.append(scan)
            rows = scan.counted(rows)
        return rows


def has_own_types(dataset: LanceDataset, output: pa.Schema, made: Sequence[str]) -> bool:
    """Return whether a search returns columns in DuckDB types.

    Args:
        dataset: One version of a table.
        output: Table columns in DuckDB types, and columns added by the search.
        made: Names of the columns added by the search.
    """
    stored = dataset.schema
    return all(field.name in made or stored.field(field.name).type == field.type for field in output)


def rows_of_search(dataset: LanceDataset, output: pa.Schema, neighbours: pa.Table) -> pa.Table:
    """Read the rows that a search has found, with types that the search itself does not return.

    Args:
        dataset: The version that was searched.
        output: Columns to return, from the table (in DuckDB types) and from `neighbours`.
        neighbours: `_rowaddr` of the rows, and the search's own columns.
    """
    fields = [field for field in output if field.name not in neighbours.schema.names]
    if not fields:
        return neighbours.select(output.names).cast(output)
    addresses = neighbours.column(ADDRESS).combine_chunks()
    schema = pa.schema([*fields, pa.field(ADDRESS, pa.uint64())])
    rows = dataset.duckdb_reader(schema, In((ADDRESS,), addresses.unique())).read_all()
    order = np.argsort(rows.column(ADDRESS).to_numpy())
    places = order[np.searchsorted(rows.column(ADDRESS).to_numpy()[order], addresses.to_numpy())]
    rows = rows.take(pa.array(places))
    columns = [(neighbours if name in neighbours.schema.names else rows).column(name) for name in output.names]
    return pa.Table.from_arrays(columns, schema=output)


def select_found(source: str, k: int) -> str:
    """Return SQL that reads a source of `SearchRows`, given its SQL name.

    The limit does not drop rows. It only prevents DuckDB from pushing filters into the search.
    """
    return f"SELECT * FROM {source} LIMIT {k}"  # noqa: S608
