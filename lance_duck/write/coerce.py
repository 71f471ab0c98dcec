"""Converts batches to the schema of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lance_duck.errors import ArrayLimitError, InvalidInputError, LanceDuckError
from lance_duck.file.write.nulls import check_nulls
from lance_duck.wire.schema import Field, Schema
from lance_duck.write.casts import find_cast, match_names
from lance_duck.write.options import Jsonb
from lance_duck.write.plain_casts import Cast, with_row

MOST_PARTS: Final = 16
"""Maximum number of parts into which a batch is split if one array cannot hold a column. Each part may start a new data
file."""


def coerce(batches: Iterable[pa.RecordBatch], schema: Schema, jsonb: Jsonb = Jsonb.TEXT) -> Iterator[pa.RecordBatch]:
    """Yield batches with the columns of a table, in its order and storage types. Empty batches are skipped.

    Columns are matched by name, in any order. A missing nullable column is filled with nulls. Types are cast only if no
    value changes: see `write.casts`.

    Args:
        batches: A RecordBatchReader, or any batches.
        schema: Schema of the table.
        jsonb: How to treat JSON in binary form. If JSON stays in binary form, its columns have the type large_binary.

    Raises:
        InvalidInputError: A column is unknown, occurs twice or has an incompatible type. A value does not fit, a null
            is not allowed, or a vector has the wrong length: the message names the row. Batches are corrupt, or differ
            from the schema that their stream declares.
        ArrayLimitError: A batch has far more distinct values than a dictionary can index.
    """
    declared = batches.schema if isinstance(batches, pa.RecordBatchReader) else None
    plan: _Plan | None = None
    first_row = 0
    for batch in _guarded(batches):
        if not isinstance(batch, pa.RecordBatch):
            raise InvalidInputError("not a batch", where="data", found=type(batch).__name__)
        if plan is None or not batch.schema.equals(plan.source):
            if declared is not None and not batch.schema.equals(declared):
                raise InvalidInputError(
                    "the batch does not have the declared schema of its stream",
                    where=f"data, row {first_row}",
                    expected=_short(declared),
                    found=_short(batch.schema),
                )
            plan = _plan(batch.schema, schema, jsonb)
        if batch.num_rows:
            yield from _applied(plan, batch, first_row, MOST_PARTS)
        first_row += batch.num_rows
    if plan is None and declared is not None:
        _plan(declared, schema)


def _applied(plan: _Plan, batch: pa.RecordBatch, first_row: int, parts: int) -> list[pa.RecordBatch]:
    """Cast a batch to the schema of the table. If it is too large for one array, it becomes up to `parts` batches."""
    try:
        return [plan.apply(batch, first_row)]
    except ArrayLimitError as error:
        if parts < 2 or batch.num_rows < 2:
            error.where = f"{error.where or 'data'}, rows from {first_row}"
            raise
    half = batch.num_rows // 2
    head = _applied(plan, batch.slice(0, half), first_row, parts // 2)
    return head + _applied(plan, batch.slice(half), first_row + half, parts // 2)


def check_fits(source: pa.Schema, schema: Schema) -> None:
    """Check that the names and types of data fit a table, before any data is read.

    Raises:
        InvalidInputError: `coerce` would reject the schema.
    """
    _plan(source, schema)


@dataclass(frozen=True, slots=True)
class _TargetColumn:
    field: Field
    place: int | None
    cast: Cast | None

    def apply(self, batch: pa.RecordBatch) -> pa.Array:
        if self.place is None:
            return pa.nulls(batch.num_rows, self.field.storage_type)
        array = batch.column(self.place)
        return array if self.cast is None else self.cast(array)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The casts that convert batches of one schema to the schema of a table."""

    source: pa.Schema
    columns: tuple[_TargetColumn, ...]

    def apply(self, batch: pa.RecordBatch, first_row: int) -> pa.RecordBatch:
        if not self.columns:
            raise InvalidInputError(
                "the data has rows but no columns", where=f"data, row {first_row}", found=batch.num_rows
            )
        try:
            batch.validate(full=True)
            arrays = [column.apply(batch) for column in self.columns]
            for column, array in zip(self.columns, arrays, strict=True):
                check_nulls(array, column.field)
        except InvalidInputError as error:
            raise with_row(error, lambda row: row + first_row) from error
        except pa.ArrowException as error:
            where = f"{_broken_column(batch)}, batch from row {first_row} on"
            raise InvalidInputError("the batch is invalid", where=where, found=error) from error
        return pa.RecordBatch.from_arrays(arrays, names=[column.field.name for column in self.columns])


def _broken_column(batch: pa.RecordBatch) -> str:
    """Describe the first column with invalid buffers, for messages. Returns "data" if all are valid."""
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        try:
            array.validate(full=True)
        except pa.ArrowException:
            return f"column {name!r}"
    return "data"


def _plan(source: pa.Schema, schema: Schema, jsonb: Jsonb = Jsonb.TEXT) -> _Plan:
    places = match_names(source.names, schema.fields, None)
    columns = []
    for place, field in zip(places, schema.fields, strict=True):
        cast = None if place is None else find_cast(source.field(place).type, field, f"column {field.name!r}", jsonb)
        columns.append(_TargetColumn(field, place, cast))
    return _Plan(source, tuple(columns))


def _guarded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and re-raise pyarrow errors as InvalidInputError."""
    try:
        yield from batches
    except pa.ArrowException as error:
        if isinstance(error, LanceDuckError):
            raise
        raise InvalidInputError("the data cannot be read", where="data", found=error) from error


def _short(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name}: {f.type}" for f in schema)
