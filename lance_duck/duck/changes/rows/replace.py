"""REPLACE, committed as one version that deletes rows and adds others.

REPLACE t [[AS] a] WHERE condition AS source
source    SELECT … | FROM … | VALUES (e, …), …, also in parentheses and with WITH

→  SELECT a.<address> FROM t AS a WHERE condition                                 the rows to delete
→  INSERT INTO t source                                                           the rows to add, written first
→  SELECT a.<address> FROM new rows AS a WHERE (condition) IS DISTINCT FROM true  rows that stop the statement
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from lance_duck.commit import run_again
from lance_duck.commit.operations import Operation
from lance_duck.duck.changes.result import ChangeResult, returned
from lance_duck.duck.changes.rows.delete import DeleteStatement
from lance_duck.duck.changes.rows.insert import InsertStatement
from lance_duck.duck.changes.rows.mentions import refuse_identifiers
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.target import TargetTable, dataset_of
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.merge.primary_key import AddedKeys, stage_with_keys
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.edits import Addresses
from lance_duck.verbs.rows.replace import alone, other_row, replacement
from lance_duck.verbs.rows.rows_moved import RowDeletion, delete_addresses
from lance_duck.verbs.writing.settings import WriteSettings
from lance_duck.verbs.writing.staged import StagedRows

_SYNTAX: Final = "REPLACE table WHERE condition AS SELECT …"
_READING: Final = frozenset({"select", "from", "values", "with", "table"})
_RANDOM: Final = frozenset({"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "nextval", "currval"})
_TYPES: Final = {"deleted": "BIGINT", "inserted": "BIGINT"}


@dataclass(frozen=True)
class ReplaceStatement(TableStatement):
    """A REPLACE.

    Attributes:
        delete: The DELETE of the old rows.
        insert: The INSERT of the new rows.
    """

    parses: ClassVar[bool] = False
    is_only_ours: ClassVar[bool] = True

    delete: DeleteStatement
    insert: InsertStatement

    @classmethod
    def read(cls, head: StatementHead) -> ReplaceStatement | None:
        """Read the clauses. Returns None for other statements.

        Raises:
            InvalidInputError: WHERE or AS is missing.
            UnsupportedError: The statement has RETURNING.
        """
        body = head.body
        target = None if body.word(1) == "into" else TableName.at(body, 1)
        if target is None:
            return None
        alias, after = target.alias(body, "where", "as")
        place = body.find("as", start=after)
        if body.word(after) != "where" or place < 0 or place + 1 == len(body):
            raise InvalidInputError("REPLACE needs WHERE and AS", where=f"table {target.name}", expected=_SYNTAX)
        where, source, none = body.part(after, place), body.part(place + 1), body.part(len(body))
        if source.find("returning") >= 0:
            raise UnsupportedError("REPLACE does not have RETURNING", where=f"table {target.name}")
        first = next((i for i in range(len(source)) if source.text_at(i) != "("), 0)
        if source.word(first) not in _READING:
            raise InvalidInputError(
                "REPLACE needs a query after AS", where=f"table {target.name}", found=source.text_at(0)
            )
        delete = DeleteStatement(target, none, alias, none, where, none)
        insert = InsertStatement(target, none, alias, None, False, source, none, None, none)
        return cls(target, delete, insert)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Replace the rows."""
        handle = session.handle(self.target)
        block = session.block_of(handle)
        if block is not None:
            pending = block.changes_of(handle, self.target.name)
            with UncommittedFiles(pending.current) as draft:
                written = self._written(session, pending.current, draft)
                guard = None if written.keys is None else written.keys.guard
                if written.count:
                    pending.apply(written.operation(pending.current, self._condition), guard)
            return written.result
        base = handle.current().handle.base

        def attempt(snapshot: Snapshot) -> tuple[Snapshot | None, ChangeResult]:
            with UncommittedFiles(snapshot) as draft:
                written = self._written(session, snapshot, draft)
                if not written.count:
                    return None, written.result
                guard = None if written.keys is None else written.keys.guard(snapshot)
                operation = written.operation(snapshot, self._condition)
                return draft.commit(operation, affected=written.deletion.affected, guard=guard), written.result

        after, result = run_again(base, attempt)
        if after is not None:
            handle.move_to(after)
        return result

    @property
    def _condition(self) -> str:
        return self.delete.where.part(1).text.strip()

    def _written(self, session: ChangeSession, snapshot: Snapshot, draft: UncommittedFiles) -> _WrittenReplace:
        """Write the files of the statement for one version."""
        table = session.table(self.target, dataset_of(snapshot))
        self._check_condition(table)
        addresses = self.delete.edits(session, table)[0].deleted
        with self.insert.reader(session, table) as reader:
            name = table.name if session.checks_keys else None
            staged, keys = stage_with_keys(reader, snapshot, WriteSettings(), name, addresses)
        draft.note_fragments(staged.fragments)
        if staged.fragments:
            self._check_rows(session, alone(snapshot, staged))
        return _WrittenReplace(delete_addresses(snapshot, addresses, draft), staged, keys)

    def _check_condition(self, table: TargetTable) -> None:
        """Reject conditions that depend on more than the columns of one row."""
        where = self.delete.where
        refuse_identifiers(table, (where,))
        tokens = where.tokens
        random = [token.word for i, token in enumerate(tokens) if token.word in _RANDOM and where.text_at(i + 1) == "("]
        if random:
            raise UnsupportedError(
                "the condition of REPLACE must return the same result for the same row",
                where=f"table {table.name}",
                found=f"{random[0]}()",
            )
        if any(
            token.word in ("select", "from") and where.text_at(i - 1) == "(" for i, token in enumerate(where.tokens)
        ):
            raise UnsupportedError(
                "new rows cannot be checked against a condition with a subquery",
                where=f"table {table.name}",
                found=self._condition,
                remedy="run DELETE and INSERT between BEGIN and COMMIT",
            )

    def _check_rows(self, session: ChangeSession, rows: Snapshot) -> None:
        """Raise DataMismatchError if a written row does not satisfy the condition."""
        text = f"WHERE CAST((\n{self.delete.where.part(1).text}) AS BOOLEAN) IS DISTINCT FROM true"
        others = replace(self.delete, where=Clauses.of(text))
        table = session.table(self.target, dataset_of(rows))
        failing: Addresses = others.edits(session, table)[0].deleted
        if len(failing):
            names = {folded(token.name) for token in self.delete.where.tokens if token.name is not None}
            read = [column.name for column in table.columns if folded(column.name) in names]
            raise other_row(rows, int(np.min(failing)), self._condition, read, f"table {table.name}")


@dataclass(frozen=True)
class _WrittenReplace:
    """A REPLACE whose files are written but not committed."""

    deletion: RowDeletion
    staged: StagedRows
    keys: AddedKeys | None

    def operation(self, snapshot: Snapshot, condition: str) -> Operation:
        return replacement(snapshot, self.deletion, self.staged, condition)

    @property
    def count(self) -> int:
        return self.deletion.count + self.staged.num_rows

    @property
    def result(self) -> ChangeResult:
        rows = pa.table([[self.deletion.count], [self.staged.num_rows]], list(_TYPES))
        return returned(rows, list(_TYPES.values()), self.count)
