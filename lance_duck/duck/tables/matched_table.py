"""A table of which DuckDB sees only rows that match words, or the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.search import ADDRESS
from lance_duck.duck.tables.table import DuckTable
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.tree import In, Predicate
from lance_duck.scan.text.query.tree import BooleanQuery, FullTextQuery, MatchQuery, Occur, PhraseQuery
from lance_duck.scan.text.search import TextSearch

_MORE: Final = 16
"""Rows that are searched for besides those that are wanted, for ties with the last one. Not measured."""


@dataclass(frozen=True)
class MatchAsk:
    """What a statement asks for.

    Attributes:
        queries: All of them have to match; scores add up.
        limit: The best rows, so many of them, and those with the score of the last one; None: all.
        where: The condition that they fulfil, as `LanceDataset.scanner` takes it; None: none. Only with `limit`.
    """

    queries: Sequence[MatchQuery | PhraseQuery]
    limit: int | None = None
    where: Any = None

    @property
    def query(self) -> FullTextQuery:
        """The queries as one."""
        if len(self.queries) == 1:
            return self.queries[0]
        return BooleanQuery([(Occur.MUST, query) for query in self.queries])

    def addresses(self, dataset: LanceDataset) -> NDArray[np.uint64]:
        """Return the addresses of the rows, ascending."""
        table = dataset.handle.table
        options = ScanOptions.of({"columns": [], "filter": self.where})
        search = TextSearch(table, self.query, table.plan(options))
        if self.limit is None:
            return search.matches().names
        most = self.limit + _MORE if isinstance(self.query, MatchQuery) else None
        while True:
            matches = search.matches(None, most)
            if len(matches) <= self.limit:
                return matches.names
            best = -np.sort(-matches.scores)
            last = best[self.limit - 1]
            if most is None or len(matches) < most or best[most - 1] < last:
                return matches.where(matches.scores >= last).names
            most *= 4


class MatchedTable(DuckTable):
    """The rows of a table that a statement with `match` looks for, searched for when DuckDB scans it.

    Args:
        resolve: See `DuckTable`.
        ask: What the statement asks for.
        is_steady: Whether the other conditions still mean what they meant; asked when DuckDB scans.
    """

    def __init__(self, resolve: Callable[[], LanceDataset], ask: MatchAsk, is_steady: Callable[[], bool]) -> None:
        super().__init__(resolve)
        self._ask = ask
        self._is_steady = is_steady
        self._last: tuple[LanceDataset, MatchAsk, Predicate, int] | None = None

    def rows(self) -> int:
        """Return the number of rows."""
        return self._found()[1]

    def implied(self) -> Predicate | None:
        """See `DuckTable.implied`."""
        return self._found()[0]

    def explained(self, parts: Sequence[Predicate] = ()) -> str:
        """See `DuckTable.explained`; its search is all there is to say."""
        ask = self._asked()
        scanner = self.dataset.scan(columns=[], full_text_query=ask.query, filter=ask.where, limit=ask.limit)
        lines = [line for line in scanner.explain_plan().splitlines() if not line.startswith("  columns:")]
        return "\n".join(lines) + "\n"

    def _asked(self) -> MatchAsk:
        return self._ask if self._is_steady() else MatchAsk(self._ask.queries)

    def _found(self) -> tuple[Predicate, int]:
        dataset, ask, last = self.dataset, self._asked(), self._last
        if last is None or last[0] is not dataset or last[1] is not ask:
            addresses = ask.addresses(dataset)
            last = self._last = dataset, ask, In((ADDRESS,), pa.array(addresses)), len(addresses)
        return last[2], last[3]
