"""The source behind `lance_vector_search`: searches when DuckDB scans it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.scan_observer import WATCHES, Scan
from lance_duck.errors import InvalidInputError
from lance_duck.scan.duckdb.source import PushedScan, ScanSource
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.predicate.tree import In

DISTANCE: Final = "_distance"
QUERY: Final = "query_index"
_MADE: Final = (DISTANCE, QUERY)
_ADDRESS: Final = "_rowaddr"
_WORDS: Final = {"nan": "NaN", "inf": "Infinity", "NULL": "null"}


class NearestRows(pads.Dataset, ScanSource):  # type: ignore[misc]
    """Rows of a table nearest to a vector, nearest first: its columns in DuckDB's form, and `_distance`.

    It is made anew at each bind. Filters of the statement around it are DuckDB's own to apply: to the rows found.

    Args:
        dataset: One version of a table.
        nearest: What is searched for, as `LanceDataset.scanner` takes it.
        options: filter and prefilter, as there.

    Raises:
        InvalidInputError: What is asked makes no sense for this table.
    """

    def __init__(self, dataset: LanceDataset, nearest: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self.obj = self
        self._dataset = dataset
        self._asked: dict[str, Any] = {"nearest": {"exact_distance": True, **nearest}, **options}
        scanner = dataset.scan(columns=[], **self._asked)  # refuses here and now what makes no sense
        self._queries = scanner.num_queries
        schema = duckdb_arrow_schema(dataset.schema).append(pa.field(DISTANCE, pa.float32()))
        self._schema = schema.insert(0, pa.field(QUERY, pa.int32())) if scanner.is_batch else schema
        for watch in WATCHES:
            watch.bound.append(self)

    @property
    def schema(self) -> pa.Schema:
        """Columns of the table, and the distance; for several queries `query_index` first."""
        return self._schema

    def __arrow_c_schema__(self) -> object:
        """See `ScanSource`."""
        return self._schema.__arrow_c_schema__()

    @property
    def dataset(self) -> LanceDataset:
        """The version that is searched."""
        return self._dataset

    @property
    def may_use_index(self) -> bool:
        """Whether an index may answer the search."""
        return bool(self._asked["nearest"].get("use_index", True))

    def count_rows(self) -> int:
        """Return an upper bound of the number of rows."""
        return min(int(self._asked["nearest"]["k"]), int(self._dataset.count_rows())) * self._queries

    def explained(self) -> str:
        """Describe the search in words."""
        return self._dataset.scan(columns=[DISTANCE], **self._asked).explain_plan()

    def accepts(self, predicate: Any) -> bool:
        """Accept no filter: a search is for rows of the whole table."""
        return False

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """See `ScanSource.stream`."""
        schema = self._schema
        wanted = schema if columns is None else pa.schema([schema.field(i) for i in columns])
        return self._found(wanted).__arrow_c_stream__(), columns is not None

    def scanner(self, *, columns: Sequence[str] | None = None, filter: Any = None) -> PushedScan:  # noqa: A002
        """See `ScanSource.pushed_scanner`.

        A filter that comes this far, see `select_nearest`, is one that DuckDB 1.x makes of a join while that runs. The
        join applies it, too; here it would have the search find other rows.
        """
        wanted = self._schema if columns is None else pa.schema([self._schema.field(name) for name in columns])
        return PushedScan(wanted, lambda: self._found(wanted))

    def _found(self, wanted: pa.Schema) -> pa.RecordBatchReader:
        began = time.perf_counter()
        found = found_rows(self._dataset, wanted, self._asked).to_reader()
        for watch in WATCHES:
            scan = Scan(self._dataset, wanted.names, None, seconds=time.perf_counter() - began, plan=self.explained())
            watch.scans.append(scan)
            found = scan.counted(found)
        return found


def found_rows(dataset: LanceDataset, wanted: pa.Schema, asked: Mapping[str, Any]) -> pa.Table:
    """Search, and read columns.

    Args:
        dataset: One version of a table.
        wanted: Columns of the table in DuckDB's form, `_distance` and `query_index`.
        asked: nearest, filter and prefilter, as `LanceDataset.scanner` takes them.
    """
    own = dataset.schema
    if all(field.name in _MADE or own.field(field.name).type == field.type for field in wanted):
        found = dataset.scan(columns=wanted.names, **asked).to_table()
        return pa.Table.from_arrays([found.column(name) for name in wanted.names], schema=wanted)
    found = dataset.scan(columns=[DISTANCE], with_row_address=True, **asked).to_table()
    return _read(dataset, wanted, found)


def _read(dataset: LanceDataset, wanted: pa.Schema, found: pa.Table) -> pa.Table:
    """Return the columns of rows in types that a search does not give."""
    addresses = found.column(_ADDRESS).combine_chunks()
    fields = [field for field in wanted if field.name not in _MADE]
    schema = pa.schema([*fields, pa.field(_ADDRESS, pa.uint64())])
    rows = dataset.duckdb_reader(schema, In((_ADDRESS,), addresses.unique())).read_all()
    order = np.argsort(rows.column(_ADDRESS).to_numpy())
    places = order[np.searchsorted(rows.column(_ADDRESS).to_numpy()[order], addresses.to_numpy())]
    rows = rows.take(pa.array(places))
    columns = [(found if name in _MADE else rows).column(name) for name in wanted.names]
    return pa.Table.from_arrays(columns, schema=wanted)


def listed_numbers(text: str) -> Any:
    """Return the numbers of a list, or of a list of lists, that DuckDB has written as text.

    Raises:
        InvalidInputError: It holds something else.
    """
    try:
        return json.loads(re.sub(r"nan|inf|NULL", lambda word: _WORDS[word[0]], text))
    except ValueError as error:
        raise InvalidInputError("query vector", expected="a list of numbers", found=text[:40]) from error


def select_nearest(source: str, k: int) -> str:
    """Return SQL for the rows of a source that holds `NearestRows`.

    The limit, which takes no row away, keeps filters of the statement from being pushed into the search.
    """
    return f'SELECT * FROM "{source}" LIMIT {k}'  # noqa: S608
