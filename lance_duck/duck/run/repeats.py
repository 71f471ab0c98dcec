"""Decides whether a statement that only reads is repeated, because other writers renamed tables while it ran."""

from __future__ import annotations

import re
from typing import Final

import duckdb

from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.failures import own_error
from lance_duck.duck.statement.clauses import statements_of
from lance_duck.duck.statement.head import FirstWords
from lance_duck.errors import LanceDuckError, NotFoundError, RetryableError
from lance_duck.groups.finish import awaited
from lance_duck.groups.log import CommitLog, LogState
from lance_duck.store import local_path

_READS: Final = frozenset(
    {"select", "from", "with", "values", "table", "pivot", "unpivot", "describe", "summarize", "show"}
)
_CHANGES: Final = re.compile(r"\b(?:insert|update|delete|merge|truncate)\b", re.IGNORECASE)
_LIMIT: Final = 10


class Repeats:
    """The newest commits of several tables before a statement. Only local folders have commits that rename tables.

    Args:
        catalog: The tables of the connection.
        statement: The statement.
    """

    def __init__(self, catalog: TableCatalog, statement: str) -> None:
        self._statement = statement
        self._left = _LIMIT
        logs = (schema.log for schema in catalog.databases)
        self._states = {log: _state(log) for log in logs if log is not None and local_path(log.root) is not None}

    @classmethod
    def of(cls, catalog: TableCatalog, statement: object) -> Repeats | None:
        """Return the commits before a statement. None for statements that do not start like one that only reads."""
        if not isinstance(statement, str) or FirstWords.of(statement).word not in _READS:
            return None
        return cls(catalog, statement)

    def is_due(self, error: Exception) -> bool:
        """Return whether the statement is repeated after an error. Waits for a commit that is not finished."""
        cause = error if isinstance(error, LanceDuckError) else own_error(error)
        is_about_names = isinstance(cause, NotFoundError | RetryableError) or isinstance(error, duckdb.CatalogException)
        if self._left == 0 or not is_about_names or not self._only_reads():
            return False
        self._left -= 1
        before = self._states
        try:
            self._states = {log: awaited(log) for log in before}
        except LanceDuckError:
            return False
        return self._states != before

    def _only_reads(self) -> bool:
        try:
            is_one = len(statements_of(self._statement)) == 1
        except duckdb.ParserException:
            return False
        return is_one and not (FirstWords.of(self._statement).word == "with" and _CHANGES.search(self._statement))


def _state(log: CommitLog) -> LogState | None:
    """Return the newest entry. Does not look at a log that did not exist when the folder was listed."""
    if not log.may_exist:
        return LogState()
    try:
        return log.state()
    except LanceDuckError:  # the statement may not need the log
        return None
