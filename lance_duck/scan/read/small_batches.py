"""Small batches of a scan, joined before they go out.

A selective filter leaves a few rows of each piece of work, and each batch costs its consumer about 0.1 ms whatever it
holds (`benchmarks/selective.py`). The first row goes out at once, and the next wait for ever more others.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pyarrow as pa

from lance_duck.encoding.arrow.dictionaries import concatenate
from lance_duck.errors import UnsupportedError
from lance_duck.scan.costs import BATCH_GROWTH, ENOUGH_BYTES, ENOUGH_ROWS, WAITING_PIECES

Batches = Generator[pa.RecordBatch, None, None]


def join_batches(
    pieces: Generator[list[pa.RecordBatch], None, None], most_rows: int | None = None, bytes_: int | None = None
) -> Batches:
    """Yield the rows of pieces of work in batches that are worth their overhead, in order.

    Args:
        pieces: The batches that each piece of work gave, none of them empty; closed in the end.
        most_rows: Rows of a batch at most.
        bytes_: Bytes of a batch, about.
    """
    waiting = _Waiting(most_rows, min(bytes_ or ENOUGH_BYTES, ENOUGH_BYTES))
    try:
        for batches in pieces:
            for batch in batches:
                yield from waiting.add(batch)
            yield from waiting.piece_done()
        yield from waiting.all()
    finally:
        pieces.close()


def concatenated(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return one batch with the rows of all, or the batches where their dictionaries do not go together."""
    if len(batches) == 1:
        return batches
    if not batches[0].num_columns:
        return [pa.concat_batches(batches)]
    try:
        columns = [concatenate([batch.column(place) for batch in batches]) for place in range(batches[0].num_columns)]
    except UnsupportedError:
        return batches
    return [pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)]


class _Waiting:
    """Rows that wait for others."""

    def __init__(self, most_rows: int | None, enough_bytes: int) -> None:
        self._most = most_rows
        self._enough_bytes = enough_bytes
        self._enough = ENOUGH_ROWS if most_rows is None else min(most_rows, ENOUGH_ROWS)
        self._target = 1
        self._batches: list[pa.RecordBatch] = []
        self._rows = self._bytes = self._pieces = 0

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch, and yield those that are worth it by now."""
        rows = batch.num_rows
        if not self._batches and self._target <= rows and (self._most is None or rows <= self._most):
            self._target = min(BATCH_GROWTH * self._target, self._enough)
            yield batch
            return
        if batch.num_rows >= ENOUGH_ROWS or batch.nbytes >= self._enough_bytes:
            yield from self.all()  # a large batch is not copied for the sake of a few rows before it
        self._hold(batch)
        if self._rows >= self._target or self._bytes >= self._enough_bytes:
            self._target = min(BATCH_GROWTH * self._target, self._enough)
            yield from self.all(down_to=self._target)

    def piece_done(self) -> Iterator[pa.RecordBatch]:
        """Count a piece of work, and yield what has waited for many."""
        self._pieces += bool(self._batches)
        if self._pieces >= WAITING_PIECES:
            yield from self.all()

    def all(self, down_to: int = 1) -> Iterator[pa.RecordBatch]:
        """Yield all that waits, but for a last batch of fewer rows than `down_to` beside full ones."""
        batches, self._batches = self._batches, []
        self._rows = self._bytes = self._pieces = 0
        for batch in concatenated(batches) if batches else ():
            yield from self._before()
            *full, last = slices(batch, self._most)
            yield from full
            if full and last.num_rows < down_to:
                self._hold(last)
            else:
                yield last

    def _before(self) -> Iterator[pa.RecordBatch]:
        """Yield what waits of a batch before."""
        yield from self._batches
        self._batches = []
        self._rows = self._bytes = 0

    def _hold(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes


def slices(batch: pa.RecordBatch, rows: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch, so many at most at once."""
    if rows is None or batch.num_rows <= rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)
