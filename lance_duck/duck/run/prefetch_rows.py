"""Point lookups carried out: an index reads the rows, and the statement runs over these alone.

DuckDB calls Python from several threads, each of which waits for the others, and binds a view on the way to a table:
more work than finding a row. Rows that an index finds are therefore read before the statement is run, and given to it
as values of parameters where their types are plain, so that it scans nothing of Python's; its text is then the same
each time, and is parsed once. Types of other kinds come as a table of Arrow's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain, count
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.cache import LruCache
from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import TableCatalog, quoted
from lance_duck.duck.names import Names
from lance_duck.duck.rules.point_lookup import PlainWhere, plain_where
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.order_by_search import ALL_ROWS
from lance_duck.duck.run.parameters import Given
from lance_duck.duck.run.rewritten import Replaced
from lance_duck.duck.settings import about_condition
from lance_duck.errors import LanceDuckError
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.sql.parser import tree_from_sql

FEW: Final = 8192
"""Rows up to which they are read first."""
_AS_VALUES: Final = 1024
_KEPT: Final = 256
_TYPES: Final = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.uint8(): "UTINYINT",
    pa.uint16(): "USMALLINT",
    pa.uint32(): "UINTEGER",
    pa.uint64(): "UBIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
}
_NUMBERS: Final = count()


class RowsFirst:
    """Runs point lookups for the statements of one connection.

    Args:
        native: DuckDB's connection.
        catalog: Its tables.
        names: What names mean on it.
    """

    def __init__(self, native: duckdb.DuckDBPyConnection, catalog: TableCatalog, names: Names) -> None:
        self._native = native
        self._catalog = catalog
        self._names = names
        self._parsed: LruCache[Any] = LruCache(_KEPT)

    def replaced(self, sql: str, parameters: Any) -> Replaced | None:
        """Put few rows in the place of a table; None where no index says which they are, or they are many."""
        asked = plain_where(sql)
        if asked is None or not self._names.are_ours(asked.name, later=False):
            return None
        handle = self._catalog.find(asked.name[-1])
        try:
            return None if handle is None else self._replaced(sql, asked, handle.current(), parameters)
        except (NotFoundHere, LanceDuckError):
            return None  # the statement itself will say what is wrong

    def _replaced(self, sql: str, asked: PlainWhere, dataset: LanceDataset, parameters: Any) -> Replaced | None:
        given = Given((), parameters)
        values = [given.value(key) for key in asked.where_keys]
        about = about_condition(asked.where, asked.where_columns, dataset.schema, values)
        if not self._names.dialect(asked.name, later=False).is_usual(about):
            return None
        predicate = tree_from_sql(asked.where, dataset.schema, values or None)
        if predicate is None:
            return None
        expected = dataset.index_estimate(predicate)
        if expected is None or expected > FEW:
            return None
        whole = duckdb_arrow_schema(dataset.schema)
        columns = asked.columns
        schema = whole if columns is None else pa.schema([f for f in whole if f.name.lower() in columns])
        rows = dataset.duckdb_reader(schema, predicate).read_all()
        found = self.as_values(partial(_placed, sql, asked), rows, asked.marks, parameters)
        if found is not None:
            return found
        name = f"__lance_rows_{next(_NUMBERS)}"
        listed = ", ".join(map(quoted, schema.names))
        # The limit, which takes no row away, keeps the filters of the statement from being pushed into the table.
        return Replaced(_placed(sql, asked, f'SELECT {listed} FROM "{name}" LIMIT {ALL_ROWS}'), {name: rows})  # noqa: S608

    def as_values(
        self, placed: Callable[[str], str], rows: pa.Table, before: int | None, parameters: Any
    ) -> Replaced | None:
        """Return rows as values of parameters; None where they are many or strange, or others cannot stand beside them.

        Args:
            placed: The statement with a query in the place of a table.
            rows: Of that table.
            before: How many `?` stand before it; None: the statement has none.
            parameters: Of the rest of the statement.
        """
        types = [_type_name(field.type) for field in rows.schema]
        if not types or None in types or rows.num_rows * sum(map(_width, rows.schema)) > _AS_VALUES:
            return None
        columns = [column.to_pylist() for column in rows.columns]
        if any(map(_is_strange, chain.from_iterable(columns))):
            return None
        named = isinstance(parameters, Mapping)
        marks = [f"$__lance_{i}" if named else "?" for i in range(len(columns))]
        if parameters is not None and not named and (before is None or not isinstance(parameters, list | tuple)):
            return None
        one = rows.num_rows == 1
        shape = "{}::{} AS {}" if one else "unnest({}::{}[]) AS {}"
        text = ", ".join(map(shape.format, marks, types, map(quoted, rows.column_names)))
        mine = [column[0] for column in columns] if one else columns
        if isinstance(parameters, Mapping):
            values: Any = {**parameters, **{f"__lance_{i}": value for i, value in enumerate(mine)}}
        else:
            own = list(parameters or ())
            values = [*own[:before], *mine, *own[before:]] if own else mine
        return Replaced(self._statement(placed(f"SELECT {text}")), {}, values)

    def _statement(self, text: str) -> Any:
        """Return the statement, parsed; those used last are kept."""

        def parse() -> Any:
            (statement,) = self._native.extract_statements(text)
            return statement

        return self._parsed.get(text, parse)


def _type_name(type_: pa.DataType) -> str | None:
    """Return DuckDB's name of a type whose values Python has exactly; None for others."""
    if pa.types.is_fixed_size_list(type_):
        inner = _TYPES.get(type_.value_type)
        return None if inner not in ("FLOAT", "DOUBLE") else f"{inner}[{type_.list_size}]"
    return _TYPES.get(type_)


def _is_strange(value: Any) -> bool:
    """Return whether DuckDB may misread a Python value: NaN as NULL, a text up to its first NUL."""
    if isinstance(value, list):
        return any(map(_is_strange, value))
    return bool(value != value) or (isinstance(value, str) and "\0" in value)


def _width(field: pa.Field) -> int:
    return field.type.list_size if pa.types.is_fixed_size_list(field.type) else 1


def _placed(sql: str, asked: PlainWhere, rows: str) -> str:
    alias = "" if asked.alias is None else f" AS {quoted(asked.alias)}"
    return f"{sql[: asked.start]}({rows}){alias}{sql[asked.end :]}"
