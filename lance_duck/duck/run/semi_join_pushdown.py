"""Semi-join pushdown reads the keys first, and then only the rows of the large table that have one of the keys.

An index finds the rows of a few keys. Without an index, the scan reads the key column, and the other columns of the
rows with one of the keys. This is faster if few rows pass, and if the keys come from small Lance tables. Samples of the
tables estimate both before the keys and the large table are read: `docs/decisions/join-keys.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.arrow.types import holds_texts
from lance_duck.dataset import LanceDataset
from lance_duck.duck.rules.join_keys import KeyJoin, KeyJoins, joins_of
from lance_duck.duck.rules.known_tables import KnownTable
from lance_duck.duck.run.costs import (
    LARGE,
    MOST_KEYS,
    MOST_NUMBERS,
    PER_KEY,
    SELECTIVE,
    SELECTIVE_WHEN_SCANNED,
    SMALLER,
)
from lance_duck.duck.run.key_scans import SHARES, AccessPath, KeyScans, given, share_of
from lance_duck.duck.run.key_values import are_integers, keys_as
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
from lance_duck.scan.duckdb.types import PLAIN_TYPES
from lance_duck.scan.predicate.tree import In

_STEP, _WITHIN = (1, 2) if SPEAKS_SOURCE else (2, 3)
"""Increments of DuckDB's transaction id: from one statement to the next, and from a statement to queries during the
next one."""
_FRAMES: Final = ("pandas", "polars")
_ORIGIN: Final = "keys: read before the statement, from the other side of a join or of IN"


def run(proposal: KeyJoins, request: Request, database: Database) -> Rewriting | None:
    """Restrict the tables that join with few keys. Returns None if no table qualifies.

    A relation of DuckDB 1.x would not read later versions, because it asks a source for its schema only once.
    """
    if request.later and not SPEAKS_SOURCE:
        return None
    pushdown = _Pushdown(request, database)
    try:
        joins = [join for join in pushdown.proposed(proposal) if request.is_free(join.start, join.end)]
        found = {join: way for join in joins if (way := pushdown.way(join)) is not None}
        ways = pushdown.scans.worth(found)
        return pushdown.rewriting(ways) if ways else None
    except duckdb.InterruptException:
        raise
    except (duckdb.Error, LanceDuckError):
        return None  # the error is raised when the statement runs


@dataclass(frozen=True)
class _Pushdown:
    """The key queries of one statement."""

    request: Request
    database: Database

    def proposed(self, proposal: KeyJoins) -> Sequence[KeyJoin]:
        """Return the proposals, with the columns and sizes of the Lance tables."""
        tree = proposal.trees.pop() if proposal.trees else None
        known: dict[tuple[str, ...], KnownTable] = {}
        for name in proposal.tables:
            handle = None if self.database.catalog.is_repeated(name[-1]) else self._handle(name)
            if handle is not None and are_distinct(handle.current().schema.names):
                table = handle.current()
                known[name] = KnownTable(table.schema, table.count_rows().bit_length())
        if not known or max(table.magnitude for table in known.values()) < LARGE.bit_length():
            return proposal.joins
        joins: Sequence[KeyJoin] = self.request.statement.result(
            ("key joins", tuple(known.items())), partial(joins_of, known=known, tree=tree)
        )
        return joins

    def way(self, join: KeyJoin) -> AccessPath | None:
        """Return the way to read a large Lance table by its keys. None if it is not worth a key query."""
        names, later = self.database.names, self.request.later
        handle = self._handle(join.name)
        if handle is None:
            return None
        table = handle.current()
        column = _column(table, join.column)
        if table.count_rows() < LARGE or column is None:
            return None
        type_ = table.schema.field(column).type
        about = CONDITIONS | (About.TEXTS if holds_texts(type_) else About(0))
        if not names.dialect(join.name, later=later).is_usual(about):
            return None
        return self.scans.way(join, table, column)

    def _handle(self, name: tuple[str, ...]) -> TableHandle | None:
        return self.database.names.table(name, later=self.request.later)

    def rewriting(self, ways: Mapping[KeyJoin, AccessPath]) -> Rewriting | None:
        """Read the join keys, and replace each table that has few keys with a narrowed table."""
        run = _Runner(self.database.native, _Clock(), self.request.later)
        asked = [join for join, way in ways.items() if way.key is None]
        names = {join.name[-1].lower() for join in asked} | {name for join in asked for name in join.reads}
        catalog = self.database.catalog
        objects = _Objects.of(run, names, catalog.native, [each.database for each in catalog.databases])
        if run.in_transaction(objects.transaction):
            return None  # a failed key query would end the transaction
        tables: list[NamedTable] = []
        edits: dict[int, Edit] = {}
        restrictions: dict[tuple[Any, ...], Restriction | None] = {}
        for join, way in ways.items():
            handle = self._handle(join.name)
            if join.start in edits or handle is None or (way.key is None and objects.has(join.name[-1])):
                continue
            key = id(way.table), way.column, join.keys
            if key not in restrictions:
                restrictions[key] = self._restriction(join, way, run, objects)
            restriction = restrictions[key]
            if restriction is not None:
                narrowed = DuckTable(handle.current, restriction=restriction)
                table = named(self.database.native, narrowed)
                alias = "" if join.alias is None else f" AS {quoted(join.alias)}"
                edits[join.start] = Edit(join.start, join.end, f"({select_all(quoted(table.name))}){alias}")
                tables.append(table)
        return Rewriting(tuple(edits.values()), tuple(tables)) if tables else None

    def _restriction(self, join: KeyJoin, way: AccessPath, run: _Runner, objects: _Objects) -> Restriction | None:
        parameters = given(join, self.request.values.bound)
        if parameters is None:
            return None
        table, scanned = way.table, way.key is not None
        reading = self._lance_reading(join) if scanned else self._reading(join, objects, table.count_rows(), run.later)
        if reading is None:
            return None
        type_ = table.schema.field(way.column).type
        keys = (run.numbers if scanned else run.keys)(join.keys, parameters, type_)
        if keys is None and scanned:
            SHARES.put(way.key, 1.0)
        if keys is None or not reading.unchanged() or (holds_texts(type_) and run.has_collations()):
            return None
        condition = In((way.column,), keys.values.unique())
        rows = self._rows_by_index(table, condition) if way.indexed else None
        if rows is None and scanned:
            share = SHARES.get(way.key, lambda: share_of(table, condition))
            rows = int(share * table.count_rows()) if share * SELECTIVE_WHEN_SCANNED <= 1 else None
        if rows is None:
            return None
        holds = self._holding(join, reading, run, keys, parameters)
        return Restriction(condition, rows, _ORIGIN, table.schema, holds)

    def _rows_by_index(self, table: LanceDataset, condition: In) -> int | None:
        """Return the number of rows that an index selects, or None if a scan is as fast."""
        if len(condition.values) * PER_KEY > table.count_rows():
            return None
        rows = table.index_estimate(condition)
        if rows is None:  # the row count for many scattered values cannot be estimated without reading rows
            rows = len(condition.values)
        return rows if rows * SELECTIVE <= table.count_rows() else None

    @property
    def scans(self) -> KeyScans:
        """Decides which tables are scanned for keys."""
        return KeyScans(self.request, self.database)

    def _lance_reading(self, join: KeyJoin) -> _KeyQuery | None:
        """Return the Lance tables of the keys. Returns None if a name now refers to something else."""
        handles = [self._handle((name,)) for name in join.reads]
        tables = [(each, each.current().handle.snapshot.state) for each in handles if each is not None]
        return _KeyQuery(tuple(tables), native=False) if len(tables) == len(handles) else None

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
                    again = _Runner(cursor, clock, later=False).keys(join.keys, parameters, keys.values.type)
                except duckdb.Error:
                    return False
            # Even if the keys are unchanged, a different transaction id means that other connections ran statements.
            same = again is not None and again.transaction == expected and again.type == keys.type
            return again is not None and same and set(again.values.to_pylist()) == set(keys.values.to_pylist())

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
        values: The keys, without NULL, in the type of the large table's column.
        type: Their DuckDB type in the query.
        transaction: DuckDB's id of the transaction in which the query ran.
        statements: The value of `_Clock.statements` after the query.
    """

    values: pa.Array
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

    def keys(self, sql: str, parameters: Mapping[str, Any], type_: pa.DataType) -> _Keys | None:
        """Run a key query.

        Args:
            sql: The query.
            parameters: Its parameters.
            type_: Storage type of the large table's column.

        Returns: The keys, or None if there are more than `MOST_KEYS`, or if SQL may compare them differently.
        """
        text = f"""
            SELECT system.main.txid_current(), system.main.typeof(system.main.list(key)), system.main.list(key)
            FROM (SELECT key FROM ({sql}) LIMIT {MOST_KEYS + 1})"""  # noqa: S608
        transaction, list_type, found = self.rows(text, dict(parameters))[0]
        if found is not None and len(found) > MOST_KEYS:
            return None
        sql_type = list_type.removesuffix("[]")
        values = keys_as(found or [], sql_type, type_)
        return None if values is None else _Keys(values, sql_type, transaction, self.clock.statements)

    def numbers(self, sql: str, parameters: Mapping[str, Any], type_: pa.DataType) -> _Keys | None:
        """Run a query for up to `MOST_NUMBERS` keys, for a column of integers. See `keys`."""
        text = f"""
            SELECT system.main.typeof(system.main.list(key)), system.main.count(*),
                system.main.list(TRY_CAST(key AS {PLAIN_TYPES[type_]}))
            FROM (SELECT key FROM ({sql}) LIMIT {MOST_NUMBERS + 1})"""  # noqa: S608
        options: dict[str, Any] = {"params": dict(parameters)} if parameters else {}
        table = call_as_user(partial(self._connection.sql, text, **options)).to_arrow_table().combine_chunks()
        self.clock.statements += 1
        sql_type, count, values = table.column(0)[0].as_py().removesuffix("[]"), table.column(1)[0].as_py(), table[2]
        if count > MOST_NUMBERS or not are_integers(sql_type):
            return None
        return _Keys(values.chunk(0).flatten().drop_null(), sql_type, 0, self.clock.statements)

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
        if not names:
            return cls(run.rows("SELECT system.main.txid_current()")[0][0], {}, counts_changes=False)
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


def _column(table: LanceDataset, name: str) -> str | None:
    """Return a column by its SQL name. Returns None if it does not exist or is ambiguous."""
    if not are_distinct(table.schema.names):
        return None
    columns = [column for column in table.schema.names if column.lower() == name.lower()]
    return columns[0] if len(columns) == 1 else None


def _length(thing: Any, later: bool) -> int | None:
    """Return the row count of a user variable. Returns None if it cannot be read twice, or if it may change."""
    if isinstance(thing, pa.Table):
        return int(thing.num_rows)
    if later or type(thing).__module__.split(".")[0] not in _FRAMES or type(thing).__name__ != "DataFrame":
        return None
    return len(thing)
