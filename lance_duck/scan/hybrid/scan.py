"""A hybrid search ranks the candidates of a vector search and a full-text search together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.scan.hybrid.mix import Candidates
from lance_duck.scan.hybrid.options import WHERE, Hybrid, at_least_one
from lance_duck.scan.nearest.options import DEFAULT_K
from lance_duck.scan.nearest.result import DISTANCE
from lance_duck.scan.nearest.scan import NearestScan
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.scored.condition import on_scores
from lance_duck.scan.scored.layout import SCORE
from lance_duck.scan.scored.scan import ScoredRows, ScoredScan
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.ranking import row_ids
from lance_duck.scan.text.scan import TextScan
from lance_duck.wire.fragment import Fragment

HYBRID_SCORE: Final = "_hybrid_score"


class HybridScan(ScoredScan):
    """A search for rows by vector and by words. It returns the best rows first. Safe to run from several threads.

    `_distance` is null if the vector search did not find the row, and `_score` is null if the full-text search did not.
    If documents are list elements, the score of a row is the score of its best element. A filter applies to both
    searches. Distances are computed from the table's vectors, unless `nearest` contains "exact_distance": False.

    Args:
        table: The table.
        options: The options of the search.
        fragment: The only fragment to search. None searches the fragments in the options.

    Raises:
        InvalidInputError: An option does not fit this table.
        UnsupportedError: An option is not supported with a search.
    """

    def __init__(self, table: TableScan, options: ScanOptions, fragment: Fragment | None = None) -> None:
        nearest = options.nearest
        if not isinstance(nearest, Mapping):
            raise WrongTypeError("nearest", expected="a dict", found=type(nearest).__name__)
        scores = (DISTANCE, SCORE, HYBRID_SCORE)
        before, condition = on_scores(table.snapshot.schema, options, scores)
        self._hybrid = Hybrid.of(options.hybrid)
        self._k = _k(nearest, options)
        # The table's row count limits the memory that searches allocate for candidates.
        most = min(self._k * self._hybrid.oversample_factor, max(table.snapshot.count_rows(), 1))
        side = replace(before, limit=None, offset=None, order_by=None, hybrid=None)
        arguments = {"exact_distance": True, **nearest, "k": most}
        self._near = NearestScan(
            table, replace(side, columns=[DISTANCE], nearest=arguments, full_text_query=None), fragment
        )
        self._queries = self._near.queries(arguments)
        if self._queries.is_batch:
            raise InvalidInputError("query vector", where=WHERE, expected="one", found="a list of vectors")
        match = replace(side, columns=[SCORE], nearest=None, limit=most)
        self._match = TextScan(table, match, fragment, by_row=True)
        self._most = most
        super().__init__(table, options, scores, condition)

    @property
    def is_exact(self) -> bool:
        """Whether both searches are exact."""
        return self._near.is_exact and self._match.is_exact

    @property
    def words(self) -> TextScan:
        """The full-text search."""
        return self._match

    def find(self, most: int | None, log: list[str] | None = None) -> ScoredRows:
        """See `ScoredScan.find`."""
        near = self._near.rows(self._queries, log)
        match = self._match.find(self._most, log)
        snapshot = self._table.snapshot
        nearest = Candidates(row_ids(snapshot, near.addresses), near.distances)
        matching = Candidates(row_ids(snapshot, match.addresses), np.asarray(match.scores[SCORE]))
        rows = 2 * self._most if self._hybrid.is_whole else self._k
        ranking = self._hybrid.method.mix(nearest, matching, rows if most is None else min(most, rows))
        both = np.concatenate([near.addresses, match.addresses])
        places = np.where(ranking.nearest < 0, ranking.matching + len(near), ranking.nearest)
        scores: dict[str, Any] = {
            DISTANCE: _measures(near.distances, ranking.nearest),
            SCORE: _measures(matching.measures, ranking.matching),
            HYBRID_SCORE: ranking.scores,
        }
        return ScoredRows(both[places], scores)

    def described(self, verbose: bool) -> Iterator[str]:
        """See `ScoredScan.described`."""
        method = self._hybrid.method
        how = f"{method.name}, alpha {method.alpha:g}" if method.name == "linear" else method.name
        yield f"LanceHybrid: method {how}, k {self._k}"
        yield "  candidates by vectors:"
        yield from (f"    {line}" for line in self._near.explain(self._queries, verbose).splitlines())
        yield "  candidates by words:"
        yield from (f"    {line}" for line in self._match.explain(verbose).splitlines())


def _k(nearest: Mapping[str, Any], options: ScanOptions) -> int:
    """Return the number of rows to find: k in `nearest`. Without k, limit + offset. Without a limit, 10."""
    k = nearest.get("k")
    if k is not None:
        return at_least_one("k", k)
    return DEFAULT_K if options.limit is None else max(1, options.limit + (options.offset or 0))


def _measures(values: NDArray[np.float32], places: NDArray[np.int64]) -> pa.Array:
    """Return the distances or scores at the given indices. The index -1 gives null."""
    return pa.array(values, pa.float32()).take(pa.array(places, mask=places < 0))
