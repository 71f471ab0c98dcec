"""Joins the small batches of a scan.

After a selective filter, few rows of each task remain. However, each batch takes about 0.1 ms in its consumer,
regardless of its size (`benchmarks/selective.py`). The first rows are yielded immediately. Later batches are joined
until they reach a target size, which grows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pyarrow as pa

from lance_duck.encoding.arrow.dictionaries import concatenate
from lance_duck.errors import ArrayLimitError
from lance_duck.scan.costs import GROWTH, SMALL_BATCH_BYTES, SMALL_BATCH_ROWS

Batches = Generator[pa.RecordBatch, None, None]


def join_batches(
    pieces: Generator[list[pa.RecordBatch], None, None], most_rows: int | None = None, bytes_: int | None = None
) -> Batches:
    """Yield the rows of tasks, in order, in batches that are large enough to justify their overhead.

    Args:
        pieces: The non-empty batches of each task. The iterator is closed at the end.
        most_rows: Maximum number of rows per batch.
        bytes_: Approximate batch size, in bytes.
    """
    waiting = _WaitingRows(most_rows, min(bytes_ or SMALL_BATCH_BYTES, SMALL_BATCH_BYTES))
    try:
        for batches in pieces:
            for batch in batches:
                yield from waiting.add(batch)
        yield from waiting.all()
    finally:
        pieces.close()


def concatenated(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return one batch with all rows, or the unchanged batches if one array cannot hold a column."""
    if len(batches) == 1:
        return batches
    if not batches[0].num_columns:
        return [pa.concat_batches(batches)]
    try:
        columns = [concatenate([batch.column(place) for batch in batches]) for place in range(batches[0].num_columns)]
    except ArrayLimitError:
        return batches
    return [pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)]


class _WaitingRows:
    """Collected batches that are too small to yield."""

    def __init__(self, most_rows: int | None, enough_bytes: int) -> None:
        self._most = most_rows
        self._enough_bytes = enough_bytes
        self._enough = SMALL_BATCH_ROWS if most_rows is None else min(most_rows, SMALL_BATCH_ROWS)
        self._target = 1
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add a batch, and yield batches that are now large enough."""
        rows = batch.num_rows
        if not self._batches and self._target <= rows and (self._most is None or rows <= self._most):
            self._target = min(GROWTH * self._target, self._enough)
            yield batch
            return
        if batch.num_rows >= SMALL_BATCH_ROWS or batch.nbytes >= self._enough_bytes:
            yield from self.all()  # a large batch is not copied only to join a few earlier rows
        self._hold(batch)
        if self._rows >= self._target or self._bytes >= self._enough_bytes:
            self._target = min(GROWTH * self._target, self._enough)
            yield from self.all(down_to=self._target)

    def all(self, down_to: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield all waiting rows. If fewer than `down_to` rows remain after full batches, they continue to wait."""
        batches, self._batches = self._batches, []
        self._rows = self._bytes = 0
        for batch in concatenated(batches) if batches else ():
            yield from self._before()
            *full, last = slices(batch, self._most)
            yield from full
            if full and last.num_rows < down_to:
                self._hold(last)
            else:
                yield last

    def _before(self) -> Iterator[pa.RecordBatch]:
        """Yield the waiting rows of the previous batch."""
        yield from self._batches
        self._batches = []
        self._rows = self._bytes = 0

    def _hold(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes


def slices(batch: pa.RecordBatch, rows: int | None) -> Iterator[pa.RecordBatch]:
    """Yield slices of at most `rows` rows. None yields the whole batch."""
    if rows is None or batch.num_rows <= rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
