"""Reads and analyses the texts of rows that no index covers. A few analysed rows are cached for later queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lance_duck.arrow.listed import values_below
from lance_duck.cache import SizedCache
from lance_duck.scan.costs import ANALYSED_BYTES, ANALYSED_ROWS
from lance_duck.scan.options import ScanOptions, plan_scan
from lance_duck.scan.projection import ROW_ADDRESS, project
from lance_duck.scan.read.execute import scan_batches
from lance_duck.scan.read.ordered import map_ordered
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.columns import TextColumn
from lance_duck.scan.text.places import Addresses, AnalysedRows
from lance_duck.text.analyser import Analyser
from lance_duck.wire.fragment import Fragment

Narrow = Callable[[AnalysedRows], AnalysedRows]


@dataclass(frozen=True, eq=False)
class FlatTexts:
    """The texts of a column, analysed on demand.

    Attributes:
        table: The table. Its restriction is ignored.
        column: The column.
        analyser: Analyser of the texts.
        by_element: Whether documents are list elements.
        workers: Thread count. None means one per core.
    """

    table: TableScan
    column: TextColumn
    analyser: Analyser
    by_element: bool = False
    workers: int | None = None

    def analysed(self, fragments: Sequence[Fragment], narrow: Narrow) -> list[AnalysedRows]:
        """Return the analysed live rows of fragments. Threads call `narrow` on each group of rows.

        The tokens of all rows are in memory at the same time only if they are cached.
        """
        return [rows for group in _groups(fragments) for rows in self._group(group, narrow)]

    def rows(self, addresses: Addresses) -> AnalysedRows:
        """Return the analysed rows at ascending addresses."""
        projection = project(self.table.snapshot.schema, [self.column.read])
        return self._of(addresses, self.table.taker.by_address(addresses, projection))

    def _group(self, fragments: Sequence[Fragment], narrow: Narrow) -> list[AnalysedRows]:
        cache = self.table.snapshot.shared("analysed texts", _AnalysedTexts).groups
        files = tuple((fragment.id, fragment.files, fragment.deletion_file) for fragment in fragments)
        key = self.column.path, self.analyser, self.by_element, files
        group = cache.find(key)
        if group is not None:
            return [narrow(rows) for rows in group]
        narrowed: list[AnalysedRows] = []
        whole: list[AnalysedRows] | None = []
        size = 0
        for rows, rest in map_ordered(partial(self._both, narrow), self._batches(fragments), workers=self.workers):
            narrowed.append(rest)
            size += rows.nbytes
            whole = None if whole is None or size > ANALYSED_BYTES // 2 else [*whole, rows]
        if whole is not None:
            cache.put(key, whole)
        return narrowed

    def _both(self, narrow: Narrow, batch: pa.RecordBatch) -> tuple[AnalysedRows, AnalysedRows]:
        rows = self._of(batch.column(1).to_numpy(), batch)
        return rows, narrow(rows)

    def _of(self, addresses: Addresses, batch: pa.RecordBatch) -> AnalysedRows:
        texts = values_below(batch.column(0), self.column.below)
        return AnalysedRows.of(addresses, texts, self.analyser, by_element=self.by_element)

    def _batches(self, fragments: Sequence[Fragment]) -> Iterator[pa.RecordBatch]:
        options = ScanOptions(columns=[self.column.read, ROW_ADDRESS], batch_size=ANALYSED_ROWS)
        plan = plan_scan(self.table.snapshot, options)
        plan = replace(plan, fragments=tuple(fragments), crosses_fragments=True)
        return scan_batches(self.table.snapshot, plan, self.table.columns, self.workers)


class _AnalysedTexts:
    """Cache of texts that earlier queries of a table version analysed."""

    def __init__(self) -> None:
        self.groups: SizedCache[list[AnalysedRows]] = SizedCache(
            ANALYSED_BYTES, lambda group: sum(rows.nbytes for rows in group)
        )

    @property
    def nbytes(self) -> int:
        """Total size of the cached texts, in bytes."""
        return self.groups.nbytes


def _groups(fragments: Sequence[Fragment]) -> Iterator[Sequence[Fragment]]:
    """Split fragments into groups that are analysed and cached together. After an append, most groups are the same."""
    group: list[Fragment] = []
    count = 0
    for fragment in fragments:
        if group and count + fragment.num_rows > ANALYSED_ROWS:
            yield group
            group, count = [], 0
        group.append(fragment)
        count += fragment.num_rows
    if group:
        yield group
