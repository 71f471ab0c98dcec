"""DELETE and TRUNCATE, which end in `verbs.rows`.

DELETE FROM t [[AS] a] [USING …] [WHERE …] [RETURNING …]
TRUNCATE [TABLE] t

→  SELECT a._rowaddr[, a.…] FROM t AS a[, …] [WHERE …]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from lance_duck.duck.changes.head import StatementHead
from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.returning import result_of
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import TargetTable, joined_query
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.verbs.rows.edits import RowEdits

_CLAUSES: Final = ("using", "where", "returning")


@dataclass(frozen=True)
class DeleteStatement:
    """A DELETE or a TRUNCATE; each clause begins with its word, and is empty where there is none.

    Attributes:
        ctes: WITH.
        target: The table.
        alias: What the statement calls it.
        using: USING.
        where: WHERE.
        returning: RETURNING.
    """

    ctes: Clauses
    target: TableName
    alias: str
    using: Clauses
    where: Clauses
    returning: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> DeleteStatement | None:
        """Read the clauses; None if they are not those of such a statement."""
        body = head.body
        place = 1 + body.says(1, "table") if head.verb == "truncate" else 2 if body.says(0, "delete", "from") else -1
        target = TableName.at(body, place) if place > 0 else None
        if target is None:
            return None
        alias, after = target.alias(body, *_CLAUSES)
        clauses = body.cut(*_CLAUSES, start=after)
        return None if clauses is None else cls(head.ctes, target, alias, *clauses)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Delete the rows."""
        predicate = self.where.part(1).text.strip() or "true"
        return session.change(self.target, lambda table: self.edits(session, table), predicate)

    def edits(self, session: ChangeSession, table: TargetTable) -> tuple[RowEdits, ChangeResult]:
        """Find the rows of a version."""
        with session.pinned(table, self.target, self.ctes, self.using.part(1), self.where) as (texts, tables):
            rows = session.arrow(self._query(table, *texts), tables)
        addresses, places = np.unique(rows.column(ROW_ADDRESS).to_numpy(), return_index=True)
        columns: pa.Table | None = None
        if self.returning.tokens:
            columns = rows.drop_columns([ROW_ADDRESS]).take(pa.array(places))
        result = result_of(session, self.returning, table, self.alias, columns, len(addresses))
        return RowEdits(deleted=addresses), result

    def _query(self, table: TargetTable, ctes: str, using: str, where: str) -> str:
        columns = [f"{quoted(self.alias)}.{column.quoted}" for column in table.columns] if self.returning.tokens else []
        return joined_query(ctes, columns, self.alias, using, where)
