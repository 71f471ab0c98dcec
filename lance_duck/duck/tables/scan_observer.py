"""Observes DuckDB's binds, filter pushdowns and scans, for EXPLAIN."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.scan.predicate.tree import Predicate


@dataclass
class Scan:
    """A completed or running scan.

    Attributes:
        dataset: The dataset.
        columns: Names of the columns read.
        predicate: Condition on the rows, if any.
        rows: Number of rows returned so far.
        batches: Number of batches returned so far.
        seconds: Time spent producing the batches.
        plan: Description of how the rows were found. Defaults to the plan of a scan with these columns and this
            predicate.
    """

    dataset: LanceDataset
    columns: list[str]
    predicate: Predicate | None
    rows: int = 0
    batches: int = 0
    seconds: float = 0.0
    plan: str | None = None

    def counted(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the same stream, and count its rows and batches."""
        return pa.RecordBatchReader.from_batches(reader.schema, self._count(reader))

    def _count(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        began = time.perf_counter()
        for batch in reader:
            self.rows += batch.num_rows
            self.batches += 1
            self.seconds += time.perf_counter() - began
            yield batch
            began = time.perf_counter()
        self.seconds += time.perf_counter() - began


@dataclass
class ScanObserver:
    """DuckDB's requests to Lance tables during one statement.

    Attributes:
        bound: The bound tables, with an entry for each bind.
        offered: (table, predicate, whether the scan applies it) for each condition that DuckDB offered to a scan.
        scans: The scans.
    """

    bound: list[Any] = field(default_factory=list)
    offered: list[tuple[Any, Predicate, bool]] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)


WATCHES: Final[list[ScanObserver]] = []
"""Active observers. They also record scans of other statements that run at the same time."""


@contextmanager
def watching() -> Iterator[ScanObserver]:
    """Observe DuckDB's requests while the context is open."""
    watch = ScanObserver()
    WATCHES.append(watch)
    try:
        yield watch
    finally:
        WATCHES.remove(watch)
