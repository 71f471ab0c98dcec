"""The statements that this package runs, by their first word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from lance_duck.duck.changes.databases.attach import AttachStatement, DetachStatement
from lance_duck.duck.changes.databases.schema import CreateSchemaStatement, DropSchemaStatement
from lance_duck.duck.changes.databases.secret import CreateSecretStatement, DropSecretStatement
from lance_duck.duck.changes.indexes import CreateIndexStatement, DropIndexStatement
from lance_duck.duck.changes.merge.statement import MergeStatement
from lance_duck.duck.changes.objects.alter import CommentObjectStatement, DropObjectStatement, RenameViewStatement
from lance_duck.duck.changes.objects.create import CreateObjectStatement
from lance_duck.duck.changes.procedure import ProcedureCall, SelectedProcedure, UnknownProcedure
from lance_duck.duck.changes.refused import NestedChange, RefusedAlias, RefusedImport, RefusedSequence, RefusedStatement
from lance_duck.duck.changes.rows.delete import DeleteStatement
from lance_duck.duck.changes.rows.insert import InsertStatement
from lance_duck.duck.changes.rows.replace import ReplaceStatement
from lance_duck.duck.changes.rows.update import UpdateStatement
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.changes.tables.alter import AlterStatement
from lance_duck.duck.changes.tables.comment import CommentStatement
from lance_duck.duck.changes.tables.copy_database import CopyDatabaseStatement
from lance_duck.duck.changes.tables.copy_from import CopyFromStatement
from lance_duck.duck.changes.tables.copy_lance import CopyLanceStatement
from lance_duck.duck.changes.tables.copy_to import CopyStatement
from lance_duck.duck.changes.tables.create import CreateStatement
from lance_duck.duck.changes.tables.describe import DescribeStatement
from lance_duck.duck.changes.tables.drop import DropStatement
from lance_duck.duck.changes.tables.export import ExportStatement
from lance_duck.duck.changes.tables.written_files import ComputedCopyStatement, ForeignFileStatement
from lance_duck.duck.changes.upkeep.operations import PROCEDURES
from lance_duck.duck.changes.upkeep.statements import AnalyzeStatement, ShowStatement, UpkeepStatement
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.head import StatementHead

_SHAPES: Final = 256
Reader = Callable[[StatementHead], LanceStatement | None]
"""Reads the clauses of a statement. Returns None for other statements."""

READERS: Final[Mapping[str, tuple[Reader, ...]]] = {
    "insert": (InsertStatement.read,),
    "update": (UpdateStatement.read,),
    "delete": (DeleteStatement.read,),
    "replace": (ReplaceStatement.read,),
    "truncate": (DeleteStatement.read,),
    "merge": (MergeStatement.read,),
    "create": (
        CreateStatement.read,
        CreateIndexStatement.read,
        CreateSecretStatement.read,
        CreateSchemaStatement.read,
        CreateObjectStatement.read,
        RefusedSequence.read,
    ),
    "drop": (
        DropStatement.read,
        DropIndexStatement.read,
        DropSecretStatement.read,
        DropSchemaStatement.read,
        DropObjectStatement.read,
        RefusedStatement.read,
    ),
    "attach": (AttachStatement.read, ForeignFileStatement.read),
    "detach": (DetachStatement.read,),
    "copy": (
        CopyLanceStatement.read,
        CopyFromStatement.read,
        CopyDatabaseStatement.read,
        CopyStatement.read,
        ComputedCopyStatement.read,
    ),
    "export": (ExportStatement.read,),
    "import": (RefusedImport.read,),
    "pragma": (RefusedImport.read,),
    "alter": (
        UpkeepStatement.read_auto_cleanup,
        UpkeepStatement.read_alter_index,
        AlterStatement.read,
        RenameViewStatement.read,
        RefusedAlias.read,
        RefusedStatement.read,
    ),
    "comment": (CommentStatement.read, CommentObjectStatement.read, RefusedStatement.read),
    "vacuum": (AnalyzeStatement.read, UpkeepStatement.read),
    "analyze": (AnalyzeStatement.read,),
    "optimize": (UpkeepStatement.read,),
    "checkpoint": (UpkeepStatement.read,),
    "reindex": (UpkeepStatement.read_reindex,),
    "show": (ShowStatement.read, DescribeStatement.read),
    "describe": (DescribeStatement.read,),
    "call": (ProcedureCall.read, UnknownProcedure.read),
    "select": (SelectedProcedure.read,),
    "from": (SelectedProcedure.read,),
}
"""Readers to try in order, by the first keyword of a statement after EXPLAIN and WITH."""

WORDS: Final = (*(READERS.keys() - {"select", "from"}), *PROCEDURES)
"""Every text with one of these statements contains at least one of these words."""


class Readings(NamedTuple):
    """What a statement may be.

    Attributes:
        head: Its parts.
        nested: Changes nested in it, for Lance and native tables.
        changes: `nested`, then the statements that it may be, in the order in which to try them.
    """

    head: StatementHead
    nested: Sequence[LanceStatement]
    changes: Sequence[LanceStatement]

    @classmethod
    def of(cls, statement: Clauses) -> Readings:
        """Read a statement."""
        head = StatementHead.of(statement)
        nested = NestedChange.targets(head)
        return cls(head, nested, [*nested, *statements_of_head(head)])


def statements_of_head(head: StatementHead) -> list[LanceStatement]:
    """Return the statements that a head may begin, in the order in which to try them."""
    statements = (read(head) for read in READERS.get(head.verb or "", ()))
    return [statement for statement in statements if statement is not None]


@lru_cache(_SHAPES)
def readings_of_shape(shape: str) -> Readings:
    """Read the shape of many statements: see `ListedConstants`."""
    return Readings.of(Clauses.of(shape))
