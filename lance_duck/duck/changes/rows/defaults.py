"""DEFAULT of columns, stored in the metadata of their fields and applied by statements that add rows.

    lance-duck:default    SQL expression in DuckDB's normal form, UTF-8

Other programs can write this metadata. A text is therefore checked before it becomes part of a statement: it must be
one expression without subqueries, columns, parameters and aggregates.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import TargetColumn, TargetTable
from lance_duck.duck.prefilter.expression import Expression
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.evaluator.expressions import query
from lance_duck.scan.sql.vet import nodes_of, syntax_tree
from lance_duck.verbs.columns.udf import BatchUDF
from lance_duck.wire.schema import Schema
from lance_duck.write.relations import relation_table

DEFAULT: Final = "lance-duck:default"
"""Field metadata key of a column's DEFAULT."""
_EXPECTED: Final = "one SQL expression without subqueries, columns, parameters and aggregates"
_SEQUENCES: Final = frozenset({"nextval", "currval"})
_NUMBER: Final = "__lance_number"


def stored_defaults(schema: Schema) -> dict[str, str]:
    """Return the stored DEFAULT of columns, by column name. The texts are not checked."""
    return {field.name: field.metadata[DEFAULT] for field in schema.fields if DEFAULT in field.metadata}


def defaults_of(table: TargetTable) -> dict[str, str]:
    """Return `stored_defaults` of a table."""
    return stored_defaults(table.dataset.handle.snapshot.schema)


def left_out(table: TargetTable, columns: Collection[TargetColumn]) -> list[TargetColumn]:
    """Return the columns with a DEFAULT that a statement does not write.

    Args:
        table: The table.
        columns: The columns that the statement writes.
    """
    stored = defaults_of(table)
    return [column for column in table.columns if column.name in stored and column not in columns] if stored else []


def is_default(item: Clauses) -> bool:
    """Return whether a value is the keyword DEFAULT, optionally in parentheses."""
    count = len(item) // 2
    return item.word(count) == "default" and len(item) % 2 == 1 and all(item.text_at(i) == "(" for i in range(count))


def default_values(session: ChangeSession, table: TargetTable, names: Collection[str]) -> dict[str, str]:
    """Return SQL of the DEFAULT of columns that have one, by column name.

    Args:
        session: The statement.
        table: The table.
        names: The columns, with names as in the table.

    Raises:
        InvalidInputError: A stored DEFAULT is damaged, or DuckDB cannot evaluate it.
    """
    stored = defaults_of(table)
    return {
        column.name: _checked(session, table, column, stored[column.name])
        for column in table.columns
        if column.name in stored and column.name in names
    }


def default_value(column: TargetColumn, values: Mapping[str, str]) -> str:
    """Return SQL of a column's DEFAULT, or NULL without one.

    In a SELECT list, it must not follow an alias, because a column named `current_date` would hide the function.

    Args:
        column: The column.
        values: Result of `default_values`.
    """
    return column.value(values.get(column.name, "NULL"))


def with_defaults(
    session: ChangeSession, table: TargetTable, rows: pa.Table, count: int, columns: Sequence[TargetColumn]
) -> pa.Table:
    """Return rows with further columns that have their DEFAULT, or NULL without one.

    Args:
        session: The statement.
        table: The table.
        rows: The rows.
        count: Number of rows.
        columns: The columns to add.
    """
    if not columns:
        return rows
    values = default_values(session, table, {column.name for column in columns})
    selected = ", ".join(default_value(column, values) for column in columns)
    added = session.arrow(f"SELECT {selected} FROM range({count}) AS {_NUMBER}({_NUMBER})", {})  # noqa: S608
    columns_of = dict(zip(rows.column_names, rows.columns, strict=True))
    return pa.table({**columns_of, **{c.name: added.column(i) for i, c in enumerate(columns)}})


def default_column(session: ChangeSession, field: pa.Field, value: str) -> BatchUDF:
    """Return the argument for `add_columns` that sets a new column in every row.

    Args:
        session: The statement.
        field: The column.
        value: SQL of the value. Volatile functions are called for each row.
    """
    expression, schema = Expression.of(value), pa.schema([field])

    def evaluated(count: int) -> pa.Table:
        sql = f"SELECT {value} AS {quoted(field.name)} FROM range({count}) AS {_NUMBER}({_NUMBER})"  # noqa: S608
        return relation_table(session.relation(sql, {}))

    @cache
    def constant() -> pa.Table:
        return evaluated(1)

    def values(batch: pa.RecordBatch) -> pa.RecordBatch:
        if expression is not None and expression.is_independent:
            rows = constant().take(pa.array(np.zeros(batch.num_rows, np.int64)))
        else:
            rows = evaluated(batch.num_rows)
        return pa.RecordBatch.from_arrays([rows.column(0).combine_chunks()], schema=schema)

    return BatchUDF(values, schema)


def refuse_sequences(text: str, where: str) -> None:
    """Reject a new DEFAULT that calls a sequence. Raises UnsupportedError.

    Args:
        text: The expression, or column definitions.
        where: The table or column, for errors.
    """
    if calls_sequence(text):
        raise UnsupportedError(
            "DEFAULT cannot call a sequence, because Lance tables do not keep sequences",
            where=where,
            found=text.strip(),
            remedy="name the number in INSERT, or use uuid() for distinct keys",
        )


def calls_sequence(text: str) -> bool:
    """Return whether an expression calls nextval or currval."""
    tokens = Clauses.of(text)
    return any(
        token.name is not None and folded(token.name) in _SEQUENCES and tokens.text_at(place + 1) == "("
        for place, token in enumerate(tokens.tokens)
    )


def _checked(session: ChangeSession, table: TargetTable, column: TargetColumn, text: str) -> str:
    """Return a stored DEFAULT as SQL of a value."""
    where = f"table {table.name}, column {column.name}"
    remedy = f"ALTER TABLE … ALTER {column.quoted} SET DEFAULT another expression, or DROP DEFAULT"
    try:
        _check_expression(text)
    except InvalidInputError as error:
        raise InvalidInputError(
            "the stored DEFAULT is damaged", where=where, expected=_EXPECTED, found=text, remedy=remedy
        ) from error
    value = f"{text}\n"
    probe = f"SELECT 1 WHERE ({column.value(value)}) IS NULL"  # DuckDB rejects aggregates and UNNEST in WHERE
    if not _binds_anywhere(probe):
        try:
            session.bind(probe, {})
        except (duckdb.BinderException, duckdb.CatalogException) as error:
            raise InvalidInputError(
                f"the DEFAULT {text} cannot be evaluated",
                where=where,
                found=str(error).partition("\n")[0],
                remedy=f"create what is missing, or {remedy}",
            ) from error
    return value


@lru_cache(maxsize=256)
def _check_expression(text: str) -> None:
    """Raise InvalidInputError if a text is not one expression, or contains subqueries, stars or parameters."""
    tree = syntax_tree(text, "DEFAULT")
    if not Clauses.of(text).tokens or any(part["class"] == "PARAMETER" for part in nodes_of(tree)):
        raise InvalidInputError("bad DEFAULT", where=repr(text), found="a comment or a parameter")


@lru_cache(maxsize=256)
def _binds_anywhere(sql: str) -> bool:
    """Return whether a query binds without the objects of a connection, such as macros."""
    try:
        query(f"EXPLAIN {sql}")
    except duckdb.Error:
        return False
    return True
