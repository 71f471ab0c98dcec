"""Takes and combines rows of tables, including columns that one array cannot hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.limits import OVERFLOW, array_limit, check_limit, in_halves
from lance_duck.encoding.arrow.dictionaries import concatenate, holds_dictionaries
from lance_duck.errors import ArrayLimitError

Rows = NDArray[np.integer[Any]]


def take_rows(table: pa.Table, rows: Rows) -> pa.Table:
    """Return rows by position, in any order, possibly repeated. Uses several chunks if one array cannot hold them.

    Raises:
        ArrayLimitError: A single row is too large for an array.
    """
    try:
        return _take(table, rows)
    except ArrayLimitError:
        batches = in_halves(lambda start, stop: [_gather(table, rows[start:stop])], 0, len(rows))
        return pa.Table.from_batches(batches, table.schema)


def as_batches(table: pa.Table) -> list[pa.RecordBatch]:
    """Return the rows of a table as one batch, or as several if one array cannot hold a column.

    Raises:
        ArrayLimitError: A single row is too large for an array.
    """
    return in_halves(lambda start, stop: [_joined(table.slice(start, stop - start))], 0, table.num_rows)


def combined(table: pa.Table) -> pa.Table:
    """Return a table with one chunk for each column, or several if one chunk cannot hold a column."""
    return pa.Table.from_batches(as_batches(table), table.schema)


def _joined(table: pa.Table) -> pa.RecordBatch:
    columns = [concatenate(c.chunks) if c.num_chunks else pa.nulls(0, c.type) for c in table.columns]
    if not columns:
        return table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=table.schema)
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _take(table: pa.Table, rows: Rows) -> pa.Table:
    for place, column in enumerate(table.columns):
        if column.num_chunks > 1 and holds_dictionaries(column.type):
            table = table.set_column(place, table.field(place), concatenate(column.chunks))
    try:
        taken = table.take(pa.array(rows))
    except OVERFLOW as error:
        raise array_limit(error) from error
    for column in taken.columns:
        for chunk in column.chunks:
            check_limit(chunk)
    return taken


def _gather(table: pa.Table, rows: Rows) -> pa.RecordBatch:
    """Return rows as one batch, taking each chunk separately."""
    return pa.RecordBatch.from_arrays([_of_chunks(column, rows) for column in table.columns], schema=table.schema)


def _of_chunks(column: pa.ChunkedArray, rows: Rows) -> pa.Array:
    if not len(rows):
        return pa.nulls(0, column.type)
    ends = np.cumsum([len(chunk) for chunk in column.chunks])
    owners = np.searchsorted(ends, rows, side="right")
    order = np.argsort(owners, kind="stable")
    owners, ascending = owners[order], rows[order]
    cuts = np.flatnonzero(np.diff(owners)) + 1
    pieces = []
    for part in np.split(np.arange(len(rows)), cuts):
        owner = int(owners[part[0]])
        first = int(ends[owner]) - len(column.chunk(owner))
        pieces.append(_picked(column.chunk(owner), ascending[part] - first))
    back = np.empty(len(rows), np.int64)
    back[order] = np.arange(len(rows))
    return _picked(concatenate(pieces), back)


def _picked(array: pa.Array, rows: Rows) -> pa.Array:
    try:
        return check_limit(array.take(pa.array(rows)))
    except OVERFLOW as error:
        raise array_limit(error) from error
