"""Classify the statements of a text by what they may change, without running them.

    effects("SELECT 1; INSERT INTO t VALUES (1)")  →  [Effect(READ, "SELECT 1"), Effect(CHANGE, "INSERT INTO t")]

The first word decides for statements that the package reads itself (`changes.registry`). DuckDB's parser decides for
the others. A statement is OTHER in case of doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Final

import duckdb

from lance_duck.duck.changes.databases.schema import CreateSchemaStatement, DropSchemaStatement
from lance_duck.duck.changes.indexes import CreateIndexStatement, DropIndexStatement
from lance_duck.duck.changes.objects.alter import CommentObjectStatement, DropObjectStatement, RenameViewStatement
from lance_duck.duck.changes.objects.create import CreateObjectStatement
from lance_duck.duck.changes.options import is_lance
from lance_duck.duck.changes.procedure import ProcedureCall, SelectedProcedure
from lance_duck.duck.changes.registry import statements_of_head
from lance_duck.duck.changes.rows.replace import ReplaceStatement
from lance_duck.duck.changes.table_statement import LanceStatement, TableStatement
from lance_duck.duck.changes.tables.alter import AlterStatement
from lance_duck.duck.changes.tables.comment import CommentStatement
from lance_duck.duck.changes.tables.copy_lance import CopyLanceStatement
from lance_duck.duck.changes.tables.copy_to import CopyStatement
from lance_duck.duck.changes.tables.create import CreateStatement
from lance_duck.duck.changes.tables.describe import DescribeStatement
from lance_duck.duck.changes.tables.drop import DropStatement
from lance_duck.duck.changes.tables.written_files import ComputedCopyStatement
from lance_duck.duck.changes.upkeep.statements import AnalyzeStatement, ShowStatement, UpkeepStatement
from lance_duck.duck.rules import spelling
from lance_duck.duck.statement.clauses import Clauses, statements_of
from lance_duck.duck.statement.head import VERBS, FirstWords, StatementHead, StatementKind
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import edited
from lance_duck.duck.statement.user_text import told_of
from lance_duck.forks import RLock


class EffectKind(Enum):
    """What a statement may change."""

    READ = auto()
    """Nothing. It only returns rows."""
    CHANGE = auto()
    """Rows, columns, tables, views, macros, types or schemas, or the state of a transaction."""
    OTHER = auto()
    """Settings, sessions, databases, secrets, extensions, temporary objects or files, or it is unknown."""


@dataclass(frozen=True)
class Effect:
    """The effect of one statement.

    Attributes:
        kind: What it may change.
        words: Its first words, for messages.
    """

    kind: EffectKind
    words: str


_CHANGES: Final[tuple[type[LanceStatement], ...]] = (
    *(CreateStatement, DropStatement, AlterStatement, CommentStatement, CreateIndexStatement, DropIndexStatement),
    *(CreateSchemaStatement, DropSchemaStatement, CreateObjectStatement, DropObjectStatement, RenameViewStatement),
    *(CommentObjectStatement, CopyStatement, CopyLanceStatement, UpkeepStatement, AnalyzeStatement),
    ReplaceStatement,
)
_READS: Final = (DescribeStatement, ShowStatement)
_READING: Final = frozenset(
    ("select", "from", "values", "table", "pivot", "unpivot", "describe", "desc", "show", "summarize")
)
"""First words of statements that only read."""
_TRANSACTIONS: Final = frozenset((StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK))
_SESSION: Final = frozenset(
    (StatementKind.PREPARED, StatementKind.SETTING, StatementKind.NAMING, StatementKind.EXTENSION)
)
_NOT_PARSED: Final = frozenset(("prepare", "pragma", "import"))
"""First words of statements whose parser reads files, or that may contain a statement that DuckDB cannot parse."""
_SELECTS: Final = frozenset(("SELECT", "MULTI", "CREATE"))
"""Types of the parts into which DuckDB splits a SELECT. PIVOT creates a type first."""
_ACTING: Final = re.compile(
    r"\b(?:nextval|write_log|(?:force_)?checkpoint|(?:en|dis)able_(?:logging|profil\w+)|truncate_duckdb_logs"
    r"|set_config|setseed)\b",
    re.IGNORECASE,
)
"""Functions of DuckDB that change something, although a SELECT calls them."""
_NESTED: Final = frozenset(("insert", "update", "delete", "merge", "truncate"))
_NATIVE: Final = frozenset(("memory", "temp", "system"))
"""Databases of DuckDB itself. Their objects are no tables of Lance, and callers of one process share them."""
_BEFORE_TARGET: Final = frozenset(
    (
        *("into", "update", "from", "truncate", "replace", "only", "copy", "exists", "to"),
        *("table", "view", "macro", "function", "schema", "type", "sequence", "index", "column"),
    )
)
"""Words before the name of a changed object."""
_WORDS: Final = 3


def effects(text: str) -> list[Effect]:
    """Return the effect of each statement in a text.

    Raises:
        duckdb.ParserException: The text is not SQL.
        LanceDuckError: A statement of this package has invalid clauses.
    """
    readable = Statement.of(text).readable
    return [Effect(_kind(statement), _first_words(statement)) for statement in statements_of(readable)]


def _kind(statement: Clauses) -> EffectKind:
    head = StatementHead.of(statement)
    kind = _kind_of_body(statement, head)
    if kind is EffectKind.CHANGE and _names_native(statement):
        kind = EffectKind.OTHER
    if not head.explain.tokens or kind is EffectKind.OTHER:
        return kind
    is_run = any(token.word == "analyze" for token in head.explain.tokens)
    return kind if is_run else EffectKind.READ


def _kind_of_body(statement: Clauses, head: StatementHead) -> EffectKind:
    verb = "select" if head.body.text_at(0) == "(" else head.verb or ""
    first = FirstWords.of(head.body.text)
    if first.kind in _SESSION or verb == "import":
        if verb not in _NOT_PARSED:
            _check_syntax(statement)
        return EffectKind.OTHER
    if first.kind in _TRANSACTIONS:
        _check_syntax(statement)
        return EffectKind.CHANGE
    if verb in VERBS or _has_nested_change(head.ctes) or _has_nested_change(head.body):
        _check_syntax(statement)
        return EffectKind.CHANGE
    own = statements_of_head(head)
    if verb not in _READING or own:
        return _kind_of_own(statement, own)
    if head.explain.tokens:
        _check_syntax(statement)
    types = _types(head.body if not head.ctes.tokens else statement.part(len(head.explain)))
    is_select = types <= _SELECTS and not types <= {"CREATE"}
    return EffectKind.READ if is_select and not _ACTING.search(statement.text) else EffectKind.OTHER


def _kind_of_own(statement: Clauses, candidates: Iterable[LanceStatement]) -> EffectKind:
    """Return the kind of a statement that this package may run, or that DuckDB runs."""
    for each in candidates:
        if isinstance(each, ProcedureCall | SelectedProcedure):
            return EffectKind.CHANGE if each.writes else EffectKind.READ
        if isinstance(each, _READS):
            return EffectKind.READ
        is_change = isinstance(each, _CHANGES) or (isinstance(each, ComputedCopyStatement) and is_lance(each.options))
        if is_change:
            if each.parses and isinstance(each, TableStatement) and each.target.path is None and not each.is_only_ours:
                _check_syntax(statement)
            return EffectKind.CHANGE
    _check_syntax(statement)
    return EffectKind.OTHER


def _has_nested_change(clauses: Clauses) -> bool:
    """Return whether a parenthesis begins with a change, as in WITH x AS (DELETE …)."""
    return any(clauses.word(i) in _NESTED and clauses.text_at(i - 1) == "(" for i in range(1, len(clauses)))


def _names_native(statement: Clauses) -> bool:
    """Return whether a change names an object of DuckDB's own databases. A qualified column is not such an object."""
    for place, token in enumerate(statement.tokens):
        if token.name is None or token.name.lower() not in _NATIVE or statement.text_at(place - 1) == ".":
            continue
        is_name = statement.text_at(place + 1) == "."
        is_target = statement.word(place - 1) in _BEFORE_TARGET
        is_database = statement.word(place - 1) == "to" and statement.says(0, "copy", "from", "database")
        if is_database or (is_name and (is_target or statement.text_at(place + 3) == ".")):
            return True
    return False


def _check_syntax(statement: Clauses) -> None:
    """Raise duckdb.ParserException if DuckDB cannot parse a statement."""
    _types(statement)


def _types(statement: Clauses) -> set[str]:
    """Return the types of the parts into which DuckDB's parser splits a statement."""
    text = statement.text
    versions = (each.edit for each in spelling.versions_in(text))
    with told_of(text), _LOCK:
        return {each.type.name for each in _parser().extract_statements(edited(text, versions))}


_LOCK: Final = RLock()


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """Return a connection that only parses, and cannot reach files."""
    return duckdb.connect(config={"enable_external_access": "false", "lock_configuration": "true"})


def _first_words(statement: Clauses) -> str:
    tokens = statement.tokens[:_WORDS]
    return statement.sql[tokens[0].start : tokens[-1].end].rstrip(" (=")
