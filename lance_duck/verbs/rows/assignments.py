"""New column values as SQL expressions, evaluated on batches of the table and cast to the column types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arguments import unknown_column
from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator.errors import BATCH
from lance_duck.scan.evaluator.expressions import duckdb_type, evaluate_sql, select_columns
from lance_duck.scan.predicate.tree import Path
from lance_duck.scan.projection import ROW_ADDRESS, readable_schema
from lance_duck.scan.sql.vet import SqlExpression, parse_sql
from lance_duck.scan.subquery import has_subquery, values_of
from lance_duck.scan.table_scan import TableScan
from lance_duck.wire.schema import Field, Schema

_TYPED_TEXT: Final = re.compile(r'\b(timestamp|date|time)\s+"([^"]*)"', re.IGNORECASE)
_WHOLE: Final = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|BOOLEAN")
_APPROXIMATE: Final = re.compile(r"FLOAT|DOUBLE|DECIMAL\(.*\)|VARCHAR")


@dataclass(frozen=True)
class Assignment:
    """A column and the expression for its new values.

    Attributes:
        field: The column.
        text: The user's expression.
        parsed: The validated expression. None if it has subqueries and is evaluated on the whole table.
    """

    field: Field
    text: str
    parsed: SqlExpression | None

    @property
    def expression(self) -> SqlExpression:
        """The validated expression. Only for expressions without subqueries."""
        assert self.parsed is not None
        return self.parsed

    @cached_property
    def type(self) -> pa.DataType:
        """Arrow type of the values. Blobs are binary."""
        type_ = self.field.with_blob_bytes().arrow_type
        if isinstance(type_, pa.BaseExtensionType):
            type_ = type_.storage_type
        return type_.value_type if pa.types.is_dictionary(type_) else type_

    @cached_property
    def sql_type(self) -> str:
        """DuckDB type name of the values."""
        return _sql_type(duckdb_type(self.type, self.field.name))

    @cached_property
    def value(self) -> str:
        """SQL of the new values. Durations are in microseconds."""
        cast = f"CAST({self.expression.sql} AS {self.sql_type})"
        return f"epoch_us({cast})" if pa.types.is_duration(self.type) else cast

    @cached_property
    def loss(self) -> str | None:
        """SQL that is true if the cast loses a significant part of the value. None if no value loses a part."""
        type_, cast = self.expression.type, f"CAST({self.expression.sql} AS {self.sql_type})"
        if _WHOLE.fullmatch(self.sql_type) and self.sql_type != "BOOLEAN" and _APPROXIMATE.fullmatch(type_):
            number = f"TRY_CAST({self.expression.sql} AS DOUBLE)"
            return f"{number} IS NOT NULL AND trunc({number}) <> {number}"
        if self.sql_type == "DATE" and type_.startswith("TIMESTAMP"):
            return f"{self.expression.sql} IS DISTINCT FROM CAST({cast} AS {type_})"
        return None


class Assignments:
    """The new values of an update.

    Args:
        schema: Schema of the table.
        updates: SQL expressions by column name.

    Raises:
        InvalidInputError: A column is unknown, an expression is invalid, or `updates` is empty.
    """

    def __init__(self, schema: Schema, updates: Mapping[str, str]) -> None:
        if not isinstance(updates, Mapping) or not updates:
            raise InvalidInputError(
                "no updates", where="update", expected="a dict of SQL expressions by column", found=repr(updates)
            )
        available = readable_schema(schema)
        self.columns: list[Assignment] = []
        self._looked_up: dict[str, tuple[NDArray[np.uint64], pa.ChunkedArray]] = {}
        for name, text in updates.items():
            if name not in schema.names:
                raise unknown_column(name, schema.names, "update")
            if not isinstance(text, str):
                raise InvalidInputError(
                    f"the new value of column {name!r} is not a string",
                    expected="an SQL expression",
                    found=type(text).__name__,
                )
            text = _TYPED_TEXT.sub(r"\1 '\2'", text)
            expression = None if has_subquery(text) else _parsed(text, available, f"new value of column {name!r}")
            field = next(field for field in schema.fields if field.name == name)
            self.columns.append(Assignment(field, text, expression))

    @property
    def names(self) -> list[str]:
        """Names of the updated columns."""
        return [assignment.field.name for assignment in self.columns]

    @cached_property
    def _plain(self) -> list[Assignment]:
        return [column for column in self.columns if column.parsed is not None]

    def over(self, table: TableScan) -> None:
        """Evaluate the expressions with subqueries on a table. `values` then looks up the results.

        Raises:
            InvalidInputError: DuckDB rejects an expression, or fails on a value.
        """
        for column in self.columns:
            if column.parsed is None:
                self._looked_up[column.field.name] = values_of(table, column.text, column.sql_type)

    @cached_property
    def reads(self) -> list[str]:
        """Names of the top-level columns that the expressions read, including hidden columns."""
        paths: list[Path] = [path for column in self._plain for path in column.expression.paths]
        return list(dict.fromkeys(path[0] for path in paths))

    def values(self, columns: Mapping[str, pa.Array], num_rows: int) -> dict[str, pa.ChunkedArray]:
        """Return the new values by column.

        Args:
            columns: Columns by name. They must include all columns in `reads`, and `_rowaddr`.
            num_rows: Row count of the batch.

        Raises:
            InvalidInputError: An expression fails on a value, or a value does not fit its column.
        """
        row_addresses = columns[ROW_ADDRESS].to_numpy()
        looked_up = {
            name: values.take(pa.array(np.searchsorted(addresses, row_addresses)))
            for name, (addresses, values) in self._looked_up.items()
        }
        if not self._plain:
            return looked_up
        parts = []
        for i, column in enumerate(self._plain):
            parts.append(f"{column.value} AS v{i}")
            if column.loss is not None:
                parts.append(f"{column.loss} AS x{i}")
        inputs = {name: columns[name] for name in self.reads}
        answer = self._evaluate(", ".join(parts), inputs, num_rows)
        for i, column in enumerate(self._plain):
            if column.loss is not None:
                _refuse_loss(column, answer.column(f"x{i}"))
            values = answer.column(f"v{i}")
            is_duration = pa.types.is_duration(column.type)
            looked_up[column.field.name] = values.cast(pa.duration("us")) if is_duration else values
        return looked_up

    def _evaluate(self, select: str, columns: Mapping[str, pa.Array], num_rows: int) -> pa.Table:
        try:
            return evaluate_sql(select, columns, num_rows)
        except InvalidInputError as error:
            texts = ", ".join(f"{c.field.name} = {c.text}" for c in self._plain)
            raise InvalidInputError("new values cannot be computed", where=texts, found=error.found) from error


def _parsed(text: str, schema: pa.Schema, what: str) -> SqlExpression:
    try:
        return _parsed_before(text, schema, what)
    except TypeError:  # an extension type of a different library that is not hashable, such as pylance's bfloat16
        return parse_sql(text, schema, what)


@lru_cache(maxsize=256)
def _parsed_before(text: str, schema: pa.Schema, what: str) -> SqlExpression:
    return parse_sql(text, schema, what)


@lru_cache(maxsize=256)
def _sql_type(type_: pa.DataType) -> str:
    return str(select_columns(f"c FROM {BATCH}", {"c": pa.nulls(0, type_)})[0][1])


def _refuse_loss(column: Assignment, lossy: pa.ChunkedArray) -> None:
    place = lossy.index(True).as_py()
    if place >= 0:
        raise InvalidInputError(
            f"the new value does not fit column {column.field.name!r}",
            expected=column.type,
            found=f"{column.expression.text} of type {column.expression.type}, which would lose digits",
            remedy="round or cast the value",
        )
