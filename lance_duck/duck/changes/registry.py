"""The statements that are run here, by the word that each begins with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from lance_duck.duck.changes.databases.attach import AttachStatement, DetachStatement, SchemaStatement
from lance_duck.duck.changes.databases.secret import CreateSecretStatement, DropSecretStatement
from lance_duck.duck.changes.indexes.create import CreateIndexStatement, DropIndexStatement
from lance_duck.duck.changes.indexes.manage import AlterIndexStatement, ReindexStatement, ShowIndexesStatement
from lance_duck.duck.changes.merge.statement import MergeStatement
from lance_duck.duck.changes.procedure import PREFIX, Procedure
from lance_duck.duck.changes.refused import RefusedAlias, RefusedObject, RefusedStatement
from lance_duck.duck.changes.rows.delete import DeleteStatement
from lance_duck.duck.changes.rows.insert import InsertStatement
from lance_duck.duck.changes.rows.nested import NestedChange
from lance_duck.duck.changes.rows.update import UpdateStatement
from lance_duck.duck.changes.selected_procedure import SelectedProcedure
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.changes.tables.alter import AlterStatement
from lance_duck.duck.changes.tables.comment import CommentStatement
from lance_duck.duck.changes.tables.copy_from import CopyDatabaseStatement, CopyFromStatement
from lance_duck.duck.changes.tables.copy_to import CopyStatement
from lance_duck.duck.changes.tables.create import CreateStatement
from lance_duck.duck.changes.tables.describe import DescribeStatement
from lance_duck.duck.changes.tables.drop import DropStatement
from lance_duck.duck.changes.tables.written_files import ComputedCopyStatement, ForeignFileStatement
from lance_duck.duck.changes.upkeep import metadata
from lance_duck.duck.changes.upkeep import procedures as upkeep
from lance_duck.duck.changes.upkeep.auto_cleanup import AutoCleanupStatement, ShowMaintenanceStatement
from lance_duck.duck.changes.upkeep.statements import (
    AnalyzeStatement,
    CheckpointStatement,
    OptimizeStatement,
    VacuumStatement,
)
from lance_duck.duck.changes.versions import references
from lance_duck.duck.changes.versions.commit_message import SetCommitMessage
from lance_duck.duck.changes.versions.restore import RestoreProcedure
from lance_duck.duck.statement.head import StatementHead

PROCEDURES: Final[tuple[type[Procedure], ...]] = (
    *upkeep.PROCEDURES,
    *metadata.PROCEDURES,
    SetCommitMessage,
    RestoreProcedure,
    *references.PROCEDURES,
)
"""What CALL runs, and SELECT … FROM."""

Reader = Callable[[StatementHead], LanceStatement | None]
"""Reads the clauses of a statement; None if it is another one."""

READERS: Final[Mapping[str, tuple[Reader, ...]]] = {
    "insert": (InsertStatement.read,),
    "update": (UpdateStatement.read,),
    "delete": (DeleteStatement.read,),
    "truncate": (DeleteStatement.read,),
    "merge": (MergeStatement.read,),
    "create": (
        CreateStatement.read,
        CreateIndexStatement.read,
        CreateSecretStatement.read,
        SchemaStatement.read,
        RefusedStatement.read,
        RefusedObject.read,
    ),
    "drop": (
        DropStatement.read,
        DropIndexStatement.read,
        DropSecretStatement.read,
        SchemaStatement.read,
        RefusedStatement.read,
    ),
    "attach": (AttachStatement.read, ForeignFileStatement.read),
    "detach": (DetachStatement.read,),
    "copy": (
        CopyFromStatement.read,
        CopyDatabaseStatement.read,
        CopyStatement.read,
        ComputedCopyStatement.read,
    ),
    "export": (ForeignFileStatement.read,),
    "alter": (
        AutoCleanupStatement.read,
        AlterIndexStatement.read,
        AlterStatement.read,
        RefusedAlias.read,
        RefusedStatement.read,
    ),
    "comment": (CommentStatement.read, RefusedStatement.read),
    "vacuum": (VacuumStatement.read, AnalyzeStatement.read),
    "analyze": (AnalyzeStatement.read,),
    "optimize": (OptimizeStatement.read,),
    "checkpoint": (CheckpointStatement.read,),
    "reindex": (ReindexStatement.read,),
    "show": (ShowIndexesStatement.read, ShowMaintenanceStatement.read, DescribeStatement.read),
    "describe": (DescribeStatement.read,),
    "call": tuple(procedure.read for procedure in PROCEDURES),
    "select": (partial(SelectedProcedure.read_of, PROCEDURES),),
    "from": (partial(SelectedProcedure.read_of, PROCEDURES),),
}
"""Readers that are asked in turn, by the first word of a statement after EXPLAIN and WITH."""

WORDS: Final = (*(READERS.keys() - {"select", "from"}), *(f"{PREFIX}{procedure.name}" for procedure in PROCEDURES))
"""Words of which each text has one that holds a statement of these."""


def nested_changes(head: StatementHead) -> Sequence[LanceStatement]:
    """Return the changes that stand inside a statement, whatever they change."""
    return NestedChange.targets(head)


def statement_of(head: StatementHead) -> LanceStatement | None:
    """Return a statement by its head; None if it is none of these."""
    statements = (read(head) for read in READERS.get(head.verb or "", ()))
    return next((statement for statement in statements if statement is not None), None)
