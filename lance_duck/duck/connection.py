"""A DuckDB connection on which Lance tables are tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Self

import duckdb
import pyarrow as pa

from lance_duck.arguments import checked_call, checked_calls
from lance_duck.dataset import LanceDataset
from lance_duck.duck.access import during_statement
from lance_duck.duck.catalog import FUNCTIONS, TableCatalog
from lance_duck.duck.changes.runner import ChangeRunner
from lance_duck.duck.changes.user_text import told_of
from lance_duck.duck.failures import identifier_not_read, own_errors, raise_own, unsupported_change, view_not_changed
from lance_duck.duck.foreign import ForeignTexts, changes_search
from lance_duck.duck.full_text.calls import may_find
from lance_duck.duck.full_text.rewrite import RewrittenText, TextRewriter
from lance_duck.duck.history.names import may_be_called
from lance_duck.duck.inherited import Inherited, guarded, leave_to_children
from lance_duck.duck.macros import load_history
from lance_duck.duck.names import Changes, Names
from lance_duck.duck.planner import Planner
from lance_duck.duck.row_identifiers.rewrite import RowIdentifierRewriter
from lance_duck.duck.run.rewriting import Database
from lance_duck.duck.run.search_settings import SearchSettings, Session, split_config
from lance_duck.duck.statement.identifiers import parts_of_name
from lance_duck.duck.statement.named_arguments import with_named_arguments
from lance_duck.duck.tables.folder import Folder
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.duck.tables.statement_versions import statement_context, with_one_version
from lance_duck.duck.user_scope import call_alone, call_as_user, drop_views
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.markup import rows_html
from lance_duck.store import checked_place

_FETCHES = frozenset({"fetchall", "fetchone", "fetchmany", "fetchdf", "df", "fetchnumpy"})
"""Methods of DuckDB's connection that read a result, and change nothing."""
_IN_MEMORY = ":memory:"
_ROWS_PER_BATCH = 1_000_000  # of DuckDB 1, where nothing is said
_OF_LANCEDB = {
    "create_table": "CREATE TABLE lance.name AS …, or lance_duck.write_dataset(data, uri)",
    "drop_table": "DROP TABLE name",
    "list_tables": 'SHOW TABLES, or lance_duck.connect_namespace("dir", {"root": folder}).list_tables()',
    "open_table": "table(name) is a relation, lance_duck.dataset(uri) a dataset",
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
) -> Connection:
    """Connect to DuckDB with Lance tables.

    Args:
        tables: A folder of `*.lance` tables, each named by its folder without the ending. New tables are found, and the
            first one makes the folder. Or a mapping of names to paths, URIs or datasets. A dataset is read at its own
            version, everything else at its newest.
        database: Database of DuckDB, as `duckdb.connect` takes it; in memory also where it is "".
        read_only: Refuse to change Lance tables, and open a database file for reading only.
        config: Settings of DuckDB, and those of `duck.run.search_settings` by the names that SET has for them:
            `lance_nearest`, `lance_nprobes`, `lance_ef`, `lance_refine_factor`, `lance_recall`.
        storage_options: Settings of the object store that the folder, or the tables of the mapping, lie in. For others
            there is CREATE SECRET.

    Raises:
        NotFoundError: There is no such table, or no such folder to read.
        LanceDuckError: A table of the mapping cannot be opened. Tables of a folder are opened when they are read.
    """
    place = checked_place(_IN_MEMORY if database == "" else database)
    catalog = _catalog(tables, storage_options, may_be_new=not read_only)
    settings, config = split_config(config or {})
    with own_errors():
        native = duckdb.connect(place, read_only=read_only and not place.startswith(_IN_MEMORY), config=config)
    try:
        with own_errors():
            catalog.create(native)
    except BaseException:
        native.close()
        raise
    file = None if place.startswith(_IN_MEMORY) else place
    # ":memory:name" is one database that all connections of this process share, like a file.
    changes = Changes(is_sure=place == _IN_MEMORY, is_private=True, is_usual=not _finds_otherwise(config))
    return Connection(native, catalog, settings, changes, Inherited(file), read_only=read_only)


@checked_calls
class Connection:
    """DuckDB's connection, on which Lance tables have names, and `FROM 'x.lance'` and `AT (VERSION => n)` work.

    Made by `connect`. Whatever is not defined here is DuckDB's own (`fetchall`, `df`, `begin`, …).
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
        self._changes = changes or Changes()
        self._inherited = inherited or Inherited()
        leave_to_children(native)
        names = self._names = Names(native, catalog, self._changes)
        self._planner = Planner(Database(native, catalog, names, self._session))
        self._foreign = ForeignTexts(catalog)
        self._texts = TextRewriter(catalog, names)
        self._identifiers = RowIdentifierRewriter(catalog, names)
        self._writer = ChangeRunner(native, catalog, names, read_only=read_only)
        self._knows_history = False

    @property
    def native(self) -> duckdb.DuckDBPyConnection:
        """DuckDB's own connection."""
        self._writer.count.make()
        self._changes.is_sure = self._changes.is_private = False
        return self._native

    def sql(self, query: Any, **options: Any) -> Any:
        """Run a statement; a SELECT gives a relation that is read later. See `duckdb.DuckDBPyConnection.sql`.

        Raises:
            LanceDuckError: A table cannot be opened or read.
            duckdb.Error: DuckDB refuses the statement.
        """
        self._changes.is_sure = False  # a relation may create tables
        relation = None if options else self._alone(self._native.sql, query, options)
        if relation is not None:
            return relation
        return self._run(self._native.sql, query, options, later=True)

    query = from_query = sql

    def execute(self, query: Any, parameters: Any = None) -> Self:
        """Run a statement with parameters; the result is fetched from this connection. Raises as `sql`."""
        self._writer.count.drop()
        options = {} if parameters is None else {"parameters": parameters}
        if self._alone(self._native.execute, query, options) is None:
            self._run(self._native.execute, query, options, later=False)
        return self

    def executemany(self, query: Any, parameters: Any = None) -> Self:
        """Run a statement for each list of parameters. Raises as `sql`."""
        self._run(self._native.executemany, query, {} if parameters is None else {"parameters": parameters})
        return self

    def append(self, table_name: str, df: Any, *, by_name: bool = False) -> Self:
        """Add the rows of a frame to a table; to a Lance table as one version."""

        def append() -> Any:
            if not self._writer.append(table_name, df, by_name=by_name):
                self._changes.is_sure = False
                self._native.append(table_name, df, by_name=by_name)

        self._with_new_tables(append)
        return self

    def appender(self, table: str, **options: Any) -> Any:
        """Return DuckDB's appender (2.0). Raises UnsupportedError for Lance tables, which `append` adds rows to."""
        self._with_new_tables(partial(self._writer.refuse_appender, "appender", of=table))
        return self._of_duckdb("appender")(table, **options)

    def query_appender(self, dml: str, *arguments: Any, **options: Any) -> Any:
        """Return DuckDB's appender that runs a statement (2.0). Raises UnsupportedError for Lance tables."""
        self._with_new_tables(partial(self._writer.refuse_appender, "query_appender", of=dml))
        return self._of_duckdb("query_appender")(dml, *arguments, **options)

    def table(self, name: str) -> Any:
        """Return a table or view by its name, as a relation."""
        return self._named(name, self._native.table)

    def view(self, name: str) -> Any:
        """Return a view, or a Lance table, by its name, as a relation."""
        return self._named(name, self._native.view)

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
        """Remove a name given by `register`."""
        self._changes.count += 1
        if not self._catalog.remove(name):
            self._native.unregister(name)
        return self

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed; -1 if it changed none."""
        return self._native.rowcount if self._writer.rowcount is None else self._writer.rowcount

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._writer.in_transaction

    def begin(self) -> Self:
        """Begin a transaction: what it changes becomes one version of a table at `commit`, or none."""
        return self.execute("BEGIN")

    def commit(self) -> Self:
        """Commit the transaction, if one was begun. Raises CommitConflictError where others changed the same rows."""
        if self.in_transaction:
            return self.execute("COMMIT")
        guarded(self._native.commit, self._inherited)()  # for hosts that call it without a transaction
        return self

    def rollback(self) -> Self:
        """Discard the changes of the transaction."""
        return self.execute("ROLLBACK")

    def cursor(self) -> Connection:
        """Return another connection to the same database and tables, for use in another thread."""
        with self._inherited.use():
            native = self._native.cursor()
            self._catalog.prepare(native)
        more = (self._session.settings, self._changes, self._inherited)
        return Connection(native, self._catalog, *more, read_only=self._writer.read_only)

    duplicate = cursor

    def close(self) -> None:
        """Close the connection, and with the last cursor all files. A forked child only forgets the connection."""
        if self._inherited.is_own:
            self._writer.close()
            self._native.close()
            self._catalog.left_by(self)

    def fetch_arrow_table(self, rows_per_batch: int = _ROWS_PER_BATCH) -> pa.Table:
        """Return the rows of the result that are left: DuckDB 2 has dropped this name, and libraries still call it."""
        return self._of_duckdb("to_arrow_table")(rows_per_batch)

    def fetch_record_batch(self, rows_per_batch: int = _ROWS_PER_BATCH) -> pa.RecordBatchReader:
        """Return a reader of the rows of the result that are left, for libraries as `fetch_arrow_table` is."""
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
            return object.__getattribute__(self, name)  # raises what the property raised
        return self._of_duckdb(name)

    def _of_duckdb(self, name: str) -> Any:
        """Return an attribute of DuckDB's connection. Raises AttributeError where it has none of that name."""
        if not hasattr(self._native, name):
            hint = f"; {_OF_LANCEDB[name]}" if name in _OF_LANCEDB else ""
            raise AttributeError(f"'Connection' object has no attribute {name!r}{hint}", name=name, obj=self)
        count = self._writer.count
        if name in _FETCHES:
            return self.__dict__.setdefault(name, guarded(getattr(self._native, name), self._inherited, count))
        count.make()
        attribute = getattr(self._native, name)
        if not callable(attribute):
            return attribute
        self._changes.is_sure = False
        return guarded(attribute, self._inherited)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._native)})

    def __repr__(self) -> str:
        return f"<lance_duck.Connection with {self._catalog.describe()}>"

    def _repr_html_(self) -> str:
        """Return the databases of Lance tables with the names of their tables, none of which is opened."""
        self._catalog.refresh()
        tables = [(database.name, table) for database in self._catalog.databases for table in database.tables]
        return f"<div><b>Connection</b> of lance_duck{rows_html(('database', 'table'), tables)}</div>"

    def _named(self, name: str, native: Callable[[str], Any]) -> Any:
        """Return what has a name as a relation, which a method of DuckDB's gives unless it is a Lance table."""
        self._changes.is_sure = False

        def found() -> Any:
            parts = parts_of_name(name)
            with self._writer.reading(name, later=True):
                is_view = self._names.are_ours(parts, later=True)
                shown = self._writer.visible(f"FROM {name}") if is_view else ""
                if is_view and (shown != f"FROM {name}" or len(parts) > 1):  # DuckDB 1 takes no qualified name
                    return self._writer.settled(self._native.sql(shown))
                return self._writer.settled((self._native.view if is_view else native)(name))

        return self._with_new_tables(found, name)

    def _text_of(self, statement: duckdb.Statement) -> str | None:
        """Return the text of a parsed statement; None if it is for DuckDB alone.

        Raises:
            UnsupportedError: It has none, as those have that DuckDB 1 makes of a PIVOT, and a transaction is open.
        """
        text = statement.query
        if self._writer.in_transaction and not text.strip():
            raise UnsupportedError(
                "a parsed statement without its text in a transaction",
                where=str(statement.type),
                remedy="execute the text that it was parsed from",
            )
        with own_errors(), self._inherited.use():
            self._catalog.refresh()
        if self._writer.in_transaction or self._writer.transaction(text) is not None:
            return text
        return None if not text.strip() or text in self._foreign else text

    def _run(
        self, method: Callable[..., Any], query: Any, options: Mapping[str, Any], *, later: bool | None = None
    ) -> Any:
        """Run a method of DuckDB's with a statement as its first argument.

        Args:
            method: The method.
            query: The statement.
            options: Further arguments.
            later: Whether rows are read later; None: the statement runs as it stands, perhaps several times.
        """
        if not later:
            self._writer.count.drop()
        drop_views(self._native)
        self._introduce_history(text := getattr(query, "query", query), later=bool(later))
        if isinstance(query, duckdb.Statement):
            query = self._text_of(query) or query
        if not isinstance(query, str):
            self._writer.rowcount = None
            call = partial(call_as_user, partial(method, query, **options))
            return self._with_new_tables(partial(with_one_version, call), text)
        query = self._session.shown(with_named_arguments(query, FUNCTIONS))
        if (statements := self._writer.several(query)) is not None:
            for statement in statements[:-1]:
                self._run(self._native.execute, statement, {}, later=False)
            return self._run(method, statements[-1], options, later=later)
        query = self._writer.executed(query)
        if changes_search(query):
            self._changes.is_usual = False
        if (transaction := self._writer.transaction(query)) is not None:
            return transaction(lambda: self._with_new_tables(partial(method, query, **options), query))

        def run() -> Any:
            if not self._writer.in_transaction and query in self._foreign and not may_find(query):
                self._writer.rowcount = None
                return with_one_version(partial(call_as_user, partial(method, query, **options)))
            with self._writer.reading(query, later=bool(later)):
                rewritten = self._texts.rewritten(query, later=bool(later))
                text = rewritten.text
                with told_of(query, text):
                    values = options.get("parameters", options.get("params"))
                    if (change := self._writer.find(text, values, later=later)) is not None:
                        return self._writer.run(change, method, options, later=later)
                    read = partial(self._read_carried, method, rewritten, options, later=later)
                    prepared = self._writer.prepared(rewritten.carried, read)
                    return self._writer.settled(with_one_version(prepared or read))

        try:
            return self._with_new_tables(run, None if later is None else query)
        except duckdb.Error as error:
            refused = identifier_not_read(error) if self._catalog.vocabulary.may_be_in(query) else None
            if refused is not None:
                raise refused from error
            name = view_not_changed(query, error)
            if name is None or not self._names.are_ours(parts_of_name(name), later=bool(later)):
                raise
            raise unsupported_change(name, query) from error

    def _read_carried(
        self, method: Callable[..., Any], rewritten: RewrittenText, options: Mapping[str, Any], *, later: bool | None
    ) -> Any:
        """Run a statement that changes no Lance table, its calls carried to their tables unless DuckDB refuses that."""
        if rewritten.carried != rewritten.text:
            try:
                return self._read(method, rewritten.carried, options, later=later)
            except duckdb.InterruptException:
                raise
            except duckdb.Error as error:
                try:
                    return self._read(method, rewritten.text, options, later=later)
                except duckdb.TransactionException:
                    raise error from None  # the error ended the transaction
        return self._read(method, rewritten.text, options, later=later)

    def _read(self, method: Callable[..., Any], text: str, options: Mapping[str, Any], *, later: bool | None) -> Any:
        """Run a statement that changes no Lance table."""
        identified = self._identifiers.rewritten(text, later=bool(later))
        with told_of(text, identified):
            return self._planner.run(method, self._writer.visible(identified), options, later=later)

    def _alone(self, method: Callable[..., Any], query: object, options: Mapping[str, Any]) -> Any:
        """Return DuckDB's result for a SELECT that can run before any names are looked up.

        None for all other statements, and where DuckDB does not find a name: that is looked for as those of all other
        statements are.

        Args:
            method: DuckDB's.
            query: The statement.
            options: Further arguments.
        """
        usual = self._changes
        if not isinstance(query, str) or not (usual.is_private and usual.is_usual) or self._writer.in_transaction:
            return None
        if not self._foreign.is_select(query):
            return None
        self._writer.rowcount = None
        uses = self._inherited.begun()
        try:
            return statement_context().run(call_alone, method, query, options)
        except duckdb.Error as error:
            self._foreign.forget(query)
            if not isinstance(error, duckdb.CatalogException) and not self._catalog.refresh():
                raise_own(error)
                raise
        finally:
            uses.pop()
        return None

    def _with_new_tables(self, call: Callable[[], Any], statement: object = None) -> Any:
        """Call DuckDB, and again if a name that it did not know has meanwhile become a table of the folder."""
        try:
            with self._inherited.use(), self._changes.during(statement), during_statement():
                self._catalog.refresh(statement)
                try:
                    return call()
                except duckdb.CatalogException as error:
                    if self._catalog.refresh(force=True) or self._introduce_history(str(error), later=True):
                        return call()
                    raise self._catalog.explain(str(error), self._current_database, statement) or error from None
        except duckdb.Error as error:
            raise_own(error)
            raise

    def _current_database(self) -> str:
        """Return the database that unqualified names are looked up in first; empty after a transaction failed."""
        with suppress(duckdb.Error):
            return str(self._native.sql("SELECT current_database()").fetchall()[0][0])
        return ""

    def _introduce_history(self, text: object, *, later: bool) -> bool:
        """Make the functions of history known to DuckDB before a text that may call one; False where they are already.

        Args:
            text: A statement, or an error.
            later: A result that was not fetched yet has to stay.
        """
        if self._knows_history or not isinstance(text, str) or not may_be_called(text):
            return False
        with own_errors():
            load_history(self._native.sql if later else self._native.execute)
        self._knows_history = not self._writer.in_transaction  # a ROLLBACK would remove them
        return True


def _finds_otherwise(config: Mapping[str, Any]) -> bool:
    """Return whether settings say where DuckDB looks for variables, which by default is the frame that calls it."""
    return any(str(name).lower().startswith("python_") for name in config)


def _catalog(tables: Tables, storage_options: Mapping[str, str] | None, *, may_be_new: bool) -> TableCatalog:
    if tables is None:
        return TableCatalog({})
    if isinstance(tables, str | os.PathLike):
        return TableCatalog({}, Folder(os.fspath(tables), storage_options, may_be_new=may_be_new))
    if not isinstance(tables, Mapping):
        raise InvalidInputError("bad tables", expected='a folder, or {"name": table}', found=type(tables).__name__)
    return TableCatalog({name: _handle(table, storage_options) for name, table in tables.items()})


def _handle(table: str | os.PathLike[str] | LanceDataset, storage_options: Mapping[str, str] | None) -> TableHandle:
    if isinstance(table, LanceDataset):
        return TableHandle(table.uri, given=table)
    return TableHandle(os.fspath(table), storage_options=storage_options)
