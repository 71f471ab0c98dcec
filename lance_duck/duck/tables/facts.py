"""Generates SQL that returns facts about a table: settings, metadata and indexes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from lance_duck.arguments import unknown_value
from lance_duck.dataset import LanceDataset
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.verbs.indexes.rows import column_path

INDEX_COLUMNS: Final[Mapping[str, str]] = {
    "index_name": "VARCHAR",
    "index_type": "VARCHAR",
    "fields": "VARCHAR",
    "rows_indexed": "UBIGINT",
    "details": "VARCHAR",
}
"""Columns of the index list, as in DuckDB's `lance` extension, with their DuckDB types."""

_PAIRS: Final[Mapping[str, str]] = {"Key": "VARCHAR", "Value": "VARCHAR"}
Rows = Sequence[Sequence[Any]]


def indexes(dataset: LanceDataset, column: str | None = None) -> Rows:
    """Return the values of `INDEX_COLUMNS` for each index, ordered by name."""
    return [
        (
            index.name,
            index.index_type,
            ", ".join(index.field_names),
            index.num_rows_indexed,
            json.dumps(index.details, default=str) if index.details else None,
        )
        for index in dataset.describe_indices()
    ]


def rows_as_sql(columns: Mapping[str, str], rows: Rows) -> str:
    """Return a SELECT that returns rows of strings and integers.

    Args:
        columns: DuckDB types of the columns, by name.
        rows: Values in column order.
    """
    values = rows or [[None] * len(columns)]
    listed = ", ".join(f"({', '.join(map(_spelled, row))})" for row in values)
    casts = ", ".join(f"CAST(c{i} AS {type_}) AS {quoted(name)}" for i, (name, type_) in enumerate(columns.items()))
    names = ", ".join(f"c{i}" for i in range(len(columns)))
    return f"SELECT {casts} FROM (VALUES {listed}) AS facts({names}){'' if rows else ' WHERE false'}"  # noqa: S608


def facts_as_sql(what: str, dataset: LanceDataset, column: str | None) -> str:
    """Return a SELECT that returns facts about a table.

    Args:
        what: A key of `FACTS`.
        dataset: The table.
        column: Path of a column, for facts about a column.

    Raises:
        InvalidInputError: The key is unknown.
        UnknownColumnError: The column does not exist.
    """
    if what not in FACTS:
        raise unknown_value("facts", what, FACTS)
    columns, find = FACTS[what]
    return rows_as_sql(columns, find(dataset, column))


def _spelled(value: Any) -> str:
    return "NULL" if value is None else literal(value) if isinstance(value, str) else str(int(value))


def _config(dataset: LanceDataset, column: str | None) -> Rows:
    return sorted(dataset.config().items())


def _table_metadata(dataset: LanceDataset, column: str | None) -> Rows:
    return sorted(dataset.handle.snapshot.metadata.items())


def _schema_metadata(dataset: LanceDataset, column: str | None) -> Rows:
    return _texts(dataset.handle.snapshot.schema.metadata)


def _column_metadata(dataset: LanceDataset, column: str | None) -> Rows:
    schema = dataset.handle.snapshot.schema
    return _texts(schema.by_path(column_path(schema, column or "")).metadata)


def _texts(metadata: Mapping[Any, Any]) -> Rows:
    """Return metadata as strings. Bytes that are not UTF-8 are escaped."""
    return sorted((_text(key), _text(value)) for key, value in metadata.items())


def _text(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


FACTS: Final[Mapping[str, tuple[Mapping[str, str], Callable[[LanceDataset, str | None], Rows]]]] = {
    "indexes": (INDEX_COLUMNS, indexes),
    "config": (_PAIRS, _config),
    "table_metadata": (_PAIRS, _table_metadata),
    "schema_metadata": (_PAIRS, _schema_metadata),
    "column_metadata": (_PAIRS, _column_metadata),
}
"""The kinds of facts, each with the result columns and the function that returns the rows."""
