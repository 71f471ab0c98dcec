"""The source behind `lance_hybrid_search`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.matches import SCORE
from lance_duck.duck.tables.nearest import DISTANCE
from lance_duck.duck.tables.search import SearchRows, has_own_types, rows_of_search
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.hybrid.scan import HYBRID_SCORE

_MADE = (DISTANCE, SCORE, HYBRID_SCORE)


class HybridRows(SearchRows):
    """Rows that are near a vector, contain matching words, or both. The best rows come first.

    The table's columns, in DuckDB types, are followed by `_distance`, `_score` and `_hybrid_score`. `_distance` and
    `_score` are null if the respective search did not find the row.

    Args:
        dataset: One version of a table.
        asked: `nearest` with its k, `full_text_query`, `hybrid`, `filter` and `prefilter`, as for
            `LanceDataset.scanner`.

    Raises:
        InvalidInputError: The search is invalid for this table.
    """

    def __init__(self, dataset: LanceDataset, arguments: Mapping[str, Any]) -> None:
        self._asked = dict(arguments)
        dataset.scan(columns=[HYBRID_SCORE], **self._asked)  # raises errors for invalid arguments immediately
        schema = duckdb_arrow_schema(dataset.schema)
        for name in _MADE:
            schema = schema.append(pa.field(name, pa.float32()))
        super().__init__(dataset, schema)

    @property
    def facts(self) -> Mapping[str, str]:
        """See `SearchRows`."""
        nearest = self._asked["nearest"]
        names = {"Lance Nprobes": "nprobes", "Lance Refine Factor": "refine_factor"}
        numbers = {fact: str(nearest[name]) for fact, name in names.items() if nearest.get(name) is not None}
        use_index = str(bool(nearest.get("use_index", True))).lower()
        return {**super().facts, "Lance Search Mode": "hybrid", **numbers, "Lance Use Index": use_index}

    def count_rows(self) -> int:
        """Return an upper bound of the number of rows."""
        return min(int(self._asked["nearest"]["k"]), int(self._dataset.count_rows()))

    def explained(self) -> str:
        """Describe the search in words."""
        return self._dataset.scan(columns=[HYBRID_SCORE], **self._asked).explain_plan()

    def rows_found(self, output: pa.Schema) -> pa.Table:
        """See `SearchRows`."""
        if has_own_types(self._dataset, output, _MADE):
            options = {"columns": output.names, "disable_scoring_autoprojection": True}
            rows = self._dataset.scan(**options, **self._asked).to_table()
            return pa.Table.from_arrays([rows.column(name) for name in output.names], schema=output)
        return rows_of_search(
            self._dataset,
            output,
            self._dataset.scan(columns=list(_MADE), with_row_address=True, **self._asked).to_table(),
        )
