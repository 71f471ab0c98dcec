"""A DuckDB connection on which SQL can use Lance tables by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import TracebackType
from typing import Any, Self

import duckdb
import pyarrow as pa

from lance_duck.arguments import checked_call, checked_calls, missing_attribute
from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.changes.block import bind_name, unbind_name
from lance_duck.duck.confinement import fixed_places, lock
from lance_duck.duck.direct import DirectReads
from lance_duck.duck.execute import Execution
from lance_duck.duck.failures import own_errors
from lance_duck.duck.inherited import Inherited, guarded, leave_to_children
from lance_duck.duck.names import Changes
from lance_duck.duck.prepared import PreparedStatement
from lance_duck.duck.relation_methods import follow_relations, keep_connection
from lance_duck.duck.run.search_settings import SearchSettings, Session, split_config
from lance_duck.duck.tables.folder import Folder
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.errors import InvalidInputError
from lance_duck.interrupts import Interrupt
from lance_duck.markup import rows_html
from lance_duck.snapshot.with_log import checked_mode
from lance_duck.store import checked_place, with_cache
from lance_duck.telemetry.metrics import ROWS_RETURNED

_FETCHES = frozenset({"fetchall", "fetchone", "fetchmany", "fetchdf", "df", "fetchnumpy"})
"""Methods of DuckDB's connection that only read a result."""
_WHOLE = frozenset({"fetchall", "fetchmany", "fetchdf", "df"})
"""Methods that return rows in a list or data frame."""
_ARROW = frozenset({"to_arrow_table", "to_arrow_reader", "fetch_record_batch", "arrow", "pl"})
"""Other methods that only read a result."""
_IN_MEMORY = ":memory:"
_ROWS_PER_BATCH = 1_000_000  # default of DuckDB 1
_OF_LANCEDB = {
    "create_table": "CREATE TABLE name AS …, or lance_duck.write_dataset(data, uri)",
    "drop_table": "DROP TABLE name",
    "list_tables": 'SHOW TABLES, or lance_duck.connect_namespace("dir", {"root": folder}).list_tables()',
    **dict.fromkeys(("list_versions", "versions", "history"), "FROM lance_versions('name')"),
    "open_table": "table(name), a relation, or lance_duck.dataset(uri), a dataset",
    "optimize": "OPTIMIZE name",
    **dict.fromkeys(("search", "vector_search"), "FROM lance_vector_search('name', 'column', vector)"),
    "table_names": 'SHOW TABLES, or lance_duck.connect_namespace("dir", {"root": folder}).list_tables()',
}
Tables = str | os.PathLike[str] | Mapping[str, "str | os.PathLike[str] | LanceDataset"] | None


@checked_call
def connect(
    tables: Tables = None,
    database: str | os.PathLike[str] = _IN_MEMORY,
    read_only: bool = False,
    config: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, str] | None = None,
    confined: bool = False,
    cache: str | os.PathLike[str] | None = None,
    log: str | None = None,
) -> Connection:
    """Connect to DuckDB with Lance tables.

    Args:
        tables: A folder of `*.lance` tables, each named after its folder without the suffix. New tables are found
            automatically. A missing folder is created with its first table. Alternatively, a mapping of names to paths,
            URIs or datasets. A dataset is read at its own version, all other tables at their newest version.
        database: DuckDB database, as for `duckdb.connect`. An empty string means in memory.
        read_only: Reject changes to Lance tables, and open a database file read-only.
        config: DuckDB settings and settings of this package. The names are the same as in SET. The package's settings
            are `lance_nearest`, `lance_nprobes`, `lance_ef`, `lance_refine_factor`, `lance_recall`,
            `lance_check_primary_key` and `lance_slow_statement_ms`.
        storage_options: Settings of the object store with the folder, or with the tables of the mapping. Use CREATE
            SECRET for other stores.
        confined: Reject SQL that reaches anything but these tables: other paths, files, databases, extensions, secrets,
            Python variables and DuckDB's settings. Your program can still register more tables.
        cache: A local folder that caches files of tables in object stores. Same as the storage option `cache`.
        log: Also read rows that are only in write-ahead logs of LanceDB, "flushed" or "fresh": see `dataset`. Lance
            tables cannot be changed. A dataset of the mapping is read as it is.

    Raises:
        NotFoundError: A table does not exist, or the connection is read-only and the folder does not exist.
        UnsupportedError: Another connection of this process has the database file open.
        LanceDuckError: A table of the mapping cannot be opened. Tables of a folder are opened when they are read.
    """
    place = checked_place(_IN_MEMORY if database == "" else database)
    storage_options = with_cache(storage_options, cache)
    tables = fixed_places(tables) if confined else tables
    catalog = _catalog(tables, storage_options, checked_mode(log), may_be_new=not read_only)
    catalog.binder.access.is_confined = confined
    read_only_tables = read_only or log is not None
    if read_only and catalog.default.log is not None:
        catalog.default.log.may_finish = False
    settings, config = split_config(config or {})
    with own_errors():
        native = duckdb.connect(place, read_only=read_only and not place.startswith(_IN_MEMORY), config=config)
    try:
        with own_errors():
            catalog.create(native)
            if confined:
                lock(native)
    except BaseException:
        native.close()
        raise
    file = None if place.startswith(_IN_MEMORY) else place
    # All connections of this process share the database ":memory:name", like a file.
    changes = Changes(is_sure=place == _IN_MEMORY, is_private=True, is_usual=not _finds_otherwise(config))
    return Connection(native, catalog, settings, changes, Inherited(file), read_only=read_only_tables)


def connection_on(
    native: duckdb.DuckDBPyConnection, folder: str, storage_options: Mapping[str, str] | None = None
) -> Connection:
    """Return a connection on which SQL can use the tables of a folder, for a connection that another library made."""
    catalog = _catalog(folder, storage_options, may_be_new=True)
    with own_errors():
        catalog.create(native)
    return Connection(native, catalog)


@checked_calls
class Connection:
    """A DuckDB connection with Lance tables: by name, by path (`FROM 'x.lance'`) and by version (`AT (VERSION => n)`).

    Created by `connect`. All other attributes come from DuckDB's connection (`fetchall`, `df`, `begin`, …).
    """

    def __init__(
        self,
        native: duckdb.DuckDBPyConnection,
        catalog: TableCatalog,
        settings: SearchSettings | None = None,
        changes: Changes | None = None,
        inherited: Inherited | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self._native = native
        self._catalog = catalog.used_by(self)
        self._session = Session(settings or SearchSettings())
        self._interrupt = Interrupt(partial(duckdb.InterruptException, "INTERRUPT Error: Interrupted!"))
        self._changes = changes or Changes()
        self._inherited = inherited or Inherited()
        leave_to_children(native)
        self._execution = Execution(
            native, self._catalog, self._session, self._changes, self._inherited, read_only=read_only
        )
        self._writer = self._execution.writer
        self._direct = DirectReads(native, self._catalog, self._execution, self._inherited)
        follow_relations(self, native)

    @property
    def native(self) -> duckdb.DuckDBPyConnection:
        """The underlying DuckDB connection."""
        self._writer.count.make()
        self._changes.is_sure = self._changes.is_private = False
        return self._native

    def sql(self, query: Any, **options: Any) -> Any:
        """Run a statement. A SELECT returns a relation that is read later. See `duckdb.DuckDBPyConnection.sql`.

        Raises:
            LanceDuckError: A table cannot be opened or read.
            duckdb.Error: DuckDB rejects the statement.
        """
        self._changes.is_sure = False  # a relation may create tables
        with self._interrupt:
            relation = None if options else self._execution.run_alone(self._native.sql, query, options)
            if relation is None:
                relation = self._execution.run(self._native.sql, query, options, later=True)
        return keep_connection(relation, self)

    query = from_query = sql

    def execute(self, query: Any, parameters: Any = None) -> Self:
        """Run a statement with parameters.

        The result is fetched from this connection. Raises the same errors as `sql`.
        """
        self._writer.count.drop()
        has_rows = self._execution.rows.finish()
        options = {} if parameters is None else {"parameters": parameters}
        with self._interrupt:
            if self._direct.answer(query, parameters, has_rows=has_rows):
                return self
            if self._execution.run_alone(self._native.execute, query, options) is None:
                self._execution.run(self._native.execute, query, options, later=False)
                self._direct.learn(query, parameters)
        return self

    def prepare(self, query: str) -> PreparedStatement[Self]:
        """Prepare a statement that runs many times, with different parameters.

        After its first run, a SELECT of plain columns of a Lance table finds its rows without DuckDB if WHERE compares
        an indexed column by `=` or IN. `count(*)` of a whole table, and `min` and `max` of indexed columns, are also
        answered without DuckDB. All other statements run as in `execute`.

        Args:
            query: One statement, with `?`, `$1` or `$name` for its parameters.

        Raises:
            InvalidInputError: The text does not contain exactly one statement. Other errors are raised when it runs.
        """
        return PreparedStatement(self.execute, query)

    def executemany(self, query: Any, parameters: Any = None) -> Self:
        """Run a statement for each list of parameters. Raises the same errors as `sql`."""
        options = {} if parameters is None else {"parameters": parameters}
        with self._interrupt:
            self._execution.run(self._native.executemany, query, options)
        return self

    def interrupt(self) -> None:
        """Stop the running statement. Other threads call this method, and the statement raises InterruptException.

        A change is stopped before it is published, or published as a whole. The connection can be used afterwards.
        """
        self._interrupt.request()
        self._native.interrupt()

    def append(self, table_name: str, df: Any, *, by_name: bool = False) -> Self:
        """Append the rows of a DataFrame to a table. A Lance table gets one new version."""
        native = partial(self._native.append, table_name, df, by_name=by_name)
        self.append_or(native, table_name, df, by_name=by_name)
        return self

    def append_or(self, native: Callable[[], object], table_name: str, rows: Any, *, by_name: bool = False) -> None:
        """Append rows to a Lance table. For other names, call a function of DuckDB."""

        def append() -> None:
            if not self._writer.append(table_name, rows, by_name=by_name):
                self._changes.is_sure = False
                native()

        with self._execution.measured(f"INSERT INTO {table_name}") as statement:
            statement.show()
            self._execution.with_new_tables(append)

    def execute_with(self, query: str, name: str, rows: Any) -> None:
        """Run a statement that reads rows by a name, such as a relation."""
        bind_name(self._native, name, rows)
        try:
            self.execute(query)
        finally:
            unbind_name(self._native, name)

    def is_lance(self, name: tuple[str, ...]) -> bool:
        """Return whether a new table with this name would be a Lance table."""
        place = self._execution.names.place_of_new(name, later=True)
        return place is not None and self._catalog.database(place[0]) is not None

    def appender(self, table: str, **options: Any) -> Any:
        """Return DuckDB's appender (2.0). Raises UnsupportedError for Lance tables. Use `append` instead."""
        self._execution.with_new_tables(partial(self._writer.refuse_appender, "appender", of=table))
        return self._of_duckdb("appender")(table, **options)

    def query_appender(self, dml: str, *arguments: Any, **options: Any) -> Any:
        """Return DuckDB's appender that runs a statement (2.0). Raises UnsupportedError for Lance tables."""
        self._execution.with_new_tables(partial(self._writer.refuse_appender, "query_appender", of=dml))
        return self._of_duckdb("query_appender")(dml, *arguments, **options)

    def table(self, name: str) -> Any:
        """Return a table or view by its name, as a relation."""
        return keep_connection(self._execution.run_named(name, self._native.table), self)

    def view(self, name: str) -> Any:
        """Return a view, or a Lance table, by its name, as a relation."""
        return keep_connection(self._execution.run_named(name, self._native.view), self)

    def get_table_names(self, query: str, *, qualified: bool = False) -> set[str]:
        """Return the names of the tables in a query, as they are written."""
        try:
            with duckdb.connect() as empty:  # in this connection, Lance tables have internal names
                return set(empty.get_table_names(query, qualified=qualified))
        except duckdb.Error:
            return set(self._of_duckdb("get_table_names")(query, qualified=qualified))

    def register(self, name: str, table: Any) -> Self:
        """Register an object under a name.

        All cursors can read registered Lance datasets. Other objects behave as in DuckDB.
        """
        self._changes.count += 1
        if isinstance(table, LanceDataset):
            with own_errors():
                self._catalog.add(name, TableHandle(table.uri, given=table))
        else:
            self._native.register(name, table)
        return self

    def unregister(self, name: str) -> Self:
        """Remove a name added by `register`."""
        self._changes.count += 1
        if not self._catalog.remove(name):
            self._native.unregister(name)
        return self

    @property
    def rowcount(self) -> int:
        """Number of rows changed by the last statement, or -1."""
        return self._native.rowcount if self._writer.rowcount is None else self._writer.rowcount

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._writer.in_transaction

    def begin(self) -> Self:
        """Begin a transaction. All its changes to a table become one version at `commit`."""
        return self.execute("BEGIN")

    def commit(self) -> Self:
        """Commit the transaction, if one is open.

        Raises CommitConflictError if other writers changed the same rows.
        """
        if self.in_transaction:
            return self.execute("COMMIT")
        guarded(self._native.commit, self._inherited)()  # some host programs call `commit` without a transaction
        return self

    def rollback(self) -> Self:
        """Discard the changes of the transaction."""
        return self.execute("ROLLBACK")

    def cursor(self) -> Connection:
        """Return a new connection to the same database and tables, for use in a different thread."""
        with self._inherited.use():
            native = self._native.cursor()
            self._catalog.prepare(native)
        more = (self._session.settings, self._changes, self._inherited)
        return Connection(native, self._catalog, *more, read_only=self._writer.read_only)

    duplicate = cursor

    def close(self) -> None:
        """Close the connection. The last cursor also closes all files. In a forked child, nothing is closed."""
        self._execution.rows.finish()
        if self._inherited.is_own:
            self._writer.close()
            self._direct.close()
            self._native.close()
            self._catalog.left_by(self)

    def fetch_arrow_table(self, rows_per_batch: int = _ROWS_PER_BATCH) -> pa.Table:
        """Return the remaining rows of the result. DuckDB 2 removed this method, but libraries still call it."""
        rows = self._of_duckdb("to_arrow_table")(rows_per_batch)
        ROWS_RETURNED.add(by=rows.num_rows)
        return rows

    def fetch_record_batch(self, rows_per_batch: int = _ROWS_PER_BATCH) -> pa.RecordBatchReader:
        """Return a reader of the remaining rows of the result.

        Like `fetch_arrow_table`, it exists for older libraries.
        """
        return self._of_duckdb("to_arrow_reader")(rows_per_batch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_native":
            raise AttributeError(name)
        if hasattr(type(self), name):
            return object.__getattribute__(self, name)  # raises the error of the property getter
        return self._of_duckdb(name)

    def _of_duckdb(self, name: str) -> Any:
        """Return an attribute of DuckDB's connection. Raises AttributeError if it does not exist."""
        if not hasattr(self._native, name):
            raise missing_attribute(self, name, dir(self), _OF_LANCEDB)
        count = self._writer.count
        if name in _FETCHES:
            method = self._execution.rows.reading(name, guarded(getattr(self._native, name), self._inherited, count))
            return self.__dict__.setdefault(name, _counting(method) if name in _WHOLE else method)
        count.make()
        attribute = getattr(self._native, name)
        if not callable(attribute):
            return attribute
        if name not in _ARROW:
            self._changes.is_sure = False
        method = self._execution.rows.reading(name, guarded(attribute, self._inherited))
        return wraps(attribute)(lambda *args, **options: keep_connection(method(*args, **options), self))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._native)})

    def __repr__(self) -> str:
        return f"<lance_duck.Connection with {self._catalog.describe()}>"

    def _repr_html_(self) -> str:
        """Return the Lance databases and their table names, without opening a table."""
        self._catalog.refresh()
        schemas = self._catalog.schemas
        tables = [(schema.database, schema.name, table) for schema in schemas for table in schema.tables]
        return f"<div><b>Connection</b> of lance_duck{rows_html(('database', 'schema', 'table'), tables)}</div>"


def _counting(fetch: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that also counts the rows that it returns."""

    @wraps(fetch)
    def call(*arguments: Any, **options: Any) -> Any:
        rows = fetch(*arguments, **options)
        ROWS_RETURNED.add(by=len(rows))
        return rows

    return call


def _finds_otherwise(config: Mapping[str, Any]) -> bool:
    """Return whether settings change the scope of DuckDB's variable lookup. The default is the calling frame."""
    return any(str(name).lower().startswith("python_") for name in config)


def _catalog(
    tables: Tables, storage_options: Mapping[str, str] | None, log: str | None = None, *, may_be_new: bool
) -> TableCatalog:
    folder, handles = None, {}
    if isinstance(tables, str | os.PathLike):
        folder = Folder(os.fspath(tables), storage_options, may_be_new=may_be_new)
    elif isinstance(tables, Mapping):
        handles = {name: _handle(table, storage_options) for name, table in tables.items()}
    elif tables is not None:
        raise InvalidInputError("bad tables", expected='a folder, or {"name": table}', found=type(tables).__name__)
    catalog = TableCatalog(handles, folder)
    catalog.binder.access.log_rows = log
    return catalog


def _handle(table: str | os.PathLike[str] | LanceDataset, storage_options: Mapping[str, str] | None) -> TableHandle:
    if isinstance(table, LanceDataset):
        return TableHandle(table.uri, given=table)
    return TableHandle(os.fspath(table), storage_options=storage_options)
