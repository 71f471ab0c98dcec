"""A DuckDB connection on which Lance tables are tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import TracebackType
from typing import Any, Self

import duckdb

from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import Catalog
from lance_duck.duck.explain import explained, rows_as_statement
from lance_duck.duck.failures import own_errors
from lance_duck.duck.folder import Folder
from lance_duck.duck.handle import TableHandle
from lance_duck.duck.names import Changes, Names
from lance_duck.duck.narrowing import Narrower
from lance_duck.duck.nearest_first import NearestFirst
from lance_duck.duck.nearest_join import NearestJoin
from lance_duck.duck.rewrite import paths_in, rewrite
from lance_duck.duck.rows_first import RowsFirst
from lance_duck.duck.scope import call_as_user
from lance_duck.duck.search_first import SearchFirst
from lance_duck.duck.search_settings import SearchSettings, Session, split_config
from lance_duck.duck.table import DuckTable
from lance_duck.errors import InvalidInputError

_ONLY_READ = frozenset({"fetchall", "fetchone", "fetchmany", "fetchdf", "df", "fetchnumpy", "description", "rowcount"})
Tables = str | os.PathLike[str] | Mapping[str, "str | os.PathLike[str] | LanceDataset"] | None


def connect(
    tables: Tables = None,
    database: str | os.PathLike[str] = ":memory:",
    read_only: bool = False,
    config: Mapping[str, Any] | None = None,
) -> Connection:
    """Connect to DuckDB with Lance tables in reach.

    Args:
        tables: A folder of `*.lance` tables (path or URI; each is known by its name without the ending, and tables that
            come later are found), or a mapping of names to paths, URIs or datasets. A dataset is read at its own
            version, everything else at its newest.
        database: Database of DuckDB, as `duckdb.connect` takes it.
        read_only: Open that database for reading only.
        config: Settings of DuckDB, and those of `duck.search_settings` by the names that SET has for them:
            `lance_nearest`, `lance_nprobes`, `lance_ef`, `lance_refine_factor`.

    Raises:
        NotFoundError: There is no such folder or table.
        LanceDuckError: A table of the mapping cannot be opened. Tables of a folder are opened when they are read.
    """
    catalog = _catalog(tables)
    settings, config = split_config(config or {})
    native = duckdb.connect(os.fspath(database), read_only=read_only, config=config)
    try:
        with own_errors():
            catalog.create(native)
    except BaseException:
        native.close()
        raise
    return Connection(native, catalog, settings, Changes(is_sure=os.fspath(database) == ":memory:"))


class Connection:
    """DuckDB's connection, on which Lance tables have names, and `FROM 'x.lance'` and `AT (VERSION => n)` work.

    Made by `connect`. Whatever is not defined here is DuckDB's own (`fetchall`, `df`, `begin`, …).
    """

    def __init__(
        self,
        native: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        settings: SearchSettings | None = None,
        changes: Changes | None = None,
    ) -> None:
        self._native = native
        self._catalog = catalog
        self._session = Session(settings or SearchSettings())
        self._narrower = Narrower(native, catalog)
        self._changes = changes or Changes()
        names = Names(native, catalog, self._changes)
        self._nearest = NearestFirst(native, catalog, names, self._session)
        self._joins = NearestJoin(native, catalog, names, self._session)
        self._rows = RowsFirst(native, catalog, names)
        self._searches = SearchFirst(catalog, self._rows)

    @property
    def native(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection."""
        self._changes.is_sure = False
        return self._native

    def sql(self, query: Any, **options: Any) -> Any:
        """Run a statement; a SELECT gives a relation that is read later. See `duckdb.DuckDBPyConnection.sql`.

        Raises:
            LanceDuckError: A table cannot be opened or read.
            duckdb.Error: DuckDB refuses the statement.
        """
        self._changes.is_sure = False  # a relation may create tables
        return self._run(self._native.sql, query, options, later=True)

    query = from_query = sql

    def execute(self, query: Any, parameters: Any = None) -> Self:
        """Run a statement with parameters; the result is fetched from this connection. Raises as `sql`."""
        options = {} if parameters is None else {"parameters": parameters}
        self._run(self._native.execute, query, options, later=False)
        return self

    def executemany(self, query: Any, parameters: Any = None) -> Self:
        """Run a statement for each list of parameters. Raises as `sql`."""
        self._run(self._native.executemany, query, {} if parameters is None else {"parameters": parameters})
        return self

    def table(self, name: str) -> Any:
        """A table or view by its name, as a relation."""
        self._changes.is_sure = False
        method = self._native.view if self._catalog.find(name) else self._native.table
        return self._with_new_tables(partial(method, name))

    def register(self, name: str, table: Any) -> Self:
        """Give a table a name: a Lance dataset for all cursors, anything else as DuckDB does."""
        self._changes.count += 1
        if isinstance(table, LanceDataset):
            with own_errors():
                self._catalog.add(name, TableHandle(table.uri, given=table))
        else:
            self._native.register(name, table)
        return self

    def unregister(self, name: str) -> Self:
        """Take a name back."""
        self._changes.count += 1
        if not self._catalog.remove(name):
            self._native.unregister(name)
        return self

    def cursor(self) -> Connection:
        """Another connection to the same database and tables, for use in another thread."""
        native = self._native.cursor()
        self._catalog.prepare(native)
        return Connection(native, self._catalog, self._session.settings, self._changes)

    duplicate = cursor

    def close(self) -> None:
        """Close the connection; cursors stay open."""
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._native, name)
        if name not in _ONLY_READ:
            self._changes.is_sure = False
        return _guarded(found) if callable(found) else found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._native)})

    def __repr__(self) -> str:
        return f"<lance_duck.Connection with {self._catalog.describe()}>"

    def _run(
        self, method: Callable[..., Any], query: Any, options: Mapping[str, Any], *, later: bool | None = None
    ) -> Any:
        """Run a method of DuckDB's with a statement as its first argument.

        Args:
            method: The method.
            query: The statement.
            options: Further arguments.
            later: Rows are read at some later time; None: the statement runs as it stands, perhaps several times.
        """
        if not isinstance(query, str):
            return self._with_new_tables(lambda: call_as_user(partial(method, query, **options), {}))
        if self._session.takes(query):
            return None
        text = rewrite(query, self._catalog.is_table)
        tables = {path: DuckTable(self._catalog.path_handle(path).current, hidden=False) for path in paths_in(text)}

        def run(sql: Any, more: Mapping[str, Any], given: Any = None) -> Any:
            chosen = options if given is None else {**options, "parameters": given}
            return call_as_user(partial(method, sql, **chosen), {**tables, **more})

        if later is None:
            return self._with_new_tables(lambda: run(text, {}))
        parameters = options.get("parameters", options.get("params"))
        return self._with_new_tables(
            lambda: self._narrowed(text, parameters, partial(_explained, run, method), later), text
        )

    def _narrowed(self, sql: str, parameters: Any, run: Callable[..., Any], later: bool) -> Any:
        """Run a statement with smaller tables in place of large ones, where that is possible."""
        found = self._nearest.replaced(sql, parameters, later=later)
        if found is None and not later:
            found = self._searches.replaced(sql, parameters) or self._rows.replaced(sql, parameters)
            found = found or self._joins.replaced(sql, parameters)
        if found is None:
            found = self._narrower.narrowed(sql, parameters, later=later)
        if found is None:
            return run(sql, {})
        try:
            return run(found.sql, found.tables, found.parameters, found.plan)
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            try:
                return run(sql, {})  # errors speak of the statement as it was given
            except duckdb.TransactionException:
                raise error from None  # which ended the transaction

    def _with_new_tables(self, call: Callable[[], Any], statement: object = None) -> Any:
        """Call, and once more when a name was unknown that is a table of the folder by now."""
        with own_errors(), self._changes.during(statement):
            self._catalog.refresh()
            try:
                return call()
            except duckdb.CatalogException as error:
                if self._catalog.refresh(force=True):
                    return call()
                raise self._catalog.explain(str(error)) or error from None


def _explained(
    run: Callable[..., Any],
    method: Callable[..., Any],
    sql: Any,
    tables: Mapping[str, Any],
    given: Any = None,
    plan: str | None = None,
) -> Any:
    """Run a statement; to an EXPLAIN is added how Lance tables are read."""
    rows = None
    if isinstance(sql, str):
        rows = explained(sql, lambda text: run(text, tables, given).fetchall(), plan)
    return run(sql, tables, given) if rows is None else method(rows_as_statement(rows))


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, from which our errors come out as they are: rows are often read only when they are fetched."""

    @wraps(method)
    def guarded(*args: Any, **options: Any) -> Any:
        with own_errors():
            return method(*args, **options)

    return guarded


def _catalog(tables: Tables) -> Catalog:
    if tables is None:
        return Catalog({})
    if isinstance(tables, str | os.PathLike):
        return Catalog({}, Folder(os.fspath(tables)))
    if not isinstance(tables, Mapping):
        raise InvalidInputError("bad tables", expected="a folder or a mapping of names", found=type(tables).__name__)
    return Catalog({name: _handle(table) for name, table in tables.items()})


def _handle(table: str | os.PathLike[str] | LanceDataset) -> TableHandle:
    if isinstance(table, LanceDataset):
        return TableHandle(table.uri, given=table)
    return TableHandle(os.fspath(table))
