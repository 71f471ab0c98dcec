"""A table source that only returns rows that match a full-text query, or only the best of these rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.computed_columns import ComputedColumn, TableWithColumns, TextMatches
from lance_duck.duck.tables.search import ADDRESS
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.tree import In, Predicate
from lance_duck.scan.text.matches import Matches
from lance_duck.scan.text.query.tree import BooleanQuery, FullTextQuery, MatchQuery, Occur, PhraseQuery
from lance_duck.scan.text.search import TextSearch

_MORE: Final = 16
"""Number of rows to find beyond the limit, to include ties with the last row. Not measured."""


@dataclass(frozen=True)
class MatchAsk:
    """The full-text matches that a statement requests.

    Attributes:
        queries: The full-text queries. A row must match all of them. Their scores are added.
        limit: Number of best rows. Ties with the last row are added. Defaults to all rows.
        where: Condition on the rows, as for `LanceDataset.scanner`. Only with `limit`.
    """

    queries: Sequence[MatchQuery | PhraseQuery]
    limit: int | None = None
    where: Any = None

    @property
    def query(self) -> FullTextQuery:
        """The queries, combined into one."""
        if len(self.queries) == 1:
            return self.queries[0]
        return BooleanQuery([(Occur.MUST, query) for query in self.queries])

    def found(self, dataset: LanceDataset) -> Matches:
        """Return the addresses of the rows."""
        table = dataset.handle.table
        options = ScanOptions.of({"columns": [], "filter": self.where})
        search = TextSearch(table, self.query, table.plan(options))
        if self.limit is None:
            return search.matches()
        most = self.limit + _MORE if isinstance(self.query, MatchQuery) else None
        while True:
            matches = search.matches(None, most)
            if len(matches) <= self.limit:
                return matches
            best = -np.sort(-matches.scores)
            last = best[self.limit - 1]
            if most is None or len(matches) < most or best[most - 1] < last:
                return matches.where(matches.scores >= last)
            most *= 4


class BestMatches(TextMatches):
    """The rows that a statement requests. The search runs once per version. Thread-safe.

    Args:
        ask: The requested matches.
        is_steady: Returns whether the other conditions still have the same meaning. Called before each scan.
    """

    def __init__(self, ask: MatchAsk, is_steady: Callable[[], bool]) -> None:
        super().__init__(ask.queries[0])
        self._ask = ask
        self._is_steady = is_steady
        self._found: tuple[LanceDataset, MatchAsk, Matches] | None = None

    @property
    def ask(self) -> MatchAsk:
        """The current request: all matches if the other conditions may have changed their meaning."""
        return self._ask if self._is_steady() else MatchAsk(self._ask.queries)

    def of(self, dataset: LanceDataset) -> Matches:
        """See `TextMatches`."""
        ask = self.ask
        with self._lock:
            found = self._found
            if found is None or found[0] is not dataset or found[1].limit != ask.limit:
                found = self._found = dataset, ask, ask.found(dataset)
            return found[2]


class MatchedTable(TableWithColumns):
    """The rows that a statement with `match` requests. The search runs when DuckDB scans the table.

    Args:
        resolve: See `DuckTable`.
        matches: The rows.
        computed: Columns with the scores of the same search.
    """

    def __init__(
        self, resolve: Callable[[], LanceDataset], matches: BestMatches, computed: Sequence[ComputedColumn] = ()
    ) -> None:
        super().__init__(resolve, computed)
        self._matches = matches
        self._last: tuple[Matches, Predicate] | None = None

    def rows(self) -> int:
        """Return the number of rows."""
        return len(self._matches.of(self.dataset))

    def implied(self, dataset: LanceDataset) -> Predicate | None:
        """See `DuckTable.implied`."""
        found, last = self._matches.of(dataset), self._last
        if last is None or last[0] is not found:
            last = self._last = found, In((ADDRESS,), pa.array(found.names))
        return last[1]

    def explained(self, parts: Sequence[Predicate] = ()) -> str:
        """See `DuckTable.explained`. Only the search is described."""
        ask = self._matches.ask
        scanner = self.dataset.scan(columns=[], full_text_query=ask.query, filter=ask.where, limit=ask.limit)
        lines = [line for line in scanner.explain_plan().splitlines() if not line.startswith("  columns:")]
        return "\n".join(lines) + "\n"
