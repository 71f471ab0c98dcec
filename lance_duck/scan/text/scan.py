"""A full-text search. It is planned when a scanner is created, and runs when its result is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arguments import known_names
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.nearest.passing_rows import PassingRows
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.scored.condition import on_scores
from lance_duck.scan.scored.layout import DOC_INDEX, SCORE, score_field
from lance_duck.scan.scored.scan import ScoredRows, ScoredScan
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.columns import text_column
from lance_duck.scan.text.explain import explain_text_search
from lance_duck.scan.text.request import full_text_query
from lance_duck.scan.text.search import TextSearch
from lance_duck.text.highlight import highlight, snippet
from lance_duck.wire.fragment import Fragment

_REFUSED: Final = ("include_deleted_rows", "blob_handling")


class TextScan(ScoredScan):
    """A scan for the rows that match a full-text query. Safe to run from several threads.

    Args:
        table: The table.
        options: The options of the scan.
        fragment: The only fragment to search. None searches the fragments in the options.
        by_row: See `TextSearch`.

    Raises:
        InvalidInputError: An option does not fit this table.
        UnsupportedError: An option is not supported with a search.
    """

    def __init__(
        self, table: TableScan, options: ScanOptions, fragment: Fragment | None = None, *, by_row: bool = False
    ) -> None:
        for name in _REFUSED:
            if getattr(options, name):
                raise UnsupportedError(f"{name} is not supported", where="full_text_query")
        before, condition = on_scores(table.snapshot.schema, options, (SCORE,))
        self._search = _prepared(table, before, fragment, by_row=by_row)
        _ = self._search.known  # rejects invalid queries early
        super().__init__(table, options, (DOC_INDEX, SCORE) if self.by_element else (SCORE,), condition)

    @property
    def by_element(self) -> bool:
        """Whether documents are list elements. A row may then be found several times."""
        return self._search.by_element and not self._search.by_row

    @property
    def is_exact(self) -> bool:
        """Whether all rows are searched."""
        return not self._search.fast

    @property
    def is_whole(self) -> bool:
        """Whether the search returns the best rows of all fragments in their order. A filter applies only before it."""
        search, options = self._search, self._options
        is_filtered = search.post is not None or self._condition is not None
        is_every = search.plan.fragments is self._table.snapshot.fragments
        return is_every and not is_filtered and not options.orderings and bool(options.limit)

    def filtered(self) -> PassingRows | None:
        """Return the rows that pass the filter, from the cache or a scan. None without a filter."""
        return self._search.allowed().filtered

    @property
    def has_filter(self) -> bool:
        """Whether a filter applies before the search."""
        return self._search.plan.filter is not None

    @property
    def caches_filter(self) -> bool:
        """Whether there is no filter, or the rows that pass it are cached."""
        return not self.has_filter or self._search.filter_key is not None

    def find(self, most: int | None, log: list[str] | None = None) -> ScoredRows:
        """See `ScoredScan.find`."""
        ranking = self._search.run(most, log)
        scores: dict[str, Any] = {SCORE: ranking.scores}
        if self.by_element:
            scores[DOC_INDEX] = _doc_index(ranking.elements, len(ranking))
        return ScoredRows(ranking.addresses, scores)

    def count(self) -> int:
        """See `ScoredScan.count`. Rows are not scored, unless a condition reads their scores or follows the search."""
        if self._condition is not None or self._search.post is not None:
            return super().count()
        rows, limit = max(0, self._search.count() - (self._options.offset or 0)), self._options.limit
        return rows if limit is None else min(rows, limit)

    @property
    def columns(self) -> tuple[str, ...]:
        """Paths of the searched columns, without duplicates."""
        return tuple(dict.fromkeys(route.column.path for route in self._search.routes.values()))

    @property
    def cover(self) -> tuple[list[frozenset[int]], frozenset[int]]:
        """For the first column: the fragments of each searched segment, and the fragments that no segment covers."""
        route = next(iter(self._search.routes.values()))
        return [frozenset(segment.fragments.tolist()) for segment in route.segments], route.open

    def highlight(
        self, texts: pa.Array | pa.ChunkedArray, column: str, pre: str, post: str, words: int | None = None
    ) -> pa.LargeStringArray:
        """See `LanceScanner.highlight`."""
        path = text_column(self._table.snapshot.schema, column).path
        routes = [route for route in self._search.routes.values() if route.column.path == path]
        if not routes:
            raise InvalidInputError("column", where="highlight", expected=known_names(self.columns), found=path)
        terms = self._search.targets_in(texts, path)
        analyser = routes[0].analyser
        return (
            highlight(texts, terms, analyser, pre, post)
            if words is None
            else snippet(texts, terms, analyser, pre, post, words)
        )

    def described(self, verbose: bool) -> Iterator[str]:
        """See `ScoredScan.described`."""
        return explain_text_search(self._search, self._options, self.schema.names, verbose=verbose)


def _doc_index(elements: tuple[NDArray[np.uint32], ...], count: int) -> pa.ListArray:
    """Return the positions of elements as column `DOC_INDEX`."""
    places = np.stack(elements, axis=1) if elements else np.empty((count, 0), np.uint32)
    offsets = pa.array(np.arange(count + 1, dtype=np.int32) * places.shape[1], pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(places.ravel()), type=score_field(DOC_INDEX).type)


def _prepared(table: TableScan, options: ScanOptions, fragment: Fragment | None, *, by_row: bool) -> TextSearch:
    is_post = options.prefilter is False
    post = table.option_cache.filter(table.snapshot.schema, options) if is_post else None
    condition = None if is_post else options.filter
    if fragment is None and condition is None and options.fragments is None and options.use_scalar_index is None:
        plan: ScanPlan = table.option_cache.layout("every row", lambda: table.plan(ScanOptions(columns=[])))
    else:
        inner = ScanOptions(
            columns=[],
            filter=condition,
            parameters=None if condition is None else options.parameters,
            fragments=options.fragments,
            use_scalar_index=options.use_scalar_index,
        )
        plan = table.plan(inner, fragment)
    query = full_text_query(options.full_text_query, table.snapshot)
    workers = None if options.use_threads else 1
    return TextSearch(table, query, plan, post, bool(options.fast_search), workers, by_row)
