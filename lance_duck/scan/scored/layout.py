"""Result columns of a search: table columns of the matching rows, scores, and expressions on both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator.expressions import evaluate_sql
from lance_duck.scan.projection import HIDDEN, ColumnsLike, Projection, project, readable_schema
from lance_duck.scan.read.take import Taker
from lance_duck.scan.sql.vet import SqlExpression, parse_sql
from lance_duck.wire.schema import Schema

SCORE: Final = "_score"
DOC_INDEX: Final = "_doc_index"
"""Column with the positions that lead to a list element: one in each enclosing list, outermost first. It is part of
full-text results whose documents are list elements."""

_FIELDS: Final = {
    DOC_INDEX: pa.field(DOC_INDEX, pa.list_(pa.field("item", pa.uint32(), nullable=False)), nullable=False)
}

ScoreColumns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class _Expression:
    """An expression on scores and table columns."""

    sql: SqlExpression
    type: pa.DataType


@dataclass(frozen=True, eq=False)
class ScoreLayout:
    """Layout of a result with scores.

    Attributes:
        projection: Columns of the table. The last columns are read only for expressions.
        schema: Columns of the result.
        order: Source of each result column: a position in the projection, the name of a score, or an expression.
        places: Positions, in the projection, of the columns that expressions read.
    """

    projection: Projection
    schema: pa.Schema
    order: tuple[int | str | _Expression, ...]
    places: Mapping[str, int]

    def batch(self, taker: Taker, addresses: NDArray[np.uint64], scores: ScoreColumns) -> pa.RecordBatch:
        """Return the rows at the given addresses, in that order, with their scores by name."""
        if not len(addresses):
            return self._no_rows
        rows = taker.by_address(addresses, self.projection) if self.projection.outputs else None
        arrays: list[pa.Array] = []
        for place in self.order:
            if isinstance(place, str):
                arrays.append(pa.array(scores[place]))
            elif isinstance(place, int):
                assert rows is not None  # only projections with table columns have integer positions
                arrays.append(rows.column(place))
            else:
                arrays.append(self._computed(place, rows, scores, len(addresses)))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @cached_property
    def _no_rows(self) -> pa.RecordBatch:
        columns = self.schema.empty_table().columns
        return pa.RecordBatch.from_arrays([column.chunk(0) for column in columns], schema=self.schema)

    def _computed(self, expression: _Expression, rows: Any, scores: ScoreColumns, count: int) -> pa.Array:
        roots = dict.fromkeys(path[0] for path in expression.sql.paths)
        columns = {root: pa.array(scores[root]) if root in scores else rows.column(self.places[root]) for root in roots}
        result = evaluate_sql(f"{expression.sql.sql} AS value", columns, count, text=expression.sql.text).column(0)
        return result.cast(expression.type).combine_chunks()


def score_layout(
    schema: Schema,
    columns: ColumnsLike | None,
    scores: Sequence[str] = (SCORE,),
    *,
    with_row_id: bool = False,
    with_row_address: bool = False,
    with_scores: bool = True,
) -> ScoreLayout:
    """Resolve the requested columns. See `project`.

    Args:
        schema: Columns of the table.
        columns: Requested columns and expressions, which may include scores. Otherwise, scores are added after them.
        scores: Names of the scores. All are float32, except `DOC_INDEX`.
        with_row_id: Add `_rowid` at the end.
        with_row_address: Add `_rowaddr` at the end.
        with_scores: Whether to add scores if `columns` does not contain them.

    Raises:
        InvalidInputError: A name is unknown or repeated, or a column of the table has the name of a score.
    """
    for name in scores:
        if name in schema.names:
            raise InvalidInputError(f"a search cannot be used on datasets with column {name!r}", remedy="rename it")
    computed, rest = _split(schema, columns, scores)
    count = len(project(schema, rest).outputs)
    plain = project(schema, rest, with_row_id=with_row_id, with_row_address=with_row_address, in_order=False)
    shown = list(plain.outputs)
    order: list[int | str | _Expression] = list(range(count))
    names = [output.field.name for output in shown[:count]]
    for place, (name, what) in sorted(computed.items()):
        if name in names:
            raise InvalidInputError("a column is named twice", found=name)
        order.insert(place, what)
        names.insert(place, name)
    if with_scores or columns is None:
        missing = [name for name in scores if name not in order]
        order += missing
        names += missing
    order += range(count, len(shown))
    names += [output.field.name for output in shown[count:]]
    fields = [
        shown[place].field if isinstance(place, int) else _field_of(place, name)
        for place, name in zip(order, names, strict=True)
    ]
    hidden = _roots(order, scores)
    projection = Projection((*shown, *project(schema, hidden).outputs), plain.metadata)
    places = {root: len(shown) + i for i, root in enumerate(hidden)}
    return ScoreLayout(projection, pa.schema(fields, plain.metadata), tuple(order), places)


def _field_of(place: str | _Expression, name: str) -> pa.Field:
    if isinstance(place, _Expression):
        return pa.field(name, place.type)
    return score_field(place).with_name(name)


def score_field(score: str) -> pa.Field:
    """Return the field of a score, or of `DOC_INDEX`."""
    return _FIELDS.get(score, pa.field(score, pa.float32()))


def _roots(order: Iterable[int | str | _Expression], scores: Sequence[str]) -> list[str]:
    """Return the table columns that expressions read, without duplicates."""
    expressions = [each for each in order if isinstance(each, _Expression)]
    return list(dict.fromkeys(path[0] for each in expressions for path in each.sql.paths if path[0] not in scores))


def _split(
    schema: Schema, columns: ColumnsLike | None, scores: Sequence[str]
) -> tuple[dict[int, tuple[str, str | _Expression]], ColumnsLike | None]:
    """Split columns into computed columns and table columns.

    Computed columns map a position to the name and the score or expression.
    """
    if columns is None:
        return {}, None
    computed: dict[int, tuple[str, str | _Expression]] = {}
    if isinstance(columns, Mapping):
        for place, (output, text) in enumerate(columns.items()):
            made = _made(schema, output, text, scores)
            if made is not None:
                computed[place] = output, made
        return computed, {output: text for i, (output, text) in enumerate(columns.items()) if i not in computed}
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        return {}, columns
    names = list(columns)
    for place, name in enumerate(names):
        if isinstance(name, str) and name in scores:
            if any(name == other for other, _ in computed.values()):
                raise InvalidInputError("a column is named twice", found=name)
            computed[place] = name, name
    return computed, [name for i, name in enumerate(names) if i not in computed]


def _made(schema: Schema, output: Any, text: Any, scores: Sequence[str]) -> str | _Expression | None:
    """Return a column's score or score expression, or None if it does not read scores."""
    if text in scores:
        return str(text)
    if not isinstance(text, str) or text in schema.names or text in HIDDEN:
        return None
    if not any(name in text for name in scores):
        return None
    available = pa.schema([*readable_schema(schema), *map(score_field, scores)])
    parsed = parse_sql(text, available, f"expression of column {output!r}")
    roots = dict.fromkeys(path[0] for path in parsed.paths)
    if not any(name in roots for name in scores):
        return None
    empty = {root: pa.nulls(0, available.field(root).type) for root in roots}
    return _Expression(parsed, evaluate_sql(f"{parsed.sql} AS value", empty, 0, text=text).schema.field(0).type)
