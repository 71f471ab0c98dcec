"""Where a connection asks what a statement changes, and has it changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol

import duckdb

from lance_duck.commit import run_again
from lance_duck.duck.catalog import SCHEMA, TableCatalog
from lance_duck.duck.changes.alter import AlterStatement
from lance_duck.duck.changes.block import DuckTransaction, TransactionBlock
from lance_duck.duck.changes.create import CopyStatement, CreateStatement, DropStatement
from lance_duck.duck.changes.delete import DeleteStatement
from lance_duck.duck.changes.head import VERBS, RefusedStatement, StatementHead
from lance_duck.duck.changes.insert import InsertStatement
from lance_duck.duck.changes.merge import MergeStatement
from lance_duck.duck.changes.parameters import NO_PARAMETERS, StatementParameters
from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.session import ChangeSession, PlannedQuery
from lance_duck.duck.changes.update import UpdateStatement
from lance_duck.duck.explain import rows_as_statement
from lance_duck.duck.names import Names, parts_of_name
from lance_duck.duck.statement.clauses import Clauses, TableName, statements_of
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.user_scope import call_as_user
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.snapshot import Snapshot

_MAYBE: Final = re.compile(
    r"\b(insert|update|delete|merge|truncate|create|drop|copy|alter|comment|vacuum|optimize)\b", re.IGNORECASE
)

_PART: Final = r"""(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)"""
_TARGET: Final = re.compile(
    r"\s*(?:insert\s+(?:or\s+\w+\s+)?into|update|delete\s+from|merge\s+into|truncate\s+table)"
    rf"\s+({_PART}(?:\.{_PART})*)",
    re.IGNORECASE,
)
_CONCERNED: Final = re.compile(_MAYBE.pattern + r"|\b(begin|start|commit|end|rollback|abort)\b", re.IGNORECASE)
_SKIPPED: Final = r"(?:\s|;|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*\*/)*"
_TRANSACTION: Final = re.compile(_SKIPPED + r"(begin|start|commit|end|rollback|abort)\b", re.IGNORECASE)


class TableChange(Protocol):
    """A statement that changes a Lance table."""

    @property
    def target(self) -> TableName:
        """The table."""

    def run(self, session: ChangeSession) -> ChangeResult:
        """Change the table, and return what the statement gives."""


_READERS: Final[Mapping[str, Callable[[StatementHead], TableChange | None]]] = {
    "insert": InsertStatement.read,
    "update": UpdateStatement.read,
    "delete": DeleteStatement.read,
    "truncate": DeleteStatement.read,
    "merge": MergeStatement.read,
    "create": CreateStatement.read,
    "drop": DropStatement.read,
    "copy": CopyStatement.read,
    "alter": AlterStatement.read,
}


@dataclass(frozen=True)
class Change:
    """A change that a statement asks for.

    Attributes:
        statement: Its clauses.
        sql: Its text, with numbered placeholders.
        explain: The words of an EXPLAIN, or nothing.
    """

    statement: TableChange
    sql: str
    explain: str


class ChangeRunner:
    """Changes of Lance tables by the statements of one connection.

    Args:
        native: DuckDB's connection.
        catalog: The Lance tables that it knows.
        names: What names mean on it.
        read_only: Whether every change is refused.

    Attributes:
        read_only: Likewise.
        rowcount: Rows that the last statement changed; None if it changed no Lance table.
    """

    def __init__(
        self, native: duckdb.DuckDBPyConnection, catalog: TableCatalog, names: Names, *, read_only: bool
    ) -> None:
        self._native = native
        self._catalog = catalog
        self._names = names
        self.read_only = read_only
        self.rowcount: int | None = None
        self._block: DuckTransaction | None = None

    def find(self, sql: str, *, later: bool | None = False) -> Change | None:
        """Return the change of a Lance table that a statement is; None for all others.

        Args:
            sql: The statement.
            later: As for `run`.

        Raises:
            UnsupportedError: The connection is read-only.
        """
        self.rowcount = None
        if not _MAYBE.search(sql) or not self._may_name(sql):
            return None
        if not later:
            self._abort()  # what names mean cannot be asked beside rows that nobody fetched
        target = _TARGET.match(sql)
        if target is not None and not self._session().is_ours(TableName(parts_of_name(target[1]), None, 0, 0)):
            return None  # a long list of rows for a table of DuckDB's own is not read
        statements = statements_of(Statement.of(sql).edited.text)
        return self._read(statements[0]) if len(statements) == 1 else None

    def concerns(self, sql: str) -> bool:
        """Return whether a statement is about transactions, or changes a Lance table."""
        return self.transaction(sql) is not None or self.find(sql) is not None

    def several(self, sql: str) -> list[str] | None:
        """Return the statements of a text, where one of several changes a Lance table, or is about transactions."""
        if ";" not in sql or not _CONCERNED.search(sql):
            return None
        self._catalog.refresh()
        statements = statements_of(sql)
        if len(statements) < 2 or not any(_TRANSACTION.match(s.text) or self._read(s) for s in statements):
            return None
        return [statement.text for statement in statements]

    def _read(self, statement: Clauses) -> Change | None:
        head = StatementHead.of(statement)
        if not self._may_name(statement.text):
            return None
        read = _READERS.get(head.verb or "")
        change = (None if read is None else read(head)) or RefusedStatement.read(head)
        if change is None or not self._concerns(change):
            return None
        if self.read_only:
            raise UnsupportedError(
                "the connection is read-only",
                where=f"{(head.verb or '').upper()} of table {change.target.name}",
                remedy="connect without read_only=True",
            )
        if head.verb in VERBS or (head.verb == "alter" and change.target.path is None):
            self._native.extract_statements(statement.text)  # an error of syntax is about the text as it was written
        return Change(change, statement.text, head.explain.text)

    def _may_name(self, sql: str) -> bool:
        """Return whether a text may name a table of ours, or a new one."""
        return self._catalog.vocabulary.may_be_in(sql) or folded(self._catalog.name) + "." in folded(sql)

    def _concerns(self, change: TableChange) -> bool:
        """Return whether a change is one of a Lance table, or makes one."""
        target = change.target
        if isinstance(change, CreateStatement) and target.path is None:
            database, *schema = [folded(part) for part in target.parts[:-1]] or [""]
            return database == folded(self._catalog.name) and schema in ([], [SCHEMA])
        return self._session().is_ours(target)

    def _session(self, values: StatementParameters = NO_PARAMETERS, explain: str = "") -> ChangeSession:
        return ChangeSession(self._native, self._catalog, self._names, values, explain, self._block)

    def run(self, change: Change, method: Callable[..., Any], options: Mapping[str, Any], *, later: bool | None) -> Any:
        """Change a table, and have DuckDB give what the statement gives.

        Args:
            change: The change.
            method: DuckDB's `sql`, `execute` or `executemany`.
            options: Further arguments, of which those for parameters count.
            later: Whether rows are given as a relation; None: there are several sets of parameters.
        """
        parameters = options.get("parameters", options.get("params"))
        try:
            if later is None:
                result, method = self._many(change, parameters), self._native.execute
            else:
                session = self._session(StatementParameters(change.sql, parameters), change.explain)
                result = change.statement.run(session)
        except PlannedQuery as plan:
            result = ChangeResult(rows_as_statement(plan.rows))
        except LanceDuckError:
            self._fail()
            raise
        # Rows of a CALL are complete when it returns, as those of a change by DuckDB are.
        with self._names.kept():
            answer = call_as_user(partial(method, result.sql if later else result.called), result.tables)
        self.rowcount = result.rowcount
        return answer

    def _abort(self) -> None:
        """Give up rows that nobody fetched, which DuckDB 2.0 would keep the connection busy for."""
        abort = getattr(self._native, "abort", None)
        if abort is not None:
            abort()

    def _many(self, change: Change, parameters: Any) -> ChangeResult:
        """Run a change for each set of parameters, and commit all of them as one version."""
        sets = list(parameters or ())
        if not sets:
            raise InvalidInputError("executemany without parameters", expected="a list of at least one set of them")
        values = [StatementParameters(change.sql, each) for each in sets]
        if isinstance(change.statement, InsertStatement) and change.statement.is_plain:
            return change.statement.run_many([self._session(each) for each in values])
        if self._block is not None:
            return [change.statement.run(self._session(each)) for each in values][-1]
        handle = self._session().handle(change.statement.target)

        def attempt(snapshot: Snapshot) -> ChangeResult:
            block = TransactionBlock()
            block.begin(handle, change.statement.target.name, snapshot)
            try:
                results = [change.statement.run(replace(self._session(each), block=block)) for each in values]
                block.commit()
            except BaseException:
                block.discard()
                raise
            return results[-1]

        return run_again(handle.current().handle.base, attempt)

    # Transactions.

    def transaction(self, sql: str) -> Callable[[Callable[[], Any]], Any] | None:
        """Return the function that runs a statement which begins or ends a transaction; None for all others."""
        word = _TRANSACTION.match(sql)
        if word is None:
            return None
        if word[1].lower() in ("begin", "start"):
            return self._begin
        return self._commit if word[1].lower() in ("commit", "end") else self._rollback

    def visible(self, sql: str) -> str:
        """Return a statement as it reads what the transaction has changed, by whatever name it calls that."""
        block = self._block
        if block is None or block.view is None or block.handle is None:
            return sql
        return self._session().respelled(Clauses.of(sql), block.handle.place, block.name, block.view)

    def _begin(self, native: Callable[[], Any]) -> Any:
        answer = native()
        self._block = DuckTransaction(self._native, self._catalog, self._names)
        return answer

    def _commit(self, native: Callable[[], Any]) -> Any:
        block, self._block = self._block, None
        if block is not None:
            try:
                block.finish()
            except BaseException:
                block.abandon()
                with suppress(duckdb.Error):
                    self._native.execute("ROLLBACK")
                raise
        return native()

    def _rollback(self, native: Callable[[], Any]) -> Any:
        block, self._block = self._block, None
        answer = native()
        if block is not None:
            block.abandon()
        return answer

    def _fail(self) -> None:
        """Have DuckDB give up the transaction that a change of ours failed in, as it does after errors of its own."""
        if self._block is not None:
            with suppress(duckdb.Error):
                self._native.execute("SELECT error('a change of a Lance table failed')").fetchall()

    def close(self) -> None:
        """Give up what is not committed."""
        if self._block is not None:
            self._block.discard()
            self._block = None
