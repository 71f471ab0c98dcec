"""Rows as an answer: bounded in rows, columns and characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.mcp.answers import CutCounts, ShownRows, ToolColumn
from lance_duck.serve.mcp.texts import (
    LONGEST_ANSWER,
    LONGEST_CELL,
    cut_text,
    first_fitting,
    json_size,
    shown_cell,
)

_LONGEST_NAMES: Final = 15_000
"""Length of all column names and types, in characters."""
LONGEST_NAME: Final = 200
"""Length of a column name or type, in characters."""
_SPARE: Final = 1000
"""Length of the other fields of an answer, in characters."""


def shown_rows(schema: pa.Schema, batches: Iterable[pa.RecordBatch], max_rows: int) -> ShownRows:
    """Return rows as an answer of at most `LONGEST_ANSWER` characters.

    Args:
        schema: Schema of the batches.
        batches: The rows. They are read until the answer is full.
        max_rows: Maximum number of rows.
    """
    cuts = CutCounts()
    names = (ToolColumn(name=field.name[:LONGEST_NAME], type=shown_type(field.type)) for field in schema)
    columns, cuts.columns = first_fitting(names, _LONGEST_NAMES, lambda column: json_size(column.model_dump()))
    budget = LONGEST_ANSWER - _SPARE - json_size([column.model_dump() for column in columns])
    limit = min(LONGEST_CELL, budget // (2 * max(len(columns), 1)))
    rows: list[list[Any]] = []
    used, truncated = 0, False
    for cells in _each_row(batches, len(columns)):
        row = [shown_cell(cell, cuts, limit) for cell in cells]
        used += json_size(row)
        truncated = len(rows) >= max_rows or used > budget
        if truncated:
            break
        rows.append(row)
    return ShownRows(columns=columns, rows=rows, truncated=truncated, cut=cuts if any(vars(cuts).values()) else None)


def limited_rows(call: ServerCall, schema: pa.Schema, batches: Iterable[pa.RecordBatch], max_rows: int) -> ShownRows:
    """Return rows as `shown_rows` does, under the limits of a call."""
    settings = call.settings
    limited = call.limited(batches, max_rows=settings.max_rows, max_bytes=settings.max_bytes)
    return shown_rows(schema, limited, max_rows)


def shown_type(type_: pa.DataType) -> str:
    """Return the name of a type, shortened."""
    return cut_text(str(type_), LONGEST_NAME)


def _each_row(batches: Iterable[pa.RecordBatch], width: int) -> Iterator[list[pa.Scalar]]:
    for batch in batches:
        columns = batch.columns[:width]
        yield from ([column[number] for column in columns] for number in range(batch.num_rows))
