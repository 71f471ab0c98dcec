"""Measures statements: metrics, spans, and the log of slow statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from time import perf_counter
from types import TracebackType
from typing import Any, Final

import duckdb

from lance_duck.duck import slow_statements
from lance_duck.duck.statement.clauses import statements_of
from lance_duck.duck.statement.head import FirstWords, StatementHead
from lance_duck.duck.statement.identifiers import parts_of_name
from lance_duck.duck.statement.masked import masked
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST
from lance_duck.redact import shown
from lance_duck.telemetry import observing
from lance_duck.telemetry.metrics import RUNNING_STATEMENTS, STATEMENT_SECONDS, STATEMENTS

_KINDS: Final = frozenset(
    {
        "select",
        "insert",
        "update",
        "delete",
        "replace",
        "merge",
        "truncate",
        "copy",
        "create",
        "alter",
        "drop",
        "analyze",
    }
    | {"begin", "commit", "rollback", "prepare", "execute", "deallocate", "set", "reset", "pragma", "use", "attach"}
    | {"detach", "install", "load", "call", "show", "describe", "summarize", "export", "import", "comment", "vacuum"}
    | {"checkpoint", "optimize", "reindex", "explain"}
)
"""Kinds of statements in metrics. Others are "other", because labels must not have arbitrary values."""
_SAME: Final = {
    **dict.fromkeys(("from", "values", "table", "pivot", "unpivot"), "select"),
    "start": "begin",
    "end": "commit",
    "abort": "rollback",
    "desc": "describe",
}
_PART: Final = r"""(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)"""
_TARGET: Final = re.compile(
    rf"\s*(?:insert\s+(?:or\s+\w+\s+)?into|update|delete\s+from|merge\s+into|truncate|replace)\s+({_PART}(?:\.{_PART})*)",
    re.IGNORECASE,
)
_STREAMED: Final = frozenset({"select", "execute"})
"""Kinds of statements whose rows are computed while they are read."""
_STOPPED: Final = (KeyboardInterrupt, duckdb.InterruptException)


class RunningStatement:
    """The measurement of one statement. As a context, it measures until the statement is planned.

    A statement with open rows goes on afterwards, until `end` or until nothing refers to it.

    Args:
        text: The statement.
        slow_ms: Duration from which the statement is logged, in milliseconds. None disables the log.
        explain: Returns the JSON plan of an EXPLAIN of the statement. None if there is no log.
        folder: The folder of the connection, for spans.

    Attributes:
        is_open: Whether the statement is counted later. False before its begin and after its end.
    """

    __slots__ = (
        "_begin",
        "_explain",
        "_folder",
        "_keeps_rows",
        "_observed",
        "_seconds",
        "_slow_ms",
        "_text",
        "is_open",
    )

    def __init__(
        self, text: str, slow_ms: float | None, explain: Callable[[str], str] | None, folder: str = ""
    ) -> None:
        self._text = text
        self._slow_ms = slow_ms
        self._explain = explain
        self._folder = folder
        self._observed: observing.Observed | None = None
        self._keeps_rows = False
        self._begin = self._seconds = 0.0
        self.is_open = False

    def __enter__(self) -> RunningStatement:
        RUNNING_STATEMENTS.add(self)
        self.is_open = True
        self._begin = perf_counter()
        return self

    def show(self) -> None:
        """Show the statement to the observer, if there is one."""
        if observing.is_observed():
            text = masked(self._text) if observing.wants_text() else ""
            work = observing.Work(kind_of(self._text).upper(), _table_of(self._text), shown(self._folder), text)
            self._observed = observing.statement(work)

    def leave(self) -> None:
        """Do not count this statement: other contexts count it, or its parts."""
        self.is_open = False
        RUNNING_STATEMENTS.remove(self)

    def keep_rows(self) -> bool:
        """Let the statement go on after its context, if its rows are read later. Returns whether they are."""
        self._keeps_rows = self.is_open and kind_of(self._text) in _STREAMED
        return self._keeps_rows

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._observed is not None:
            self._observed.leave()
        if error is None and self._keeps_rows:
            self.pause()
        else:
            self.end(error)

    def resume(self) -> bool:
        """Begin to read rows. Returns False if the statement has ended, or its rows are being read."""
        if not self.is_open or self._begin:
            return False
        RUNNING_STATEMENTS.add(self)
        self._begin = perf_counter()
        return True

    def pause(self) -> None:
        """Stop to read rows for a while."""
        if self._begin:
            self._seconds += perf_counter() - self._begin
            self._begin = 0.0
            RUNNING_STATEMENTS.remove(self)

    def end(self, error: BaseException | None = None, *, is_dropped: bool = False) -> None:
        """Count the statement, and log it if it was slow. Further calls do nothing.

        Args:
            error: Why the statement failed.
            is_dropped: Whether its rows were dropped. The log then has no plan, because DuckDB may be busy.
        """
        if not self.is_open:
            return
        self.is_open = False
        self.pause()
        STATEMENTS.add(kind_of(self._text), _outcome(error))
        STATEMENT_SECONDS.observe(self._seconds)
        if self._observed is not None:
            self._observed.end(error, self._seconds)
        if self._slow_ms is not None and self._seconds * 1000 >= self._slow_ms:
            is_explained = error is None and not is_dropped
            slow_statements.report(self._text, self._seconds, self._explain if is_explained else None)

    def __del__(self) -> None:
        self.end(is_dropped=True)


def _table_of(sql: str) -> str:
    """Return the name of the table that a statement changes, or of the only table that it reads. May be empty."""
    if len(sql) > LONGEST:
        return ""
    target = _TARGET.match(sql)
    if target is not None:
        return parts_of_name(target[1])[-1]
    reads = [read for read in Statement.of(sql).scopes.tables if read.query is None]
    names = {read.name[-1] if read.name and read.path is None else "" for read in reads}
    return names.pop() if len(names) == 1 else ""


def kind_of(sql: str) -> str:
    """Return the kind of a statement for metrics: its first word, or the verb after WITH."""
    return _cached_kind(sql) if len(sql) <= LONGEST else _kind(sql)


def _kind(sql: str) -> str:
    first = FirstWords.of(sql)
    word: Any = "explain" if first.explain else first.word
    if word == "with":
        statements = statements_of(sql) if len(sql) <= LONGEST else ()
        word = StatementHead.of(statements[0]).verb if statements else "select"
    elif not word and sql[first.start :].startswith("("):
        word = "select"
    kind = _SAME.get(word, word)
    return kind if kind in _KINDS else "other"


_cached_kind: Final = lru_cache(maxsize=512)(_kind)


def _outcome(error: BaseException | None) -> str:
    if error is None:
        return "ok"
    return "interrupted" if isinstance(error, _STOPPED) else "error"
