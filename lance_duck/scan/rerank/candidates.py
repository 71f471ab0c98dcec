"""The candidates that a reranker ranks, and the ranking that it returns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.scan.table_scan import TableScan

RELEVANCE: Final = "_relevance_score"


@dataclass(frozen=True, eq=False)
class RerankCandidates:
    """The rows that a search found, best first.

    Attributes:
        rows: The requested columns, `_rowid`, and the scores of the search: `_distance`, `_score`, `_hybrid_score`.
        query: The words of a search for words, the text that an embedder made the vector of, or the query vector.
        vector: The query vector. None for a search by words only.
        column: Name of the searched vector column, or None.
        table: The version that was searched.
    """

    rows: pa.Table
    query: Any
    vector: Any
    column: str | None
    table: TableScan

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @cached_property
    def row_ids(self) -> NDArray[np.uint64]:
        """uint64 (rows,): the `_rowid` of each row."""
        ids: NDArray[np.uint64] = self.rows.column("_rowid").to_numpy()
        return ids

    def measures(self, name: str) -> NDArray[np.float64] | None:
        """Return a score of each row, NaN where it is null. None if the search does not have this score."""
        if name not in self.rows.schema.names:
            return None
        values: NDArray[np.float64] = self.rows.column(name).cast(pa.float64()).to_numpy()
        return values


@dataclass(frozen=True, eq=False)
class RerankedRows:
    """The best candidates, best first.

    Attributes:
        places: int64, the index of each row in the candidates.
        scores: float32, the relevance of each row. Greater is better. None if the reranker gave only an order.
    """

    places: NDArray[np.int64]
    scores: NDArray[np.float32] | None
