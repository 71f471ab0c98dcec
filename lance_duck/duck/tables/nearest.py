"""The rows that `lance_vector_search` returns, as a source for DuckDB."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.search import SearchRows, has_own_types, rows_of_search
from lance_duck.errors import InvalidInputError
from lance_duck.scan.duckdb.types import duckdb_arrow_schema

DISTANCE: Final = "_distance"
QUERY: Final = "query_index"
_MADE: Final = (DISTANCE, QUERY)
_WORDS: Final = {"nan": "NaN", "inf": "Infinity", "NULL": "null"}


class NearestRows(SearchRows):
    """The rows nearest to a vector, nearest first.

    The columns are the table's columns in DuckDB types, and `_distance`.

    With several query vectors, the first column is `query_index`.

    Args:
        dataset: One version of a table.
        nearest: The search, as for `LanceDataset.scanner`.
        options: `filter` and `prefilter`, as for `LanceDataset.scanner`.

    Raises:
        InvalidInputError: The arguments are invalid for the table.
    """

    def __init__(self, dataset: LanceDataset, nearest: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self._asked: dict[str, Any] = {"nearest": {"exact_distance": True, **nearest}, **options}
        scanner = dataset.scan(columns=[], **self._asked)  # raises errors for invalid arguments immediately
        self._queries = scanner.num_queries
        schema = duckdb_arrow_schema(dataset.schema).append(pa.field(DISTANCE, pa.float32()))
        super().__init__(dataset, schema.insert(0, pa.field(QUERY, pa.int32())) if scanner.is_batch else schema)

    @property
    def facts(self) -> Mapping[str, str]:
        """See `SearchRows`."""
        use_index = bool(self._asked["nearest"].get("use_index", True))
        return {**super().facts, "Lance Use Index": str(use_index).lower()}

    def count_rows(self) -> int:
        """Return an upper bound of the number of rows."""
        return min(int(self._asked["nearest"]["k"]), int(self._dataset.count_rows())) * self._queries

    def explained(self) -> str:
        """Describe the search in words."""
        return self._dataset.scan(columns=[DISTANCE], **self._asked).explain_plan()

    def rows_found(self, output: pa.Schema) -> pa.Table:
        """See `SearchRows`."""
        return found_rows(self._dataset, output, self._asked)


def found_rows(dataset: LanceDataset, output: pa.Schema, arguments: Mapping[str, Any]) -> pa.Table:
    """Search, and read columns.

    Args:
        dataset: One version of a table.
        output: Columns to return: table columns in DuckDB types, `_distance` and `query_index`.
        arguments: `nearest`, `filter` and `prefilter`, as for `LanceDataset.scanner`.
    """
    if has_own_types(dataset, output, _MADE):
        rows = dataset.scan(columns=output.names, **arguments).to_table()
        return pa.Table.from_arrays([rows.column(name) for name in output.names], schema=output)
    return rows_of_search(
        dataset, output, dataset.scan(columns=[DISTANCE], with_row_address=True, **arguments).to_table()
    )


def listed_numbers(text: str) -> Any:
    """Parse a list of numbers, or a list of such lists, from DuckDB's string form.

    Raises:
        InvalidInputError: The list contains other values.
    """
    try:
        return json.loads(re.sub(r"nan|inf|NULL", lambda word: _WORDS[word[0]], text))
    except ValueError as error:
        raise InvalidInputError("query vector", expected="a list of numbers", found=text[:40]) from error
