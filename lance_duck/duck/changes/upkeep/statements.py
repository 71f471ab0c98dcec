"""Maintenance statements: SQL syntax for the operations of `upkeep.operations`.

    OPTIMIZE [TABLE] target [ORDER BY column [ASC | DESC] [NULLS FIRST | LAST], …] [WITH (argument = value, …)]
    VACUUM [LANCE] target [WITH (argument = value, …)]
    CHECKPOINT target
    ALTER INDEX [IF EXISTS] name ON target OPTIMIZE [WITH (mode = 'append' | 'merge' | 'retrain', …)]
    REINDEX [INDEX] name ON target [RETRAIN] | REINDEX [TABLE] target [RETRAIN]
    ALTER TABLE [IF EXISTS] target SET AUTO_CLEANUP [WITH] (interval = n, older_than = '14 days', retain_versions = n)
    ALTER TABLE [IF EXISTS] target UNSET AUTO_CLEANUP
    SHOW INDEXES | INDEX | MAINTENANCE ON | FROM | IN target
    VACUUM ANALYZE target | ANALYZE target

Mode `append` adds a segment for rows that the index does not cover. Mode `merge` also merges it with other segments.
Mode `retrain` rebuilds the index. ANALYZE does nothing, because writers store the statistics of a Lance table in its
files and indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, listed, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement, name_after_if_exists
from lance_duck.duck.changes.upkeep.operations import (
    CHECKPOINT,
    CLEANUP,
    COMPACT,
    OPTIMIZE_INDEXES,
    REINDEX,
    SET_AUTO_CLEANUP,
    TABLE,
    UNSET_AUTO_CLEANUP,
    Rows,
    TableOperation,
    auto_cleanup_of,
)
from lance_duck.duck.changes.upkeep.orderings import orderings_after
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.tables.facts import INDEX_COLUMNS, indexes

_VERBS: Final = {
    "optimize": (COMPACT, "table"),
    "vacuum": (CLEANUP, "lance"),
    "checkpoint": (CHECKPOINT, ""),
}
"""The operation of each statement, and a word that may precede the table."""


@dataclass(frozen=True)
class UpkeepStatement(TableStatement):
    """A statement that runs an operation.

    Attributes:
        operation: The operation.
        options: The rest of the statement after the keywords.
        fixed: Arguments given by keywords.
        may_be_missing: Whether the statement has IF EXISTS.
        has_keyword: Whether an optional keyword precedes the table.
    """

    parses: ClassVar[bool] = False

    operation: TableOperation
    options: Clauses
    fixed: Mapping[str, Any] = field(default_factory=dict)
    may_be_missing: bool = False
    has_keyword: bool = False

    @classmethod
    def read(cls, head: StatementHead) -> UpkeepStatement | None:
        """Read OPTIMIZE, VACUUM or CHECKPOINT. Returns None without a table."""
        body = head.body
        operation, word = _VERBS[head.verb or ""]
        has_keyword = _is_option(body, 1, word)
        target = TableName.at(body, 1 + has_keyword)
        if target is None:
            return None
        order_by, after = orderings_after(body, target.after) if operation is COMPACT else (None, target.after)
        fixed = {} if order_by is None else {"order_by": order_by}
        return cls(target, operation, body.part(after), fixed, has_keyword=has_keyword)

    @classmethod
    def read_reindex(cls, head: StatementHead) -> UpkeepStatement | None:
        """Read REINDEX. Returns None without a table."""
        body = head.body
        place = 1 + (_is_option(body, 1, "table") or _is_option(body, 1, "index"))
        name = body.tokens[place].name if body.word(place + 1) == "on" else None
        target = TableName.at(body, place if name is None else place + 2)
        if target is None:
            return None
        retrain = body.word(target.after) == "retrain"
        fixed = {**({} if name is None else {"index": name}), **({"retrain": True} if retrain else {})}
        return cls(target, REINDEX, body.part(target.after + retrain), fixed)

    @classmethod
    def read_alter_index(cls, head: StatementHead) -> UpkeepStatement | None:
        """Read ALTER INDEX … OPTIMIZE. Returns None for other statements."""
        body = head.body
        index = name_after_if_exists(body, 2) if body.says(1, "index") else None
        target = None if index is None or body.word(index.after) != "on" else TableName.at(body, index.after + 1)
        if index is None or target is None or body.word(target.after) != "optimize":
            return None
        note = f"The index {index.name} would be brought up to date. Nothing was written."
        operation = replace(OPTIMIZE_INDEXES, note=note)
        return cls(target, operation, body.part(target.after + 1), {"index": index.name}, body.says(2, "if", "exists"))

    @classmethod
    def read_auto_cleanup(cls, head: StatementHead) -> UpkeepStatement | None:
        """Read ALTER TABLE … AUTO_CLEANUP. Returns None for other statements."""
        body = head.body
        target = name_after_if_exists(body, 2) if body.says(1, "table") else None
        if target is None or body.word(target.after + 1) != "auto_cleanup":
            return None
        operation = {"set": SET_AUTO_CLEANUP, "unset": UNSET_AUTO_CLEANUP}.get(body.word(target.after) or "")
        may_be_missing = body.says(2, "if", "exists")
        return None if operation is None else cls(target, operation, body.part(target.after + 2), {}, may_be_missing)

    @property
    def is_only_ours(self) -> bool:
        """Whether the statement is not in DuckDB's grammar."""
        return self.operation not in (CLEANUP, CHECKPOINT) or self.has_keyword or self.options.word(0) == "with"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the table is a Lance table, or does not exist and need not. CHECKPOINT may name a database."""
        return super().concerns(session) or self._lacks_table(session) or self._lacks_database(session)

    def _lacks_database(self, session: ChangeSession) -> bool:
        """Return whether the statement is a CHECKPOINT of a name that is neither a table nor a native database."""
        if self.operation is not CHECKPOINT or len(self.target.parts) > 1 or self.options.tokens:
            return False
        names = session.relation("SELECT database_name FROM system.main.duckdb_databases()", {}).fetchall()
        return folded(self.target.name) not in {folded(name) for (name,) in names}

    def _lacks_table(self, session: ChangeSession) -> bool:
        """Return whether IF EXISTS allows the table to be missing, and it is."""
        is_of_table = self.may_be_missing and "index" not in self.fixed
        return is_of_table and not session.is_ours(self.target) and session.is_missing(self.target)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Run the operation. IF EXISTS does nothing for a missing table or index."""
        if self._lacks_table(session):
            return nothing()
        if not session.is_ours(self.target):
            raise session.unknown_table(self.target)
        handle, fixed = session.handle(self.target), {TABLE: self.target.name, **self.fixed}
        handle.current()  # raises for a missing table, also in EXPLAIN
        options = Options.of(self.options, self.operation.words.format(**fixed))
        session.explain_words(self.operation.note)
        session.refuse_in_transaction(self.operation.words.partition(" {")[0])
        values = self.operation.values(session, options, fixed)
        del values[TABLE]
        if self.may_be_missing and "index" in values and not _has_index(handle.current(), values["index"]):
            return self.operation.result([])
        return self.operation.result(self.operation.run(handle, values))


def _has_index(dataset: LanceDataset, name: str) -> bool:
    return any(index.name == name for index in dataset.describe_indices())


@dataclass(frozen=True)
class AnalyzeStatement(TableStatement):
    """An ANALYZE of a table, optionally after VACUUM."""

    writes: ClassVar[bool] = False

    @classmethod
    def read(cls, head: StatementHead) -> AnalyzeStatement | None:
        """Read the clauses. Returns None for other statements."""
        body, place = head.body, 1
        if head.verb == "vacuum":
            place += _is_option(body, place, "lance")
            if not _is_option(body, place, "analyze"):
                return None
            place += 1
        target = TableName.at(body, place)
        return None if target is None else cls(target)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Do nothing."""
        session.explain_words("Writers keep the statistics of a Lance table. Nothing would be done.")
        return nothing()


_SHOWN: Final[Mapping[str, tuple[Mapping[str, str], Callable[[LanceDataset], Rows]]]] = {
    **dict.fromkeys(("indexes", "index"), (INDEX_COLUMNS, indexes)),
    "maintenance": ({"Key": "VARCHAR", "Value": "VARCHAR"}, auto_cleanup_of),
}


@dataclass(frozen=True)
class ShowStatement(TableStatement):
    """A SHOW of the indexes or the automatic cleanup of a table.

    Attributes:
        what: A key of `_SHOWN`.
    """

    writes: ClassVar[bool] = False
    is_only_ours: ClassVar[bool] = True

    what: str

    @classmethod
    def read(cls, head: StatementHead) -> ShowStatement | None:
        """Read the clauses. Returns None for other statements."""
        body, what = head.body, head.body.word(1) or ""
        target = TableName.at(body, 3) if body.word(2) in ("on", "from", "in") else None
        if what not in _SHOWN or target is None or target.after < len(body):
            return None
        return cls(target, what)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Return the rows."""
        session.explain_words("Facts about the table would be shown.")
        columns, find = _SHOWN[self.what]
        return listed(columns, find(session.dataset(self.target)))


def _is_option(body: Clauses, place: int, word: str) -> bool:
    """Return whether a word is a keyword before a table, not a table name."""
    return body.word(place) == word and TableName.at(body, place + 1) is not None and not _ends(body, place)


def _ends(body: Clauses, place: int) -> bool:
    """Return whether a token is the last token of a name."""
    return body.text_at(place + 1) in ("", ".", "(") or body.word(place + 1) in ("with", "on")
