"""Searches whose rows have scores: reading, streaming, counting and explaining their results."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.limits import in_halves
from lance_duck.scan.filters import Filter
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.scored.layout import ScoreColumns, ScoreLayout, score_layout
from lance_duck.scan.sort import sort_table
from lance_duck.scan.table_scan import TableScan
from lance_duck.store.request import watched

_TEXT: Final = frozenset({str})


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows that a search found, best first.

    Attributes:
        addresses: Addresses of the rows.
        scores: float32 arrays by name, or Arrow arrays if they may contain nulls.
    """

    addresses: NDArray[np.uint64]
    scores: ScoreColumns

    def __len__(self) -> int:
        return len(self.addresses)

    def where(self, mask: NDArray[np.bool_]) -> ScoredRows:
        """Return the rows that a mask selects."""
        places = np.flatnonzero(mask)
        scores = {name: each.take(places) for name, each in self.scores.items()}
        return ScoredRows(self.addresses[places], scores)

    def slice(self, skip: int, most: int | None) -> ScoredRows:
        """Skip the first `skip` rows, and return at most `most` of the remaining rows (None for all)."""
        span = slice(skip, None if most is None else skip + most)
        return ScoredRows(self.addresses[span], {name: each[span] for name, each in self.scores.items()})


class ScoredScan(ABC):
    """A scan for rows with scores. Safe to run from several threads.

    A filter on scores is applied to all matching rows, and `limit` to the rows that pass. With `prefilter=False`, the
    filter is applied only to the best rows.

    Args:
        table: The table.
        options: The options of the scan.
        scores: Names of the scores.
        condition: A filter that reads scores: see `on_scores`.

    Raises:
        InvalidInputError: The requested columns do not fit this table.
    """

    def __init__(
        self, table: TableScan, options: ScanOptions, scores: Sequence[str], condition: Filter | None = None
    ) -> None:
        self._table = table
        self._options = options
        self._scores = scores
        self._condition = condition
        _ = self._layout  # rejects invalid columns early
        for ordering in options.orderings:
            self._new_layout([ordering.column_name])

    @abstractmethod
    def find(self, most: int | None, log: list[str] | None = None) -> ScoredRows:
        """Search for rows, and return them best first.

        Args:
            most: Maximum number of rows to find. None finds all matches.
            log: List that receives one line per step, or None.
        """

    @abstractmethod
    def described(self, verbose: bool) -> Iterator[str]:
        """Yield lines that describe the planned search."""

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._layout.schema

    @property
    def layout(self) -> ScoreLayout:
        """Layout of the result."""
        return self._layout

    def taken(self, rows: ScoredRows) -> pa.Table:
        """Return the result for rows that were found."""
        return self._taken(self._layout, rows)

    def table(self) -> pa.Table:
        """Search, and read the result."""
        skip, most = self._options.offset or 0, self._options.limit
        if not self._options.orderings:
            return self._taken(self._layout, self._rows())
        scored = self._passing(self.find(None))
        keys = [self._keys(ordering.column_name, scored) for ordering in self._options.orderings]
        names = [str(i) for i in range(len(keys))]
        rows = self._taken(self._layout, scored)
        return sort_table(rows, pa.table(keys, names), self._options.orderings).slice(skip, most)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Search, and yield the batches of the result. Columns are fetched batch by batch."""
        size = self._options.batch_size
        if size is None or self._options.orderings:
            yield from self.table().to_batches(size)
            return
        rows = self._rows()
        for start in range(0, len(rows), size):
            yield from self._batches(self._layout, rows.slice(start, size))

    def count(self) -> int:
        """Search, and count the rows of the result."""
        return len(self._rows())

    def explain(self, verbose: bool = False) -> str:
        """Describe the planned search."""
        return "\n".join(self._explained(verbose)) + "\n"

    def analyze(self, counting: bool = False) -> str:
        """Run the search, and describe its steps, reads and duration."""
        began = time.perf_counter()
        log: list[str] = []
        with watched() as reads:
            rows = self._rows(log)
            if not counting:
                self._taken(self._layout, rows)
        took = (time.perf_counter() - began) * 1000
        lines = [*self._explained(verbose=True), *(f"  {text}" for text in log)]
        lines.append(f"  read: {reads.size} bytes in {reads.ranges} requests")
        lines.append(f"  took: {took:.1f} ms, {len(rows)} rows")
        return "\n".join(lines) + "\n"

    def _rows(self, log: list[str] | None = None) -> ScoredRows:
        """Return the rows of the result, best first. `order_by` does not apply."""
        skip, most = self._options.offset or 0, self._options.limit
        everything = most is None or (self._condition is not None and self._options.prefilter is not False)
        return self._passing(self.find(None if everything else skip + (most or 0), log)).slice(skip, most)

    def _passing(self, rows: ScoredRows) -> ScoredRows:
        """Return the rows that pass the filter on scores."""
        if self._condition is None:
            return rows
        layout = self._new_layout([path[0] for path in self._condition.paths()])
        batch = self._batch(layout, rows)
        mask = self._condition.mask(dict(zip(batch.schema.names, batch.columns, strict=True)), len(rows))
        return rows.where(mask.to_numpy(zero_copy_only=False))

    def _explained(self, verbose: bool) -> Iterator[str]:
        yield from self.described(verbose)
        if self._condition is not None:
            yield f"  filter on scores: {self._condition}"

    @cached_property
    def _layout(self) -> ScoreLayout:
        options = self._options
        names = options.columns
        flags = tuple(
            map(bool, (options.with_row_id, options.with_row_address, options.disable_scoring_autoprojection))
        )

        def make() -> ScoreLayout:
            return score_layout(
                self._table.snapshot.schema,
                names,
                self._scores,
                with_row_id=flags[0],
                with_row_address=flags[1],
                with_scores=not flags[2],
            )

        if names is not None and not (isinstance(names, list | tuple) and _TEXT.issuperset(map(type, names))):
            return make()
        key = "scored", None if names is None else tuple(names), tuple(self._scores), flags
        return self._table.option_cache.layout(key, make)

    def _new_layout(self, columns: Sequence[str]) -> ScoreLayout:
        names = list(dict.fromkeys(columns))
        return score_layout(self._table.snapshot.schema, names, self._scores, with_scores=False)

    def _taken(self, layout: ScoreLayout, rows: ScoredRows) -> pa.Table:
        return pa.Table.from_batches(self._batches(layout, rows), layout.schema)

    def _batches(self, layout: ScoreLayout, rows: ScoredRows) -> list[pa.RecordBatch]:
        """Return rows as one batch, or as several batches if one array cannot hold a column."""
        return in_halves(lambda start, stop: [self._batch(layout, rows.slice(start, stop - start))], 0, len(rows))

    def _batch(self, layout: ScoreLayout, rows: ScoredRows) -> pa.RecordBatch:
        return layout.batch(self._table.taker, rows.addresses, rows.scores)

    def _keys(self, name: str, rows: ScoredRows) -> pa.ChunkedArray:
        return self._taken(self._new_layout([name]), rows).column(name)
