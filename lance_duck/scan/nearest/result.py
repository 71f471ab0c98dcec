"""Builds the result of a search: table columns of the rows that were found, and their distances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lance_duck.errors import InvalidInputError
from lance_duck.scan.nearest.best import Neighbours
from lance_duck.scan.projection import ColumnsLike, Projection, project
from lance_duck.scan.read.take import Taker
from lance_duck.wire.schema import Schema

DISTANCE: Final = "_distance"
QUERY: Final = "query_index"

_FIELDS: Final = {
    DISTANCE: pa.field(DISTANCE, pa.float32()),
    QUERY: pa.field(QUERY, pa.int32(), nullable=False),
}


@dataclass(frozen=True, eq=False)
class ResultLayout:
    """Layout of the result of a search.

    Attributes:
        projection: Columns of the table.
        schema: Columns of the result.
        order: Source of each result column: its position in the projection, `DISTANCE` or `QUERY`.
    """

    projection: Projection
    schema: pa.Schema
    order: tuple[int | str, ...]

    def batch(self, taker: Taker, neighbours: Neighbours) -> pa.RecordBatch:
        """Return the rows of the neighbours with their distances, in the order of `neighbours`."""
        rows = taker.by_address(neighbours.addresses, self.projection) if self.projection.outputs else None
        arrays: list[pa.Array] = []
        for place in self.order:
            if isinstance(place, str):
                distances = place == DISTANCE
                arrays.append(pa.array(neighbours.distances) if distances else pa.array(neighbours.queries, pa.int32()))
            elif rows is not None:
                arrays.append(rows.column(place))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def layout(
    schema: Schema,
    columns: ColumnsLike | None,
    *,
    is_batch: bool,
    with_row_id: bool = False,
    with_row_address: bool = False,
    with_distance: bool = True,
) -> ResultLayout:
    """Resolve the requested columns. See `project`.

    Args:
        schema: Columns of the table.
        columns: Requested columns, which may include `_distance`. Otherwise, `_distance` is added after them.
        is_batch: Whether to add `query_index` as the first column.
        with_row_id: Add `_rowid` at the end.
        with_row_address: Add `_rowaddr` at the end.
        with_distance: Whether to add `_distance` if `columns` does not contain it.

    Raises:
        InvalidInputError: A name is unknown or repeated, or the table has a column named `_distance` or `query_index`.
    """
    for name in (DISTANCE, QUERY) if is_batch else (DISTANCE,):
        if name in schema.names:
            raise InvalidInputError(
                f"nearest neighbor search cannot be used on datasets with column {name!r}",
                remedy="rename the column",
            )
    computed, rest = _split(schema, columns)
    count = len(project(schema, rest).outputs)
    projection = project(schema, rest, with_row_id=with_row_id, with_row_address=with_row_address, in_order=False)
    order: list[int | str] = list(range(count))
    fields = [output.field for output in projection.outputs]
    names: dict[str, str] = {}
    for place, (name, name_shown) in sorted(computed.items()):
        order.insert(place, name)
        names[name] = name_shown
    if DISTANCE not in names and (with_distance or columns is None):
        order.append(DISTANCE)
    order += range(count, len(fields))
    order = [QUERY, *(place for place in order if place != QUERY)] if is_batch else order
    shown_fields = [_FIELDS[p].with_name(names.get(p, p)) if isinstance(p, str) else fields[p] for p in order]
    return ResultLayout(projection, pa.schema(shown_fields, projection.metadata), tuple(order))


def _split(schema: Schema, columns: ColumnsLike | None) -> tuple[dict[int, tuple[str, str]], ColumnsLike | None]:
    """Split columns into computed columns and table columns. Computed columns map a position to (name, output name)."""
    if columns is None:
        return {}, None
    computed: dict[int, tuple[str, str]] = {}
    if isinstance(columns, Mapping):
        for place, (output, text) in enumerate(columns.items()):
            if text in _FIELDS and text not in schema.names:
                computed[place] = text, output
        return computed, {output: text for i, (output, text) in enumerate(columns.items()) if i not in computed}
    if isinstance(columns, str | bytes):
        return {}, columns
    names = list(columns)
    for place, name in enumerate(names):
        if isinstance(name, str) and name in _FIELDS and name not in schema.names:
            if any(name == other for other, _ in computed.values()):
                raise InvalidInputError("a column is named twice", found=name)
            computed[place] = name, name
    return computed, [name for i, name in enumerate(names) if i not in computed]
