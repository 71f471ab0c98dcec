"""The source behind `lance_fts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.search import SearchRows, has_own_types, rows_of_search
from lance_duck.errors import InvalidInputError
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.text.request import query_of_text

SCORE: Final = "_score"
DOC_INDEX: Final = "_doc_index"


class MatchingRows(SearchRows):
    """Rows that match a full-text query, best first. The columns are the table's columns in DuckDB types, and `_score`.

    If documents are list elements, a row is returned once per matching element, with the element's position in
    `_doc_index`.

    Args:
        dataset: One version of a table.
        column: The column to search.
        query: Words, a phrase in double quotes, or the JSON form of a query (see `query_of_text`).
        k: Maximum number of rows. options: `filter` and `prefilter`, as for `LanceDataset.scanner`.

    Raises:
        InvalidInputError: The search is invalid for this table.
    """

    def __init__(self, dataset: LanceDataset, column: str, query: str, k: int, options: Mapping[str, Any]) -> None:
        if k < 1:
            raise InvalidInputError("k", where="lance_fts", expected="1 or more", found=str(k))
        self._most = k
        self._asked = {"full_text_query": query_of_text(query, column), "limit": k, **options}
        scanner = dataset.scan(columns=[SCORE], **self._asked)  # raises errors for invalid searches immediately
        self._made = [name for name in (DOC_INDEX, SCORE) if name in scanner.projected_schema.names]
        made = [scanner.projected_schema.field(name) for name in self._made]
        super().__init__(dataset, duckdb_arrow_schema(pa.schema([*dataset.schema, *made])))

    @property
    def facts(self) -> Mapping[str, str]:
        """See `SearchRows`."""
        return {**super().facts, "Lance Search Mode": "fts"}

    def count_rows(self) -> int:
        """Return an upper bound of the number of rows."""
        return self._most if DOC_INDEX in self._made else min(self._most, int(self._dataset.count_rows()))

    def explained(self) -> str:
        """Describe the search in words."""
        return self._dataset.scan(columns=[SCORE], **self._asked).explain_plan()

    def rows_found(self, output: pa.Schema) -> pa.Table:
        """See `SearchRows`."""
        if has_own_types(self._dataset, output, self._made):
            rows = self._dataset.scan(columns=output.names, **self._asked).to_table()
            return pa.Table.from_arrays([rows.column(name) for name in output.names], schema=output)
        rows = self._dataset.scan(columns=[SCORE], with_row_address=True, **self._asked).to_table()
        return rows_of_search(self._dataset, output, rows)
