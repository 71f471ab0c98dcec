"""Entry point for statements that change tables: finds the change in a statement, and runs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.commit import run_again
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.changes.block import DuckTransaction, bind_name, unbind_name
from lance_duck.duck.changes.changed_tables import TransactionBlock
from lance_duck.duck.changes.objects.create import CreateObjectStatement
from lance_duck.duck.changes.parameters import NO_PARAMETERS, StatementParameters
from lance_duck.duck.changes.prepared import Preparation, PreparedStatements
from lance_duck.duck.changes.registry import WORDS, Readings, readings_of_shape
from lance_duck.duck.changes.result import ChangeResult, HeldResult, nothing
from lance_duck.duck.changes.rows.constants import ListedConstants
from lance_duck.duck.changes.rows.insert import InsertStatement
from lance_duck.duck.changes.session import ChangeSession, PlannedQuery
from lance_duck.duck.changes.table_statement import Change, LanceStatement, TableStatement, rejected_rows
from lance_duck.duck.changes.tables.create import CreateStatement
from lance_duck.duck.changes.tables.written_files import ComputedCopyStatement
from lance_duck.duck.explain import rows_as_statement
from lance_duck.duck.failures import unwrapped
from lance_duck.duck.full_text.calls import may_find
from lance_duck.duck.history.names import PREFIX
from lance_duck.duck.names import Names
from lance_duck.duck.rules import spelling
from lance_duck.duck.run.search_settings import Session
from lance_duck.duck.statement.clauses import Clauses, TableName, statements_of
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.head import KINDS, VERBS, FirstWords, StatementKind
from lance_duck.duck.statement.identifiers import folded, parts_of_name, quoted
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import edited
from lance_duck.duck.statement.user_text import told_of
from lance_duck.duck.user_scope import call_as_user, watch
from lance_duck.duck.wide_offsets import run_with_wide_offsets
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.interrupts import Stopped
from lance_duck.snapshot import Snapshot

_MAYBE: Final = re.compile(rf"\b({'|'.join(WORDS)})\b", re.IGNORECASE)

_PART: Final = r"""(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)"""
_TARGET: Final = re.compile(
    r"\s*(?:insert\s+(?:or\s+\w+\s+)?into|update|delete\s+from|merge\s+into|truncate\s+table)"
    rf"\s+(?:only\s+)?({_PART}(?:\.{_PART})*)",
    re.IGNORECASE,
)
_NAMES_NEW: Final = re.compile(r"\b(create|attach|secret|schema|copy|export|import|import_database)\b", re.IGNORECASE)
"""Words of statements that may create or write a Lance table, without mentioning an existing one."""
_OF_LANCE: Final = re.compile(r"\b(?:drop\s+index|alter\s+index|vacuum|checkpoint|auto_cleanup)\b", re.IGNORECASE)
"""Words of statements whose table may have to be a Lance table."""
_APPENDED: Final = "__lance_appended"
_KEY_REMEDY: Final = "remove the duplicates, or add the rows with INSERT OR IGNORE INTO … FROM frame"
"""Remedy for repeated keys in `append`."""
_RUN_ALONE: Final = frozenset(StatementKind) - {StatementKind.UPKEEP, StatementKind.ROWS, StatementKind.OTHER}
"""Kinds of statements that must run separately from the other statements in a script."""
_CONCERNED: Final = re.compile(
    rf"\b({'|'.join((*WORDS, *(words for words, kind in KINDS.items() if kind in _RUN_ALONE)))})\b", re.IGNORECASE
)


class ChangeRunner:
    """Runs changes to Lance tables on one connection.

    Args:
        native: DuckDB's connection.
        catalog: The Lance tables of the connection.
        names: Resolves names on the connection.
        settings: Settings of the connection.
        read_only: Whether every change is rejected.

    Attributes:
        read_only: Whether every change is rejected.
        rowcount: Number of rows changed by the last statement, or None if it did not change a Lance table.
        count: The row count result that is not fetched yet.
    """

    def __init__(
        self,
        native: duckdb.DuckDBPyConnection,
        catalog: TableCatalog,
        names: Names,
        settings: Session,
        *,
        read_only: bool,
    ) -> None:
        self._native = native
        self._catalog = catalog
        self._names = names
        self._settings = settings
        self.read_only = read_only
        self.rowcount: int | None = None
        self.count = HeldResult()
        self._abort_result: Callable[[], object] | None = getattr(native, "abort", None)
        self._block: DuckTransaction | None = None
        self._prepared = PreparedStatements(native)

    def find(self, sql: str, parameters: Any = None, *, later: bool | None = False) -> Change | None:
        """Read a statement that changes a Lance table. Returns None for other statements.

        Args:
            sql: The statement.
            parameters: Its parameters, in the forms that DuckDB accepts. With `later=None`, a list of parameter sets.
            later: See `run`.

        Raises:
            UnsupportedError: The connection is read-only.
            duckdb.TransactionException: An earlier statement of the transaction failed.
        """
        self.rowcount = None
        if not _MAYBE.search(sql) or not self._may_name(sql):
            return None
        if self._block is not None:  # raises if the transaction failed, because names can then not be looked up
            (self._native.sql if later else self._native.execute)("SELECT 1").fetchall()
        if not later:
            self.drop_rows()  # names cannot be looked up while rows are unfetched
        target = _TARGET.match(sql)
        if target is not None and not self._session().is_ours(TableName(parts_of_name(target[1]), None, 0, 0)):
            return None  # avoids tokenizing a long list of rows for a native table
        if (listed := ListedConstants.of(sql)) is not None:
            with suppress(duckdb.ParserException):  # raised again below, for the whole statement
                change = self._read(Clauses.of(listed.shape), readings=readings_of_shape(listed.shape))
                if change is not None and isinstance(change.statement, InsertStatement):
                    change = replace(change, statement=replace(change.statement, constants=listed))
                return change
        readable = Statement.of(sql).readable
        statements = statements_of(edited(readable, self._versions_called(readable)))
        if len(statements) != 1:
            return None
        try:
            return self._read(statements[0], [parameters] if later is not None else list(parameters or ()))
        except duckdb.ParserException:
            if self._block is not None:
                with suppress(duckdb.Error):  # DuckDB decides whether its own error aborts the transaction
                    (self._native.sql if later else self._native.execute)(statements[0].text)
            raise

    def several(self, sql: str, *, later: bool | None = False) -> list[str] | None:
        """Return the statements of a script if they must run separately. Returns None for other texts.

        They must run separately if DuckDB cannot run one of them, if one changes the meaning of names, or if a retry
        would repeat a change.

        Args:
            sql: The script.
            later: See `run`.
        """
        if ";" not in sql or not _CONCERNED.search(sql):
            return None
        if not later:
            self.drop_rows()  # names cannot be looked up while rows are unfetched
        self._catalog.refresh()
        statements = statements_of(sql)
        with nullcontext() if self._block is None else self._block.drafts.seen():
            is_one = len(statements) < 2 or not (
                any(map(self._is_alone, statements)) or self._may_repeat(sql, statements)
            )
        if is_one:
            return None
        return [edited(sql, (Edit(0, each.start, ""), Edit(each.end, len(sql), ""))) for each in statements]

    def _may_repeat(self, sql: str, statements: Sequence[Clauses]) -> bool:
        """Return whether the first change in a script might run twice.

        A script that reads a Lance table first runs in rewritten form. After an error, the original text runs.
        """
        has_change = any(_MAYBE.search(statement.text) for statement in statements[:-1])
        return has_change and (self._catalog.vocabulary.may_be_in(sql) or may_find(sql))

    def _is_alone(self, statement: Clauses) -> bool:
        """Return whether a statement of a script must run separately."""
        first = FirstWords.of(statement.text)
        if first.kind in _RUN_ALONE and not first.explain:  # a file name may depend on earlier statements
            return True
        (spelled,) = statements_of(edited(statement.text, self._versions_called(statement.text)))
        return self._read(spelled) is not None

    # Prepared statements.

    def executed(self, sql: str) -> str:
        """Return the statement that an EXECUTE runs. Returns the text unchanged if DuckDB should run it."""
        return self._prepared.executed(sql, None if self._block is None else self._may_read_ours)

    def _may_read_ours(self, sql: str) -> bool:
        """Return whether a statement mentions a Lance table, or a user's view or macro that may read one."""
        return self._catalog.vocabulary.may_be_in(sql) or self._names.may_stand_for_ours(Statement.of(sql).names)

    def prepared(self, sql: str, native: Callable[[], Any]) -> Callable[[], Any] | None:
        """Return the function that runs a PREPARE. Returns None for other statements.

        Args:
            sql: The statement.
            native: Prepares it in DuckDB, and returns the result.
        """
        preparation = Preparation.read(sql)
        if preparation is None:
            return None
        prepared = Statement.of(preparation.text)
        is_alone = any(map(self._is_alone, statements_of(prepared.readable)))
        if is_alone:  # a syntax error refers to the text as written
            text = prepared.readable if prepared.nearest else preparation.text
            self._native.extract_statements(edited(text, self._versions_called(text)))

        def prepare() -> Any:
            # DuckDB would always read a view at the version that was current at PREPARE.
            is_ours = is_alone or self._may_read_ours(preparation.text)
            answer = self._native.execute(nothing().sql) if is_alone else native()
            self._prepared.keep(preparation, is_ours=is_ours)
            return answer

        return prepare

    def _read(self, statement: Clauses, sets: Sequence[Any] = (), readings: Readings | None = None) -> Change | None:
        text = statement.text
        if not self._may_name(text):
            return None
        head, nested, changes = readings or Readings.of(statement)
        change = next((change for change in changes if self._is_concerned(change, text, sets)), None)
        if change is None:
            for each in changes:
                if each.is_only_ours and isinstance(each, TableStatement):
                    raise self._session().unknown_table(each.target)
            return None
        if change.changes_lance(self._session()):
            self._check_writable(change, f"{(head.verb or '').upper()} of {change.subject}")
        is_on_a_name = isinstance(change, TableStatement) and change.target.path is None
        if change.parses and (head.verb in VERBS or nested or (head.verb == "alter" and is_on_a_name)):
            _parse(self._native, text)  # a syntax error refers to the text as written
        return Change(change, text, head.explain.text)

    def _check_writable(self, statement: LanceStatement, where: str) -> None:
        if self.read_only:
            option = "read_only=True" if self._catalog.binder.access.log_rows is None else "log"
            remedy = f"open the connection without {option}"
            if isinstance(statement, CreateStatement | CreateObjectStatement):
                remedy = f"create memory.{statement.target.name} or a TEMP one, or {remedy}"
            raise UnsupportedError("the connection is read-only", where=where, remedy=remedy)
        for schema in statement.target_schemas(self._session()):
            schema.check_writable(where)

    def _is_concerned(self, change: LanceStatement, sql: str, sets: Sequence[Any]) -> bool:
        """Return whether a statement concerns a Lance table, with any of its parameter sets."""
        if not isinstance(change, ComputedCopyStatement) or not any(sets):
            return change.concerns(self._session())
        return any(change.concerns(self._session(StatementParameters(sql, values))) for values in sets)

    def _may_name(self, sql: str) -> bool:
        """Return whether a text may mention a Lance table, a new table, or a procedure."""
        if _NAMES_NEW.search(sql) or self._catalog.vocabulary.may_be_in(sql):
            return True
        if FirstWords.of(sql).kind is StatementKind.UPKEEP or _OF_LANCE.search(sql):
            return True
        text = folded(sql)
        return PREFIX in text or any(folded(schema.database) in text for schema in self._catalog.databases)

    def _session(self, values: StatementParameters = NO_PARAMETERS, explain: str = "") -> ChangeSession:
        checks_keys = self._settings.settings.check_primary_key
        return ChangeSession(self._native, self._catalog, self._names, values, explain, self._block, checks_keys)

    def run(
        self,
        change: Change,
        method: Callable[..., Any],
        options: Mapping[str, Any],
        *,
        later: bool | None,
        written: str = "",
        run_as_written: Callable[[], object] | None = None,
    ) -> Any:
        """Change a table, and return the statement's result through DuckDB.

        Args:
            change: The change.
            method: DuckDB's `sql`, `execute` or `executemany`.
            options: Further arguments. Only parameters are used.
            later: Whether to return a relation. None if the statement runs for several parameter sets.
            written: See `ChangeSession`.
            run_as_written: See `ChangeSession`.
        """
        parameters = options.get("parameters", options.get("params"))
        count: int | None = None
        try:
            with rejected_rows(change.table, change.statement.key_remedy):
                if later is None:
                    (result, count), method = self._many(change, parameters), self._native.execute
                else:
                    session = self._session(StatementParameters(change.sql, parameters), change.explain)
                    if run_as_written is not None:
                        session = replace(session, written=written, run_as_written=run_as_written)
                    result = run_with_wide_offsets(self._native, lambda _: change.statement.run(session))
        except PlannedQuery as plan:
            result = ChangeResult(rows_as_statement(plan.rows))
        except (LanceDuckError, KeyboardInterrupt, Stopped) as error:
            if later is None or not isinstance(error, UnsupportedError):  # a refused statement has changed nothing
                self._fail()
            raise
        except (duckdb.Error, OSError, RuntimeError, pa.ArrowException) as error:
            meaning = unwrapped(error)
            if meaning is error:
                raise
            self._fail()
            raise meaning from (error if isinstance(meaning, KeyboardInterrupt) else None)

        def answer() -> Any:
            # DuckDB computes all rows of a CALL before it returns.
            with self._names.kept():
                return call_as_user(partial(method, result.sql if later else result.called), result.tables)

        self.rowcount = result.rowcount if count is None else count
        if result.is_count and not later and self._block is None:
            self._native.execute("")  # drops unfetched rows of an earlier statement
            return self.count.hold([(result.rowcount,)], answer)
        return answer()

    def append(self, name: str, rows: Any, *, by_name: bool) -> bool:
        """Append rows to a Lance table as one version, or in the transaction. Returns False for other tables.

        Args:
            name: The table name in SQL syntax.
            rows: A data frame or Arrow table that DuckDB can read.
            by_name: Whether columns are matched by name instead of position.
        """
        parts = parts_of_name(name)
        with self.reading(name, later=False):
            if not parts or not self._names.are_ours(parts, later=True):
                return False
            source = f"{'BY NAME ' if by_name else ''}SELECT * FROM {_APPENDED}"  # noqa: S608
            change = self.find(f"INSERT INTO {'.'.join(map(quoted, parts))} {source}")
            assert change is not None
            bind_name(self._native, _APPENDED, rows)
            try:
                with told_of(change.sql, change.table), rejected_rows(change.table, _KEY_REMEDY):
                    self.run(change, self._native.execute, {}, later=False)
            finally:
                unbind_name(self._native, _APPENDED)
        return True

    def refuse_appender(self, what: str, *, of: str) -> None:
        """Reject a DuckDB appender to a Lance table.

        Args:
            what: The method.
            of: The table name, or the statement that the appender runs.

        Raises:
            UnsupportedError: The table is a Lance table.
        """
        parts = parts_of_name(of)
        with self.reading(of, later=False):
            is_ours = (parts and self._names.are_ours(parts, later=True)) or self.find(of) is not None
        if is_ours:
            remedy = "add rows with append(name, frame), executemany or INSERT"
            raise UnsupportedError(f"{what} is not supported on a Lance table", where=of, remedy=remedy)

    def drop_rows(self) -> None:
        """Drop unfetched rows. Until they are dropped or fetched, DuckDB 2.0 keeps the connection busy."""
        if self._abort_result is not None:
            self._abort_result()

    def _many(self, change: Change, parameters: Any) -> tuple[ChangeResult, int]:
        """Run a change for each set of parameters, and commit all of them as one version.

        Returns:
            The result of the last set, and the total row count, or -1 if a count is missing.
        """
        sets = list(parameters or ())
        if not sets:
            raise InvalidInputError("executemany needs parameters", expected="a list of at least one set of them")
        values = [StatementParameters(change.sql, each) for each in sets]
        if isinstance(change.statement, InsertStatement) and change.statement.is_plain:
            return change.statement.run_many([self._session(each) for each in values])
        if self._block is not None or not isinstance(change.statement, TableStatement):
            return _last([change.statement.run(self._session(each)) for each in values])
        target = change.statement.target
        handle = self._session().handle(target)

        def attempt(snapshot: Snapshot) -> tuple[ChangeResult, int]:
            block = TransactionBlock(self._catalog)
            block.begin(handle, target.name, snapshot)
            try:
                results = [change.statement.run(replace(self._session(each), block=block)) for each in values]
                block.commit()
            except BaseException:
                block.discard()
                raise
            return _last(results)

        return run_again(handle.current().handle.base, attempt)

    # Transactions.

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._block is not None

    def transaction(self, sql: str) -> Callable[[Callable[[], Any]], Any] | None:
        """Return the function that runs BEGIN, COMMIT or ROLLBACK. Returns None for other statements."""
        first = FirstWords.of(sql)
        runs = {
            StatementKind.BEGIN: self._begin,
            StatementKind.COMMIT: self._commit,
            StatementKind.ROLLBACK: self._rollback,
        }
        return None if first.explain else runs.get(first.kind)

    @contextmanager
    def reading(self, sql: str = "", *, later: bool) -> Iterator[None]:
        """While the context is open, read tables at the versions of the transaction, if one is open.

        Args:
            sql: A statement that reads tables, or the name of a table.
            later: Whether rows are read after the context is closed.
        """
        block = self._block
        if block is None:
            yield
            return
        with block.versions.reading(), block.drafts.seen():
            is_ours = self._catalog.vocabulary.may_be_in(sql)
            if is_ours and not later:
                self.drop_rows()
            block.pin(self._catalog.words_read(LiftedText.of(sql).statement.names) if is_ours else (), later=later)
            yield

    def visible(self, lifted: LiftedText) -> LiftedText:
        """Rewrite a statement to read the transaction's versions, whichever names it uses."""
        if self._block is None:
            return lifted
        called = lifted.edited(self._versions_called(lifted.text))
        return called.edited(self._session().visible(called.text))

    def settled(self, answer: Any) -> Any:
        """Return a relation that reads the transaction's versions, even if its rows are read later."""
        return answer if self._block is None else self._block.settled(answer)

    def _versions_called(self, sql: str) -> Iterator[Edit]:
        """Return edits that replace `AT (…)` with calls. Without `AT`, the name may later refer to a newer version."""
        return self._names.spelled(spelling.versions_in(sql), later=True)

    def _begin(self, native: Callable[[], Any]) -> Any:
        answer = native()
        if not self._catalog.binder.access.is_open:
            watch(self._native)  # an unknown name would abort DuckDB's transaction
        self._block = DuckTransaction(self._native, self._catalog, self._names)
        return answer

    def _commit(self, native: Callable[[], Any]) -> Any:
        block, self._block = self._block, None
        return native() if block is None else block.commit_with(native)

    def _rollback(self, native: Callable[[], Any]) -> Any:
        block, self._block = self._block, None
        answer = native()
        if block is not None:
            block.abandon()
        return answer

    def _fail(self) -> None:
        """Abort the transaction after a failed change of a Lance table, as DuckDB does after its own errors."""
        if self._block is not None:
            with suppress(duckdb.Error):
                self._native.execute("SELECT error('a change of a Lance table failed')").fetchall()

    def close(self) -> None:
        """Discard uncommitted changes, and a result that was not fetched."""
        self.count.drop()
        if self._block is not None:
            self._block.discard()
            self._block.drafts.discard()
            self._block = None


def _parse(native: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Let DuckDB parse a statement, unless it is known to be correct. Raises duckdb.ParserException."""
    Statement.of(sql).result("parsed", lambda statement: len(native.extract_statements(statement.text)))


def _last(results: Sequence[ChangeResult]) -> tuple[ChangeResult, int]:
    """Return the last result, and the total row count, or -1 if a count is missing."""
    counts = [result.rowcount for result in results]
    return results[-1], -1 if min(counts) < 0 else sum(counts)
