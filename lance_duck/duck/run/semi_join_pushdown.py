"""Semi-join pushdown reads the keys first, and then only the rows of the large table that have one of the keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.arrow.types import holds_texts
from lance_duck.dataset import LanceDataset
from lance_duck.duck.rules.join_keys import KeyJoin, KeyJoins
from lance_duck.duck.run.costs import LARGE, MOST_KEYS, PER_KEY, SELECTIVE, SMALLER
from lance_duck.duck.run.key_values import keys_as
from lance_duck.duck.run.named_tables import NamedTable, named
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import CONDITIONS, HAS_COLLATIONS, About
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import are_distinct, literal, quoted
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.duck.tables.table import DuckTable, Restriction, select_all
from lance_duck.duck.user_scope import call_as_user, user_variable
from lance_duck.errors import LanceDuckError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.scan.predicate.tree import In

_STEP, _WITHIN = (1, 2) if SPEAKS_SOURCE else (2, 3)
"""Increments of DuckDB's transaction id: from one statement to the next, and from a statement to queries during the
next one."""
_FRAMES: Final = ("pandas", "polars")
_ORIGIN: Final = "keys: read before the statement, from the other side of a join or of IN"


def run(proposal: KeyJoins, request: Request, database: Database) -> Rewriting | None:
    """Restrict the tables that join with few keys. Returns None if no table qualifies."""
    pushdown = _Pushdown(request, database)
    joins = [join for join in proposal.joins if request.is_free(join.start, join.end) and pushdown.is_worth(join)]
    if not joins:
        return None
    try:
        return pushdown.rewriting(joins)
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, LanceDuckError):
        return None  # the error is raised when the statement runs


@dataclass(frozen=True)
class _Pushdown:
    """The key queries of one statement."""

    request: Request
    database: Database

    def is_worth(self, join: KeyJoin) -> bool:
        """Return whether the table is a large Lance table with an index on the column."""
        names, later = self.database.names, self.request.later
        handle = names.table(join.name, later=later)
        if handle is None:
            return False
        table = handle.current()
        column = _column(table, join.column)
        if table.count_rows() < LARGE or column is None:
            return False
        about = CONDITIONS | (About.TEXTS if holds_texts(table.schema.field(column).type) else About(0))
        return names.dialect(join.name, later=later).is_usual(about)

    def rewriting(self, joins: Sequence[KeyJoin]) -> Rewriting | None:
        """Read the join keys, and replace each table that has few keys with a narrowed table."""
        run = _Runner(self.database.native, _Clock(), self.request.later)
        names = {join.name[-1].lower() for join in joins} | {name for join in joins for name in join.reads}
        catalog = self.database.catalog
        objects = _Objects.of(run, names, catalog.native, [each.database for each in catalog.databases])
        if run.in_transaction(objects.transaction):
            return None  # a failed key query would end the transaction
        tables: list[NamedTable] = []
        edits: dict[int, Edit] = {}
        for join in joins:
            if join.start in edits or objects.has(join.name[-1]):
                continue
            narrowed = self._table(join, run, objects)
            if narrowed is not None:
                table = named(self.database.native, narrowed)
                alias = "" if join.alias is None else f" AS {quoted(join.alias)}"
                edits[join.start] = Edit(join.start, join.end, f"({select_all(quoted(table.name))}){alias}")
                tables.append(table)
        return Rewriting(tuple(edits.values()), tuple(tables)) if tables else None

    def _table(self, join: KeyJoin, run: _Runner, objects: _Objects) -> DuckTable | None:
        handle = self.database.names.table(join.name, later=self.request.later)
        parameters = _given(join, self.request.values.bound)
        if handle is None or parameters is None:
            return None
        table = handle.current()
        reading = self._reading(join, objects, table.count_rows(), run.later)
        if reading is None:
            return None
        keys = run.keys(join.keys, parameters)
        if keys is None or not reading.unchanged():
            return None
        path = _column(table, join.column)
        field = None if path is None else table.schema.field(path)
        values = None if field is None else keys_as(keys.values, keys.type, field.type)
        if field is None or path is None or values is None or (holds_texts(field.type) and run.has_collations()):
            return None
        condition = In((path,), values.unique())
        if len(condition.values) * PER_KEY > table.count_rows():
            return None
        rows = table.index_estimate(condition)
        if rows is None:  # the row count for many scattered values cannot be estimated without reading rows
            rows = len(condition.values)
        if rows * SELECTIVE > table.count_rows():
            return None
        holds = self._holding(join, reading, run, keys, parameters)
        return DuckTable(handle.current, restriction=Restriction(condition, rows, _ORIGIN, table.schema, holds))

    def _reading(self, join: KeyJoin, objects: _Objects, most: int, later: bool) -> _KeyQuery | None:
        """Return the sources of the keys. Returns None if a source cannot be read twice, or is not small."""
        tables, rows, native = [], 0, False
        for name in join.reads:
            if self.database.catalog.is_repeated(name):
                return None  # the unqualified name is ambiguous
            handle = None if objects.has(name) else self.database.names.table((name,), later=later)
            if handle is not None:
                tables.append((handle, handle.current().handle.snapshot.state))
                rows += handle.current().count_rows()
            elif objects.has(name):
                size = None if later else objects.rows(name)
                is_native = not objects.is_temporary(name)
                if size is None or (is_native and not objects.counts_changes):
                    return None
                rows += size
                native = native or is_native
            else:
                size = _length(user_variable(name), later)
                if size is None:
                    return None
                rows += size
        return _KeyQuery(tuple(tables), native) if rows * SMALLER <= most else None

    def _holding(
        self, join: KeyJoin, reading: _KeyQuery, run: _Runner, keys: _Keys, parameters: Mapping[str, Any]
    ) -> Callable[[], bool]:
        clock, is_steady = run.clock, self.database.names.constancy() if run.later else None
        # The closure must not capture the request or its tables, because a registered table must not hold its own
        # handle.
        binder = self.database.catalog.binder

        def holds() -> bool:
            if not reading.unchanged() or not (is_steady is None or is_steady()):
                return False
            if not reading.native:
                return True
            expected = keys.transaction + _STEP * (clock.statements - keys.statements) + _WITHIN
            with binder.spare_cursor() as cursor:
                try:
                    again = _Runner(cursor, clock, later=False).keys(join.keys, parameters)
                except duckdb.Error:
                    return False
            # Even if the keys are unchanged, a different transaction id means that other connections ran statements.
            same = again is not None and again.transaction == expected and again.type == keys.type
            return again is not None and same and set(again.values) == set(keys.values)

        return holds


@dataclass(frozen=True)
class _KeyQuery:
    """The sources from which keys were read.

    Attributes:
        tables: Lance tables, and the versions that were read.
        native: Whether the sources include native tables, which other connections may change.
    """

    tables: tuple[tuple[TableHandle, Hashable], ...]
    native: bool

    def unchanged(self) -> bool:
        """Return whether the Lance tables are still in these states."""
        return all(handle.current().handle.snapshot.state == state for handle, state in self.tables)


@dataclass(frozen=True)
class _Keys:
    """The result of a key query.

    Attributes:
        values: The keys.
        type: Their DuckDB type.
        transaction: DuckDB's id of the transaction in which the query ran.
        statements: The value of `_Clock.statements` after the query.
    """

    values: list[Any]
    type: str
    transaction: int
    statements: int


@dataclass
class _Clock:
    """Counter of the queries run for one statement."""

    statements: int = 0


class _Runner:
    """Runs auxiliary queries for a statement.

    Args:
        connection: The statement's connection, or a different one to the same database.
        clock: Counter of the queries.
        later: Whether an unfetched result is kept while names are looked up.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, clock: _Clock, later: bool) -> None:
        self._connection = connection
        self.clock = clock
        self.later = later

    def rows(self, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        options = {} if not parameters else {"params" if self.later else "parameters": parameters}
        method: Any = self._connection.sql if self.later else self._connection.execute
        rows: list[tuple[Any, ...]] = call_as_user(partial(method, sql, **options)).fetchall()
        self.clock.statements += 1
        return rows

    def in_transaction(self, transaction: int) -> bool:
        """Return whether the connection is inside a transaction that an earlier statement began."""
        return bool(self.rows("SELECT system.main.txid_current()")[0][0] == transaction)

    def keys(self, sql: str, parameters: Mapping[str, Any]) -> _Keys | None:
        """Run the key query. Returns None if it finds more than `MOST_KEYS` keys."""
        text = f"""
            SELECT system.main.txid_current(), system.main.typeof(system.main.list(key)), system.main.list(key)
            FROM (SELECT key FROM ({sql}) LIMIT {MOST_KEYS + 1})"""  # noqa: S608
        transaction, type_, values = self.rows(text, dict(parameters))[0]
        if values is not None and len(values) > MOST_KEYS:
            return None
        return _Keys(values or [], type_.removesuffix("[]"), transaction, self.clock.statements)

    def has_collations(self) -> bool:
        """Return whether a collation may apply. Strings are then not compared bytewise."""
        return bool(self.rows(HAS_COLLATIONS)[0][0])


@dataclass(frozen=True)
class _Objects:
    """DuckDB tables and views with given names.

    Attributes:
        transaction: DuckDB's id of the transaction that found them.
        found: Row count, and whether the table is temporary, by lower-case name. The row count is None for objects that
            must not be read twice.
        counts_changes: Whether the transaction id grows with each change of a native table. DuckDB 1 counts the
            transactions of the current database only.
    """

    transaction: int
    found: Mapping[str, tuple[int | None, bool]]
    counts_changes: bool

    @classmethod
    def of(cls, run: _Runner, names: set[str], native: str, databases: Sequence[str]) -> _Objects:
        listed, ours = ", ".join(map(literal, sorted(names))), ", ".join(map(literal, databases))
        text = f"""
            SELECT system.main.txid_current(), system.main.current_database() = {literal(native)},
                (SELECT system.main.list((name, rows, temporary)) FROM (
                SELECT system.main.lower(table_name) AS name, temporary,
                    CASE WHEN temporary OR database_name = {literal(native)} THEN estimated_size END AS rows
                FROM system.main.duckdb_tables() WHERE system.main.lower(table_name) IN ({listed})
                UNION ALL
                SELECT system.main.lower(view_name), false, NULL FROM system.main.duckdb_views()
                WHERE lower(view_name) IN ({listed}) AND database_name NOT IN ({ours})))"""  # noqa: S608
        transaction, is_current, rows = run.rows(text)[0]
        found: dict[str, tuple[int | None, bool]] = {}
        for name, size, temporary in map(_fields, rows or []):
            found[name] = (None, False) if name in found else (size, bool(temporary))
        return cls(transaction, found, SPEAKS_SOURCE or is_current)

    def has(self, name: str) -> bool:
        """Return whether DuckDB has a table or view with this name."""
        return name.lower() in self.found

    def rows(self, name: str) -> int | None:
        """Return a table's approximate row count. Returns None if the object cannot be read twice."""
        return self.found[name][0]

    def is_temporary(self, name: str) -> bool:
        """Return whether the object is temporary, and thus only visible to this connection."""
        return self.found[name][1]


def _fields(row: Any) -> tuple[Any, ...]:
    return tuple(row.values()) if isinstance(row, dict) else tuple(row)


def _given(join: KeyJoin, parameters: Any) -> dict[str, Any] | None:
    """Return the parameters of the key query, by their names in that query, or None if one is missing."""
    values = {}
    for name, key in join.parameters:
        if isinstance(parameters, Mapping):
            if str(key) not in parameters:
                return None
            values[name] = parameters[str(key)]
        elif isinstance(parameters, Sequence) and isinstance(key, int) and 0 < key <= len(parameters):
            values[name] = parameters[key - 1]
        else:
            return None
    return values


def _column(table: LanceDataset, name: str) -> str | None:
    """Return a column by its SQL name. Returns None if it does not exist, is ambiguous or does not have an index."""
    if not are_distinct(table.schema.names):
        return None
    columns = [column for column in table.schema.names if column.lower() == name.lower()]
    return columns[0] if len(columns) == 1 and columns[0] in table.indexed_columns() else None


def _length(thing: Any, later: bool) -> int | None:
    """Return the row count of a user variable. Returns None if it cannot be read twice, or if it may change."""
    if isinstance(thing, pa.Table):
        return int(thing.num_rows)
    if later or type(thing).__module__.split(".")[0] not in _FRAMES or type(thing).__name__ != "DataFrame":
        return None
    return len(thing)
