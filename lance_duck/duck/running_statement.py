"""Measures statements: metrics, spans, and the log of slow statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
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
    {"select", "insert", "update", "delete", "merge", "truncate", "copy", "create", "alter", "drop", "analyze"}
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
    rf"\s*(?:insert\s+(?:or\s+\w+\s+)?into|update|delete\s+from|merge\s+into|truncate)\s+({_PART}(?:\.{_PART})*)",
    re.IGNORECASE,
)
_STOPPED: Final = (KeyboardInterrupt, duckdb.InterruptException)


class RunningStatement:
    """The context in which one statement runs.

    Args:
        text: The statement.
        slow_ms: Duration from which the statement is logged, in milliseconds. None disables the log.
        explain: Returns the JSON plan of an EXPLAIN of the statement. None if there is no log.
        folder: The folder of the connection, for spans.
    """

    __slots__ = ("_begin", "_explain", "_folder", "_is_counted", "_observed", "_slow_ms", "_text")

    def __init__(
        self, text: str, slow_ms: float | None, explain: Callable[[str], str] | None, folder: str = ""
    ) -> None:
        self._text = text
        self._slow_ms = slow_ms
        self._explain = explain
        self._folder = folder
        self._observed: AbstractContextManager[None] | None = None
        self._is_counted = True
        self._begin = 0.0

    def __enter__(self) -> RunningStatement:
        RUNNING_STATEMENTS.add()
        self._begin = perf_counter()
        return self

    def show(self) -> None:
        """Show the statement to the observer, if there is one."""
        if observing.is_observed():
            text = masked(self._text) if observing.wants_text() else ""
            work = observing.Work(kind_of(self._text).upper(), _table_of(self._text), shown(self._folder), text)
            self._observed = observing.statement(work)
            self._observed.__enter__()

    def leave(self) -> None:
        """Do not count this statement: other contexts count it, or its parts."""
        self._is_counted = False
        RUNNING_STATEMENTS.add(by=-1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._is_counted:
            return
        seconds = perf_counter() - self._begin
        RUNNING_STATEMENTS.add(by=-1)
        STATEMENTS.add(kind_of(self._text), _outcome(error))
        STATEMENT_SECONDS.observe(seconds)
        if self._observed is not None:
            self._observed.__exit__(kind, error, traceback)
        if self._slow_ms is not None and seconds * 1000 >= self._slow_ms:
            slow_statements.report(self._text, seconds, self._explain if error is None else None)


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
