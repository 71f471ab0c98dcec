"""Assembles batches from columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_duck import lazy
from lance_duck.encoding.arrow.dictionaries import compact_dictionaries, concatenate
from lance_duck.scan.evaluator.types import Columns
from lance_duck.scan.predicate.arrays import descend
from lance_duck.scan.projection import Output, Projection

if TYPE_CHECKING:
    from lance_duck.scan.evaluator import expressions
else:
    expressions = lazy.modules(globals(), "lance_duck.scan.evaluator", "expressions")


def assemble(projection: Projection, columns: Columns, num_rows: int) -> pa.RecordBatch:
    """Assemble a batch with the columns of a projection. Its dictionaries do not have more entries than rows.

    Args:
        projection: Columns of the result.
        columns: Top-level columns by name, including hidden columns. Structs contain at least the fields of the
            projection.
        num_rows: Number of rows in the batch.

    Raises:
        InvalidInputError: DuckDB fails on a value of an SQL expression.
    """
    computed = _compute([output for output in projection.outputs if output.expression], columns, num_rows)
    arrays = [
        descend(columns[output.path[0]], output.path[1:]) if output.path else computed[output.field.name]
        for output in projection.outputs
    ]
    for place in projection.dictionaries:
        arrays[place] = compact_dictionaries(arrays[place])
    if not arrays:
        return rows_only(num_rows).replace_schema_metadata(projection.schema.metadata)
    return pa.RecordBatch.from_arrays(arrays, schema=projection.schema)


def rows_only(num_rows: int) -> pa.RecordBatch:
    """Return a batch without columns."""
    return pa.record_batch({"none": pa.nulls(num_rows)}).select([])


def _compute(outputs: list[Output], columns: Columns, num_rows: int) -> dict[str, pa.Array]:
    if not outputs:
        return {}
    roots = dict.fromkeys(path[0] for output in outputs for path in output.paths)
    select = ", ".join(f"{output.expression.sql} AS c{i}" for i, output in enumerate(outputs) if output.expression)
    text = ", ".join(output.expression.text for output in outputs if output.expression)
    table = expressions.evaluate_sql(select, {root: columns[root] for root in roots}, num_rows, text=text)
    return {output.field.name: _one_chunk(table.column(i), output.field.type) for i, output in enumerate(outputs)}


def _one_chunk(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    column = column if column.type == type_ else column.cast(type_)
    return concatenate(column.chunks or [pa.nulls(0, type_)])
