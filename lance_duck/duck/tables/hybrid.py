"""The source behind `lance_hybrid_search`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.matches import SCORE
from lance_duck.duck.tables.nearest import DISTANCE
from lance_duck.duck.tables.search import ADDRESS, SearchRows, rows_at
from lance_duck.errors import InvalidInputError
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.hybrid import Candidates, HybridMethod
from lance_duck.scan.text.request import query_of_text

HYBRID_SCORE: Final = "_hybrid_score"
_MADE: Final = (DISTANCE, SCORE, HYBRID_SCORE)
_ROW_ID: Final = "_rowid"
_WHERE: Final = "lance_hybrid_search"


@dataclass(frozen=True)
class HybridRequest:
    """What a hybrid search is for.

    Attributes:
        nearest: The vectors, as `LanceDataset.scanner` takes them, without k.
        text_column: The texts.
        query: Words: see `query_of_text`.
        k: Rows at most.
        oversample_factor: Each search finds so many times k candidates.
        method: How their measures are mixed.
        options: filter and prefilter, as `LanceDataset.scanner` takes them.
    """

    nearest: Mapping[str, Any]
    text_column: str
    query: str
    k: int
    oversample_factor: int
    method: HybridMethod
    options: Mapping[str, Any]


class HybridRows(SearchRows):
    """Rows of a table near to a vector, or with words, or both, best first.

    The columns of the table come in DuckDB's form, then `_distance` and `_score`, which are null where that search did
    not find the row, and `_hybrid_score`.

    Args:
        dataset: One version of a table.
        request: What is searched for.

    Raises:
        InvalidInputError: What is asked makes no sense for this table.
    """

    def __init__(self, dataset: LanceDataset, request: HybridRequest) -> None:
        for name, number in (("k", request.k), ("oversample_factor", request.oversample_factor)):
            if number < 1:
                raise InvalidInputError(name, where=_WHERE, expected="1 or more", found=str(number))
        if HYBRID_SCORE in dataset.schema.names:
            raise InvalidInputError(
                f"a search cannot be used on datasets with column {HYBRID_SCORE!r}", remedy="rename it"
            )
        self._request = request
        # The number of rows bounds what the searches set aside for their candidates.
        most = min(request.k * request.oversample_factor, max(dataset.count_rows(), 1))
        nearest = {"exact_distance": True, **request.nearest, "k": most}
        words = query_of_text(request.query, request.text_column)
        self._near: dict[str, Any] = {"columns": [DISTANCE], "nearest": nearest, **request.options}
        self._match: dict[str, Any] = {"columns": [SCORE], "full_text_query": words, "limit": most, **request.options}
        if dataset.scan(**self._near).is_batch:
            raise InvalidInputError("query vector", where=_WHERE, expected="one", found="a list of vectors")
        dataset.scan(**self._match)  # refuses here and now what makes no sense
        schema = duckdb_arrow_schema(dataset.schema)
        for name in _MADE:
            schema = schema.append(pa.field(name, pa.float32()))
        super().__init__(dataset, schema)

    @property
    def facts(self) -> Mapping[str, str]:
        """See `SearchRows`."""
        nearest = self._request.nearest
        names = {"Lance Nprobes": "nprobes", "Lance Refine Factor": "refine_factor"}
        numbers = {fact: str(nearest[name]) for fact, name in names.items() if nearest.get(name) is not None}
        use_index = str(bool(nearest.get("use_index", True))).lower()
        return {**super().facts, "Lance Search Mode": "hybrid", **numbers, "Lance Use Index": use_index}

    def count_rows(self) -> int:
        """Return an upper bound of the number of rows."""
        return min(self._request.k, int(self._dataset.count_rows()))

    def explained(self) -> str:
        """Describe the search in words."""
        method = self._request.method
        how = f"{method.name}, alpha {method.alpha:g}" if method.name == "linear" else method.name
        lines = [
            f"LanceHybrid: method {how}, k {self._request.k}",
            "  candidates by vectors:",
            *(f"    {line}" for line in self._dataset.scan(**self._near).explain_plan().splitlines()),
            "  candidates by words:",
            *(f"    {line}" for line in self._dataset.scan(**self._match).explain_plan().splitlines()),
        ]
        return "\n".join(lines) + "\n"

    def rows_found(self, wanted: pa.Schema) -> pa.Table:
        """See `SearchRows`."""
        near = self._dataset.scan(**self._near, with_row_id=True, with_row_address=True).to_table()
        match = self._dataset.scan(**self._match, with_row_id=True, with_row_address=True).to_table()
        ranking = self._request.method.mix(_candidates(near, DISTANCE), _candidates(match, SCORE), self._request.k)
        in_near, in_match = _indices(ranking.nearest), _indices(ranking.matching)
        addresses = [
            _taken(near, ADDRESS, in_near).fill_null(0).to_numpy(),
            _taken(match, ADDRESS, in_match).fill_null(0).to_numpy(),
        ]
        found = {
            ADDRESS: pa.array(np.where(ranking.nearest < 0, addresses[1], addresses[0])),
            DISTANCE: _taken(near, DISTANCE, in_near),
            SCORE: _taken(match, SCORE, in_match),
            HYBRID_SCORE: pa.array(ranking.scores),
        }
        return rows_at(self._dataset, wanted, pa.table(found))


def _candidates(found: pa.Table, measure: str) -> Candidates:
    return Candidates(found.column(_ROW_ID).to_numpy(), found.column(measure).to_numpy())


def _indices(places: NDArray[np.int64]) -> pa.Array:
    return pa.array(places, mask=places < 0)


def _taken(found: pa.Table, name: str, indices: pa.Array) -> pa.Array:
    return found.column(name).combine_chunks().take(indices)
