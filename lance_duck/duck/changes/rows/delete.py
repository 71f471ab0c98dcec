"""DELETE and TRUNCATE, committed by `verbs.rows`.

DELETE FROM [ONLY] t [[AS] a] [USING …] [WHERE …] [RETURNING …]
TRUNCATE [TABLE] [ONLY] t

→  SELECT a.<address>[, a.…] FROM t AS a[, …] [WHERE …]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.rows.ambiguous import refuse_ambiguous
from lance_duck.duck.changes.rows.joined import JoinedClauses
from lance_duck.duck.changes.rows.returning import result_of, returned_identifiers, returned_table
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.target import ADDRESS, TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.verbs.rows.edits import RowEdits

_CLAUSES: Final = ("using", "where", "returning")


@dataclass(frozen=True)
class DeleteStatement(TableStatement):
    """A DELETE or TRUNCATE. Clauses include their keyword. Missing clauses are empty.

    Attributes:
        ctes: WITH.
        alias: The table's alias.
        using: USING.
        where: WHERE.
        returning: RETURNING.
    """

    ctes: Clauses
    alias: str
    using: Clauses
    where: Clauses
    returning: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> DeleteStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 1 + body.says(1, "table") if head.verb == "truncate" else 2 if body.says(0, "delete", "from") else -1
        target = TableName.at(body, place + body.says(place, "only")) if place > 0 else None
        if target is None:
            return None
        alias, after = target.alias(body, *_CLAUSES)
        clauses = body.cut(*_CLAUSES, start=after)
        return None if clauses is None else cls(target, head.ctes, alias, *clauses)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Delete the rows."""
        predicate = self.where.part(1).text.strip() or "true"
        return session.change(self.target, lambda table: self.edits(session, table), predicate)

    def edits(self, session: ChangeSession, table: TargetTable) -> tuple[RowEdits, ChangeResult]:
        """Find the rows to delete in a version."""
        refuse_ambiguous(table, self.alias, (self.using, self.where, self.returning))
        no_clause = self.ctes.part(len(self.ctes))
        clauses = JoinedClauses("DELETE FROM", self.target, self.alias, self.ctes, no_clause, self.using, self.where)
        shown = returned_table(table.unambiguous, self.returning, self.alias)
        returned = [*shown.columns, *returned_identifiers(table, self.returning)] if self.returning.tokens else ()
        with clauses.texts(session, table) as (joined, _):
            rows = joined.select([column.read(f"{quoted(self.alias)}.{column.quoted}") for column in returned])
        addresses, places = np.unique(rows.column(ADDRESS).to_numpy(), return_index=True)
        columns: pa.Table | None = None
        if self.returning.tokens:
            columns = rows.drop_columns([ADDRESS]).take(pa.array(places))
        result = result_of(session, self.returning, shown, self.alias, columns, len(addresses))
        return RowEdits(deleted=addresses), result
