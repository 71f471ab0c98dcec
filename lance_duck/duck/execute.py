"""Run statements, from the user's text to DuckDB's result.

    resolve named arguments, setting values and EXECUTE; split several statements
    → BEGIN and COMMIT      `changes.runner`
    → WHERE next to `prefilter := true`   `prefilter.pushdown`
    → full-text calls       `full_text.rewrite`
    → changes of tables     `changes.runner`
    → other statements row identifiers, versions of the transaction, then attempts of `planner`

`first_accepted` tries the attempts in order. `statement.user_text.told_of` translates error positions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import duckdb

from lance_duck import interrupts
from lance_duck.duck.access import during_statement
from lance_duck.duck.catalog import FUNCTIONS, TableCatalog
from lance_duck.duck.changes.runner import ChangeRunner
from lance_duck.duck.confinement import check_locked_functions, refused_error
from lance_duck.duck.databases.objects import single_statement
from lance_duck.duck.failures import (
    identifier_not_read,
    is_about_released,
    is_about_versions,
    own_errors,
    raise_own,
    unsupported_change,
    view_not_changed,
)
from lance_duck.duck.foreign import ForeignTexts, changes_search
from lance_duck.duck.full_text.calls import may_find
from lance_duck.duck.full_text.rewrite import TextRewriter
from lance_duck.duck.history.names import may_be_called
from lance_duck.duck.inherited import Inherited
from lance_duck.duck.macros import load_history
from lance_duck.duck.names import Changes, Names
from lance_duck.duck.open_rows import OpenRows
from lance_duck.duck.planner import Planner
from lance_duck.duck.prefilter.pushdown import PrefilterPushdown
from lance_duck.duck.row_identifiers.rewrite import RowIdentifierRewriter
from lance_duck.duck.rules import spelling
from lance_duck.duck.run.repeats import Repeats
from lance_duck.duck.run.rewriting import Database
from lance_duck.duck.run.search_settings import SearchSettings, Session
from lance_duck.duck.running_statement import RunningStatement
from lance_duck.duck.statement.identifiers import parts_of_name, quoted
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.named_arguments import named_arguments
from lance_duck.duck.statement.tokens import plain_spaces
from lance_duck.duck.statement.user_text import drawn, told_of
from lance_duck.duck.tables.statement_versions import listing_names, statement_context, with_one_version
from lance_duck.duck.user_scope import call_alone, call_as_user, call_without_variables, drop_views
from lance_duck.errors import LanceDuckError, NotFoundError, UnsupportedError, warn_of_table
from lance_duck.telemetry.observing import is_observed

T = TypeVar("T")
_OF_LANCE: Final = re.compile(r"\blance_\w|prefilter|rowid|_rowaddr|\bnearest\b", re.IGNORECASE)
"""Matches a part of the texts that the stages of this module rewrite."""
Method = Callable[..., Any]
"""A method of DuckDB's connection whose first argument is a statement."""
Options = Mapping[str, Any]


class Execution:
    """Runs the statements of one connection.

    Args:
        native: DuckDB's connection.
        catalog: Its Lance tables.
        session: Its search settings.
        changes: Counters shared by all connections to the database.
        inherited: The database, and whether this process may use it.
        read_only: Whether changes of Lance tables are rejected.

    Attributes:
        names: Name resolver of the connection.
        planner: Planner of statements that read.
        writer: Runner of statements that change tables.
        rows: Measures statements until their rows are read.
    """

    def __init__(
        self,
        native: duckdb.DuckDBPyConnection,
        catalog: TableCatalog,
        session: Session,
        changes: Changes,
        inherited: Inherited,
        *,
        read_only: bool,
    ) -> None:
        self._native = native
        self._catalog = catalog
        self._session = session
        self._changes = changes
        self._inherited = inherited
        self.names = Names(native, catalog, changes)
        database = Database(native, catalog, self.names, session)
        self.planner = Planner(database)
        self._prefilters = PrefilterPushdown(database)
        self.writer = ChangeRunner(native, catalog, self.names, session, read_only=read_only)
        self._foreign = ForeignTexts(catalog)
        self._texts = TextRewriter(catalog, self.names)
        self._identifiers = RowIdentifierRewriter(catalog, self.names)
        self._knows_history = False
        self._is_confined = catalog.binder.access.is_confined
        self.rows = OpenRows()

    def run(self, method: Method, query: Any, options: Mapping[str, Any], *, later: bool | None = None) -> Any:
        """Run one or more statements through the stages in the module docstring.

        Args:
            method: DuckDB's `sql`, `execute` or `executemany`.
            query: The text, or a parsed statement.
            options: Further arguments of the method.
            later: Whether rows are read after this call returns. None if the statement runs once for each list of
                parameters.

        Raises:
            LanceDuckError: A table cannot be opened, read or changed.
            duckdb.Error: DuckDB rejects the statement.
        """
        if not later:
            self.writer.count.drop()
            self.rows.finish()
        drop_views(self._native)
        with self.measured(getattr(query, "query", query), options) as statement:
            return self.rows.opened(statement, self._run(method, query, options, statement, later=later))

    def measured(self, text: object, options: Mapping[str, Any] | None = None) -> RunningStatement:
        """Return the context that measures a statement with options of `run`."""
        slow_ms = self._session.settings.slow_statement_ms
        explain = None if slow_ms is None else partial(self._plan_of, options or {})
        folder = self._catalog.default.folder
        return RunningStatement(str(text), slow_ms, explain, "" if folder is None else folder.uri)

    def _plan_of(self, options: Mapping[str, Any], explain: str) -> str:
        """Return the result of an EXPLAIN. It runs on a cursor, because this connection may hold rows."""
        with self._native.cursor() as cursor:
            self._catalog.prepare(cursor)
            shared = (self._catalog, self._session, self._changes, self._inherited)
            other = Execution(cursor, *shared, read_only=self.writer.read_only)
            return str(other._run(cursor.execute, explain, options, None, later=False).fetchall()[0][1])

    def _run(
        self, method: Method, query: Any, options: Options, running: RunningStatement | None, *, later: bool | None
    ) -> Any:
        """Run statements. `running` measures a single statement, and is None for a part of one."""
        self._introduce_history(text := getattr(query, "query", query), later=bool(later))
        if self._is_confined:
            check_locked_functions(text)
        if isinstance(query, duckdb.Statement):
            query = self._text_of(query) or query
        if not isinstance(query, str):
            if running is not None:
                running.show()
            self.writer.rowcount = None
            call = partial(call_as_user, partial(method, query, **options))
            return self._with_a_path(text, partial(self.with_new_tables, partial(with_one_version, call), text))
        lifted = LiftedText.of(plain_spaces(query))
        lifted = lifted.edited(named_arguments(lifted, FUNCTIONS))
        query = lifted.edited(self._session.shown(lifted)).sql
        if (statements := self.writer.several(query, later=later)) is not None:
            if running is not None:
                running.leave()
            for statement in statements[:-1]:
                self.run(self._native.execute, statement, {}, later=False)
                self.writer.drop_rows()
            return self.run(method, statements[-1], options, later=later)
        if running is not None:
            running.show()
        query = self.writer.executed(query)
        sets = options.get("parameters", options.get("params")) if later is None else None
        if sets and self._prefilters.may_apply(LiftedText.of(query)):
            execute = self._native.execute
            return [self._run(execute, query, {"parameters": values}, None, later=False) for values in sets][-1]
        if changes_search(query):
            self._changes.is_usual = False
        if (transaction := self.writer.transaction(query)) is not None:
            lists = not self.writer.in_transaction  # names that COMMIT published would conflict with its own
            return transaction(lambda: self.with_new_tables(partial(method, query, **options), query, lists=lists))
        try:
            run = partial(self._run_one, method, query, options, later=later)
            return self._with_a_path(query, partial(self.with_new_tables, run, None if later is None else query))
        except duckdb.Error as error:
            if self.writer.in_transaction and is_about_released(error):
                raise NotFoundError(
                    "another writer dropped a table of this statement after the transaction began",
                    remedy="ROLLBACK, then run the transaction again",
                ) from error
            if is_about_versions(error) and (missing := self._without_versions(query, error)) is not None:
                raise missing from None
            refused = identifier_not_read(error) if self._catalog.vocabulary.may_be_in(query) else None
            if refused is not None:
                raise refused from error
            name = view_not_changed(query, error)
            if name is None or not self.names.are_ours(parts_of_name(name), later=bool(later)):
                raise
            raise unsupported_change(name, query) from error

    def _with_a_path(self, text: str, call: Callable[[], T]) -> T:
        """Run a statement. If it resets the search path, the initial one is set, so that the folder stays current."""
        answer = call()
        if changes_search(text):
            self._catalog.restore_path(self._native)
        return answer

    def run_alone(self, method: Method, query: object, options: Mapping[str, Any]) -> Any:
        """Run a SELECT without looking up names first.

        Returns:
            DuckDB's result. None for other statements, and if a name is unknown. The caller then uses `run`.
        """
        usual = self._changes
        if not isinstance(query, str) or not (usual.is_private and usual.is_usual) or self.writer.in_transaction:
            return None
        if is_observed():
            return None
        if self._is_confined:
            check_locked_functions(query)
        if not self._foreign.is_select(query):
            return None
        if self._catalog.default.folder is not None:
            self._catalog.refresh()  # a new Lance table may have the name of a native table
            if not self._foreign.is_select(query):
                return None
        with self.measured(query, options) as statement:
            answer = self._answer_alone(method, query, options)
            if answer is None:
                statement.leave()
            return self.rows.opened(statement, answer)

    def _answer_alone(self, method: Method, query: str, options: Mapping[str, Any]) -> Any:
        self.writer.rowcount = None
        interrupts.check()
        uses = self._inherited.begun()
        try:
            return statement_context().run(call_alone, method, query, options)
        except duckdb.Error as error:
            self._foreign.forget(query)
            is_unknown = isinstance(error, duckdb.CatalogException) or is_about_versions(error)
            if not is_unknown and not self._catalog.refresh():
                self._raise_meaning(error, query)
                raise
        finally:
            uses.pop()
        return None

    def run_named(self, name: str, native: Callable[[str], Any]) -> Any:
        """Return a table or view as a relation.

        Args:
            name: The name in SQL syntax.
            native: DuckDB's method for native tables.
        """
        self._changes.is_sure = False

        def found() -> Any:
            parts = parts_of_name(name)
            with self.writer.reading(name, later=True):
                is_view = self.names.are_ours(parts, later=True)
                shown = self.writer.visible(LiftedText.of(f"FROM {name}")).sql if is_view else ""
                if is_view and (shown != f"FROM {name}" or len(parts) > 1):  # DuckDB 1 does not accept qualified names
                    return self.writer.settled(self._native.sql(shown))
                return self.writer.settled((self._native.view if is_view else native)(name))

        return self.with_new_tables(found, name)

    def with_new_tables(self, call: Callable[[], Any], statement: object = None, *, lists: bool = True) -> Any:
        """Call DuckDB. Retry if other writers have changed names meanwhile.

        Args:
            call: Calls DuckDB.
            statement: The text to run.
            lists: Whether the names of the folder are brought up to date first.
        """
        try:
            with self._inherited.use(), self._changes.during(statement), during_statement(), listing_names():
                return self._repeated(call, statement) if lists else call()
        except duckdb.Error as error:
            self._raise_meaning(error, statement)
            raise

    def _raise_meaning(self, error: duckdb.Error, statement: object) -> None:
        """Raise the error of this package that a DuckDB error stands for, if any."""
        refused = refused_error(error, statement) if self._is_confined else None
        if refused is not None:
            raise refused from error
        raise_own(error)

    def _repeated(self, call: Callable[[], Any], statement: object) -> Any:
        """Call DuckDB with current names. Repeat a statement that reads tables while other writers rename them."""
        repeats = None if self.writer.in_transaction else Repeats.of(self._catalog, statement)
        is_first = True
        while True:
            try:
                return self._listed(call, statement, force=not is_first)
            except (duckdb.Error, LanceDuckError) as error:
                if repeats is None or not repeats.is_due(error):
                    raise
            is_first = False

    def _listed(self, call: Callable[[], Any], statement: object, *, force: bool) -> Any:
        """Call DuckDB. Retry if a table with the unknown name was meanwhile added to the folder."""
        self._catalog.refresh(statement, force=force)
        self._load_objects()
        try:
            return call()
        except duckdb.CatalogException as error:
            is_changed = self._catalog.refresh(force=True) or self._catalog.has_new_objects
            self._load_objects()
            if is_changed or self._introduce_history(str(error), later=True):
                return call()
            raise self._catalog.explain(str(error), self._current_database, statement) or error from None

    def _load_objects(self) -> None:
        """Bring the views, macros and types in DuckDB up to date with those that folders store."""
        if not self._catalog.has_new_objects:
            return
        with self._native.cursor() as cursor:
            self._catalog.prepare(cursor)
            loader = Execution(
                cursor, self._catalog, Session(SearchSettings()), self._changes, self._inherited, read_only=True
            )

            used: list[str] = []

            def run(definition: str, schema: str) -> None:
                if used[-1:] != [schema]:
                    cursor.execute(f"USE {schema}")
                    used.append(schema)
                loader.run_definition(definition)

            for damaged in call_without_variables(partial(self._catalog.load_objects, run)):
                warn_of_table(damaged)

    def run_definition(self, sql: str) -> None:
        """Run the definition of a stored view, macro or type in DuckDB, without storing it again.

        Raises:
            DamagedDefinition: The text, as DuckDB receives it, is not one statement.
        """

        def execute(query: str | duckdb.Statement) -> Any:
            statement = single_statement(self._native, query) if isinstance(query, str) else query
            return call_as_user(partial(self._native.execute, statement))

        if not (_OF_LANCE.search(sql) or may_find(sql) or spelling.may_find(sql)):
            with_one_version(partial(execute, sql))
            return
        self._introduce_history(sql, later=False)
        lifted = LiftedText.of(sql)
        lifted = lifted.edited(named_arguments(lifted, FUNCTIONS))
        lifted = lifted.edited(self._prefilters.edits(lifted, None, later=False))
        rewritten = self._texts.rewritten(lifted, later=False)
        texts = dict.fromkeys((rewritten.carried, rewritten.text))
        with_one_version(partial(self._read, execute, texts, {}, later=False))

    def _run_one(self, method: Method, query: str, options: Mapping[str, Any], *, later: bool | None) -> Any:
        """Run one statement other than BEGIN, COMMIT and ROLLBACK."""
        if not self.writer.in_transaction and query in self._foreign and not may_find(query):
            self.writer.rowcount = None
            return with_one_version(partial(call_as_user, partial(method, query, **options)))
        with self.writer.reading(query, later=bool(later)):
            with told_of(query):
                values = options.get("parameters", options.get("params"))
                lifted = LiftedText.of(query)
                lifted = lifted.edited(self._prefilters.edits(lifted, values, later=bool(later)))
                rewritten = self._texts.rewritten(lifted, later=bool(later))
                change = self.writer.find(rewritten.text.sql, values, later=later)
            with told_of(query, "" if change is None else change.table):
                texts = dict.fromkeys((rewritten.carried, rewritten.text))
                if change is not None:
                    as_written = partial(self._read, self._native.execute, texts, {}, later=False)
                    return self.writer.run(
                        change, method, options, later=later, written=query, run_as_written=as_written
                    )
                read = partial(self._read, method, texts, options, later=later)
                prepared = self.writer.prepared(rewritten.carried.sql, read)
                return self.writer.settled(with_one_version(prepared or read))

    def _read(
        self, method: Method, texts: Iterable[LiftedText], options: Mapping[str, Any], *, later: bool | None
    ) -> Any:
        """Run a statement that does not change Lance tables. Uses the first text that DuckDB accepts."""

        def attempts() -> Iterator[Callable[[], Any]]:
            for text in texts:
                identified = text.edited(self._identifiers.edits(text.statement, later=bool(later)))
                yield from self.planner.attempts(method, self.writer.visible(identified), options, later=later)

        return first_accepted(attempts())

    def _text_of(self, statement: duckdb.Statement) -> str | None:
        """Return the text of a parsed statement, or None if it only concerns native tables.

        Raises:
            UnsupportedError: A transaction is open, and the statement does not contain its text. DuckDB 1 returns empty
                texts for PIVOT.
        """
        text = statement.query
        if self.writer.in_transaction and not text.strip():
            raise UnsupportedError(
                "a parsed statement without its text cannot run in a transaction",
                where=str(statement.type),
                remedy="pass the SQL text to execute()",
            )
        with own_errors(), self._inherited.use():
            self._catalog.refresh()
        if self.writer.in_transaction or self.writer.transaction(text) is not None:
            return text
        return None if not text.strip() or text in self._foreign else text

    def _without_versions(self, query: str, refused: duckdb.Error) -> duckdb.Error | None:
        """Return the error for a table with AT that does not exist. Returns None without such a table.

        Args:
            query: The statement.
            refused: DuckDB's error, which is kept for a Lance table outside of the search path.
        """
        for each in spelling.versions_in(query):
            name = each.name
            if name is None or self.names.are_ours(name, later=True):
                continue
            try:
                self._looked_up(f"FROM {'.'.join(map(quoted, name))} LIMIT 0")
            except duckdb.CatalogException as error:
                message = str(error).partition("\n\nLINE ")[0]
                if self._catalog.is_table(name):
                    return type(refused)(f"{refused}\n{message}")
                return type(error)(message + drawn(query, each.edit.start, len(".".join(name))))
            except duckdb.Error:
                break
        return None

    def _looked_up(self, query: str) -> None:
        """Bind a query, on another connection if the transaction has failed."""
        try:
            self._native.sql(query)
        except duckdb.TransactionException:
            with self._native.cursor() as cursor:
                self._catalog.prepare(cursor)
                cursor.sql(query)

    def _current_database(self) -> str:
        """Return DuckDB's current database. Empty after a failed transaction."""
        with suppress(duckdb.Error):
            return str(self._native.sql("SELECT system.main.current_database()").fetchall()[0][0])
        return ""

    def _introduce_history(self, text: object, *, later: bool) -> bool:
        """Load the history functions if a text may call one.

        Args:
            text: A statement, or an error.
            later: Whether an unfetched result is kept while names are looked up.

        Returns:
            Whether this call loaded them.
        """
        if self._knows_history or not isinstance(text, str) or not may_be_called(text):
            return False
        with own_errors():
            load_history(self._native.sql if later else self._native.execute)
        self._knows_history = not self.writer.in_transaction  # a ROLLBACK would remove them
        return True


def first_accepted(attempts: Iterator[Callable[[], T]]) -> T:
    """Return the result of the first attempt that DuckDB accepts.

    Args:
        attempts: Functions that each run the statement in a different way. Errors refer to the text of the last one.

    Raises:
        duckdb.Error: The error of the last attempt, or the error that ended the transaction.
        duckdb.InterruptException: The user pressed Ctrl-C.
    """
    failed: duckdb.Error | None = None
    for attempt in attempts:
        try:
            return attempt()
        except duckdb.InterruptException:
            raise
        except duckdb.TransactionException as error:
            if failed is not None:
                raise failed from None  # that error ended the transaction
            failed = error
        except duckdb.Error as error:
            failed = error
    assert failed is not None, "a statement has at least one attempt"
    raise failed
