"""Runs point lookups. An index finds the rows, and the statement reads only these.

DuckDB binds a view before the table, and calls Python from several threads that wait for each other. That takes longer
than a point lookup. Rows that an index finds are therefore read before the statement runs. Rows of plain types are
passed as parameter values. DuckDB then does not scan a Python object, and parses the unchanged text only once. Rows of
other types are passed as an Arrow table. Similarly, count(*) comes from the manifest, and a column's minimum and
maximum come from the first and last entries of an index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.rules.aggregates import FUNCTIONS, Aggregate, AggregatedTable
from lance_duck.duck.rules.point_lookup import PlainWhere
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.costs import FEW, KEYS_ASKED, VALUES_BYTES
from lance_duck.duck.run.named_tables import NamedTable, named
from lance_duck.duck.run.order_by_search import ALL_ROWS
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import About, about_condition
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import are_distinct, folded, quoted
from lance_duck.errors import LanceDuckError
from lance_duck.scan.duckdb.types import PLAIN_TYPES, duckdb_arrow_schema
from lance_duck.scan.filters import Filter, TreeFilter
from lance_duck.scan.predicate.tree import In, conjuncts
from lance_duck.scan.sql.parser import tree_from_sql

BUILT_IN: Final = (*FUNCTIONS, "count_star")
"""Functions that aggregates may call."""


def run(proposal: PlainWhere, request: Request, database: Database) -> Rewriting | None:
    """Replace a table with the matching rows. Returns None without a suitable index, or if too many rows match."""
    if not request.is_free(proposal.table.start, proposal.table.end):
        return None
    handle = database.names.table(proposal.table.name, later=False)
    try:
        return None if handle is None else _rewriting(proposal, request, database, handle.current())
    except (NotFoundHere, LanceDuckError):
        return None  # the error is raised when the statement runs


def run_aggregates(proposal: AggregatedTable, request: Request, database: Database) -> Rewriting | None:
    """Replace aggregates, or the whole statement, with values from metadata or an index.

    Returns:
        The edits, or None to leave the statement unchanged. This is the case if functions may be redefined, or if only
        row counts are known and the table is scanned anyway.
    """
    names = database.names
    if request.values.bound or not names.are_built_in(BUILT_IN, later=False):
        return None
    handle = names.table(proposal.name, later=False)
    if handle is None or not names.dialect(proposal.name, later=False).is_usual(about_aggregates(proposal)):
        return None
    try:
        values = aggregate_values(handle.current(), proposal)
    except LanceDuckError:
        return None  # the error is raised when the statement runs
    known = [(each, value) for each, value in zip(proposal.aggregates, values, strict=True) if value is not None]
    is_whole = len(known) == len(values)
    if not is_whole and not any(each.column for each, _ in known):
        return None  # the scan can also count the rows at no extra cost
    edits, tables = zip(*(_constant(each, value, database) for each, value in known), strict=True)
    if is_whole:
        text, marks = ", ".join(edit.text for edit in edits), tuple(mark for edit in edits for mark in edit.values)
        edits = (Edit(proposal.start, proposal.end, f"SELECT {text}", marks),)
    return Rewriting(edits, tuple(table for table in tables if table is not None))


def about_aggregates(asked: AggregatedTable) -> About:
    """Return the SQL features that aggregates depend on."""
    counts = all(each.function == "count" for each in asked.aggregates)
    return About.SYNTAX if counts else About.SYNTAX | About.TEXTS


def aggregate_values(dataset: LanceDataset, asked: AggregatedTable) -> list[pa.Array | None]:
    """Return the value of each aggregate with its DuckDB type, in an array. None if that requires a scan."""
    return [_value(dataset, each) for each in asked.aggregates]


def _value(dataset: LanceDataset, aggregate: Aggregate) -> pa.Array | None:
    """Return the value of an aggregate with its DuckDB type. Returns None if that requires a scan."""
    if aggregate.column is None:
        return pa.array([dataset.count_rows()], pa.int64())
    columns = [field for field in dataset.schema if folded(field.name) == folded(aggregate.column)]
    if len(columns) != 1 or not are_distinct(dataset.schema.names):
        return None
    table = dataset.handle.table
    if aggregate.function == "count":
        return pa.array([dataset.count_rows()], pa.int64()) if table.has_no_nulls(columns[0].name) else None
    pair = table.extremes(columns[0].name)
    if pair is None:
        return None
    (field,) = duckdb_arrow_schema(pa.schema(columns))
    return pa.array([pair[aggregate.function == "max"]], columns[0].type).cast(field.type)


def _constant(aggregate: Aggregate, value: pa.Array, database: Database) -> tuple[Edit, NamedTable | None]:
    """Return the edit that replaces an aggregate with its value, and the table that the edit reads, if any."""
    title, type_ = quoted(aggregate.title), PLAIN_TYPES.get(value.type)
    plain = value[0].as_py() if type_ is not None else None
    if type_ is not None and not _is_strange(plain):
        return Edit(aggregate.start, aggregate.end, f"?::{type_} AS {title}", (plain,)), None
    table = named(database.native, pa.table({"value": value}))
    text = f'(SELECT "value" FROM "{table.name}") AS {title}'  # noqa: S608
    return Edit(aggregate.start, aggregate.end, text, ()), table


def _rewriting(proposal: PlainWhere, request: Request, database: Database, dataset: LanceDataset) -> Rewriting | None:
    table, condition = proposal.table, proposal.condition
    values = request.values.values(condition.keys)
    about = about_condition(condition, dataset.schema, values)
    if not database.names.dialect(table.name, later=False).is_usual(about):
        return None
    rows = _few_rows(proposal, dataset, values)
    return None if rows is None else in_place(rows, table.start, table.end, table.alias, request, database)


def _few_rows(proposal: PlainWhere, dataset: LanceDataset, values: Sequence[Any]) -> pa.Table | None:
    """Read the matching rows. Returns None without a suitable index, or if too many rows match.

    As in other scans, conditions and their index results are cached. The cache key is the text with the values.
    """

    def read() -> TreeFilter | None:
        predicate = tree_from_sql(proposal.condition.where, dataset.schema, values or None)
        return None if predicate is None else TreeFilter(predicate)

    table = dataset.handle.table
    condition = table.option_cache.statement_filter(proposal.condition.where, values, read)
    if condition is None:
        return None
    expected = dataset.index_estimate(condition)
    is_few = expected is not None and expected <= FEW
    if not is_few and not _may_be_few(condition, expected):
        return None
    whole = duckdb_arrow_schema(dataset.schema)
    columns = proposal.columns
    schema = whole if columns is None else pa.schema([f for f in whole if f.name.lower() in columns])
    return table.chosen_rows(schema, condition, None if is_few else FEW)


def _may_be_few(condition: Filter, expected: int | None) -> bool:
    """Return whether to look up rows. Short IN lists are looked up even if the page-based estimate is high."""
    if not isinstance(condition, TreeFilter):
        return False
    lists = (len(part.values) for part in conjuncts(condition.predicate) if isinstance(part, In))
    keys = min(lists, default=0)
    return 0 < keys <= KEYS_ASKED and (expected is None or expected <= FEW * keys)


def in_place(
    rows: pa.Table, start: int, end: int, alias: str | None, request: Request, database: Database
) -> Rewriting:
    """Replace a source in a statement with rows.

    Args:
        rows: Rows in DuckDB types.
        start: Start of the source in FROM or JOIN, in characters.
        end: End of the source, in characters.
        alias: Alias of the rows, unless the text has one or does not need one.
        request: The run of the statement.
        database: The database on which the statement runs.
    """
    alias_text = "" if alias is None else f" AS {quoted(alias)}"
    query = _as_values(rows, start, request)
    if query is not None:
        text, values = query
        return Rewriting((Edit(start, end, f"({text}){alias_text}", values),))
    table = named(database.native, rows)
    columns = ", ".join(map(quoted, rows.column_names))
    # The limit exceeds the row count. It only prevents DuckDB from pushing filters into the table.
    text = f'(SELECT {columns} FROM "{table.name}" LIMIT {ALL_ROWS}){alias_text}'  # noqa: S608
    return Rewriting((Edit(start, end, text, ()),), (table,))


def _as_values(rows: pa.Table, start: int, request: Request) -> tuple[str, list[Any] | dict[str, Any]] | None:
    """Return a query that reads rows from parameters, and the parameter values.

    Returns:
        The query and the values. None if the rows are too large, if a value is not of a plain type, or if the values
        cannot be added to the statement's parameters.
    """
    types = [_type_name(field.type) for field in rows.schema]
    if not types or None in types or rows.num_rows * sum(map(_width, rows.schema)) > VALUES_BYTES:
        return None
    columns = [column.to_pylist() for column in rows.columns]
    if any(map(_is_strange, chain.from_iterable(columns))):
        return None
    parameters = request.values.bound
    named = isinstance(parameters, Mapping)
    if parameters is not None and not named and not (request.statement.marks and isinstance(parameters, list | tuple)):
        return None
    names = [f"__lance_{start}_{i}" for i in range(len(columns))]
    marks = [f"${name}" if named else "?" for name in names]
    one = rows.num_rows == 1
    shape = "{}::{} AS {}" if one else "unnest({}::{}[]) AS {}"
    text = "SELECT " + ", ".join(map(shape.format, marks, types, map(quoted, rows.column_names)))
    values = [column[0] for column in columns] if one else columns
    return text, dict(zip(names, values, strict=True)) if named else values


def _type_name(type_: pa.DataType) -> str | None:
    """Return DuckDB's name of a type. Returns None if Python cannot represent its values exactly."""
    if pa.types.is_fixed_size_list(type_):
        inner = PLAIN_TYPES.get(type_.value_type)
        return None if inner not in ("FLOAT", "DOUBLE") else f"{inner}[{type_.list_size}]"
    return PLAIN_TYPES.get(type_)


def _is_strange(value: Any) -> bool:
    """Return whether DuckDB may misread a Python value.

    It may read NaN as NULL, and may end a string at a NUL character.
    """
    if isinstance(value, list):
        return any(map(_is_strange, value))
    return bool(value != value) or (isinstance(value, str) and "\0" in value)


def _width(field: pa.Field) -> int:
    return field.type.list_size if pa.types.is_fixed_size_list(field.type) else 1
