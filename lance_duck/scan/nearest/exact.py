"""Exact search: every vector that a plan has is compared with the queries, block by block, in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.rows import row_addresses
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.arrays import descend
from lance_duck.scan.bounds import Bounds
from lance_duck.scan.choices import Choices
from lance_duck.scan.filters import Filter
from lance_duck.scan.fragment_reader import ColumnCache, FragmentReader
from lance_duck.scan.nearest.best import Best, Found
from lance_duck.scan.nearest.blocks import block_of
from lance_duck.scan.nearest.compare import Question
from lance_duck.scan.nearest.options import VectorColumn
from lance_duck.scan.ordered import map_ordered
from lance_duck.scan.parts import parts_of
from lance_duck.scan.plan import ScanPlan, Sizer
from lance_duck.scan.projection import ROW_ADDRESS, Projection, Read, project, reads
from lance_duck.scan.tasks import Readers, Task, cut_tasks
from lance_duck.snapshot import Snapshot
from lance_duck.store.request import run

BLOCK_BYTES: Final = 8 << 20


@dataclass(frozen=True, eq=False)
class Exact:
    """Compares the vectors of a column.

    Attributes:
        snapshot: The version of the table.
        columns: Column readers to use again.
        column: The vectors.
        workers: Threads; None: one for each core.
    """

    snapshot: Snapshot
    columns: ColumnCache
    column: VectorColumn
    workers: int | None = None

    def search(self, plan: ScanPlan, question: Question) -> Found:
        """The nearest rows of those that live and pass the filter of a plan, which reads `vector_projection`.

        Limit and offset of the plan do not count.
        """
        best = Best(len(question.queries), question.k)
        plan = replace(plan, limit=None, offset=0)
        whole = plan.filter is None and plan.choices is None

        look: Callable[[Any], Found] = partial(self._range if whole else self._task, question=question, best=best)
        pieces: Iterator[Any] = self._ranges(plan) if whole else self._tasks(plan)
        for found in map_ordered(look, pieces, workers=self.workers):
            best.add(found)
        return best.found()

    def again(self, plan: ScanPlan, question: Question, found: Found) -> Found:
        """Distances of rows that were found some other way, from their vectors, and the k nearest of each query."""
        best = Best(len(question.queries), question.k)
        order = np.argsort(found.addresses, kind="stable")
        addresses, queries = found.addresses[order], found.queries[order]
        rows = chosen(plan, RowSet.of(np.unique(addresses)))
        for task in self._tasks(rows):
            for batch in task.read():
                mine = batch.column(1).to_numpy()
                low = np.searchsorted(addresses, mine, "left")
                counts = np.searchsorted(addresses, mine, "right") - low
                places = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
                which = np.ascontiguousarray(queries[places])
                block = block_of(batch.column(0), self.column)
                distances = question.distances(block, np.repeat(np.arange(len(mine)), counts), which)
                pairs = Found(which, distances, addresses[places])
                best.add(pairs.where(np.isfinite(distances)))
        return best.found()

    def _ranges(self, plan: ScanPlan) -> Iterator[tuple[FragmentReader, Read, int, int]]:
        (read,) = reads(plan.schema, [self.column.names], dict(plan.arrow_types))
        step = max(1024, BLOCK_BYTES // (self.column.dim * self.column.dtype.itemsize))
        for fragment in plan.fragments:
            reader = FragmentReader(self.snapshot, fragment, self.columns)
            for start in range(0, reader.num_rows, step):
                yield reader, read, start, min(start + step, reader.num_rows)

    def _range(self, piece: tuple[FragmentReader, Read, int, int], question: Question, best: Best) -> Found:
        reader, read, start, stop = piece
        deletions = reader.deletions
        living: NDArray[np.int64] | None = None
        if deletions is not None and deletions.count_in(start, stop):
            living = deletions.live_offsets(start, stop)
        columns = run(reader.read([read], slice(start, stop)))
        array = descend(columns[read.name], self.column.names[1:])
        block = block_of(array, self.column)
        if living is not None:
            there = np.zeros(stop - start, np.bool_)
            there[living - start] = True
            block = replace(block, there=there if block.there is None else there & block.there)
        addresses = row_addresses(reader.fragment.id, np.arange(start, stop, dtype=np.int64))
        return question.near(block, addresses, best.limits)

    def _tasks(self, plan: ScanPlan) -> Iterator[Task]:
        readers = Readers(self.snapshot, plan, self.columns)
        return cut_tasks(readers, Sizer(plan.width, filtered=plan.filter_width))

    def _task(self, task: Task, question: Question, best: Best) -> Found:
        own = Best(len(question.queries), question.k)
        for batch in task.read():
            block = block_of(batch.column(0), self.column)
            limits = np.minimum(best.limits, own.limits)
            own.add(question.near(block, batch.column(1).to_numpy(), limits))
        return own.found()


def vector_projection(plan: ScanPlan, column: VectorColumn) -> Projection:
    """The vectors, and the addresses of their rows."""
    return project(plan.schema, [column.path, ROW_ADDRESS], arrow_types=dict(plan.arrow_types))


def chosen(plan: ScanPlan, rows: RowSet, filter_: Filter | None = None) -> ScanPlan:
    """The plan of the given rows, deleted ones among them or not, that pass a filter."""
    if filter_ is None:
        return replace(plan, filter=None, choices=Choices((), [Bounds(rows, rows, plan.fragment_ids)]))
    bounds = Bounds(RowSet({}), rows, plan.fragment_ids)
    parts = parts_of(filter_)
    return replace(plan, filter=filter_, choices=Choices(parts, [bounds] * len(parts)))
