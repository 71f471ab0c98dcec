"""COPY … FROM a Lance table, implemented by INSERT.

    COPY t [(c, …)] FROM 'x.lance' | 'folder' [[WITH] (FORMAT lance)]

A path that does not end in `.lance` needs FORMAT lance. The table t is a Lance table or a native table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from lance_duck.duck.changes.options import Options, is_lance
from lance_duck.duck.changes.result import ChangeResult, counted
from lance_duck.duck.changes.rows.insert import InsertStatement
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.tables.written_files import WrittenPath
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.errors import InvalidInputError, UnsupportedError


@dataclass(frozen=True)
class CopyLanceStatement(TableStatement):
    """A COPY of a Lance table into a table.

    Attributes:
        columns: The named columns in parentheses. May be empty.
        path: The path of the Lance table to read.
        options: The options, including parentheses. May be empty.
    """

    key_remedy: ClassVar[str] = "remove the duplicates, or load the table with INSERT OR IGNORE INTO … FROM 'x.lance'"

    columns: Clauses
    path: WrittenPath
    options: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CopyLanceStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        target = TableName.at(body, 1)
        if target is None:
            return None
        end = body.closer(target.after) + 1 if body.text_at(target.after) == "(" else target.after
        path = WrittenPath.at(body, end + 1) if body.word(end) == "from" else None
        if path is None:
            return None
        options = body.part(path.after + (body.word(path.after) == "with"))
        is_read = body.tokens[end + 1].path is not None or is_lance(options)
        return cls(target, body.part(target.after, end), path, options) if is_read else None

    def concerns(self, session: ChangeSession) -> bool:
        """Return True: DuckDB cannot read a Lance table in a COPY."""
        return True

    def changes_lance(self, session: ChangeSession) -> bool:
        """Return whether the changed table is a Lance table."""
        return session.is_ours(self.target)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Append the rows."""
        sql = f"INSERT INTO {'.'.join(map(quoted, self.target.parts))} {self.columns.text} {self._rows(session)}"
        if not session.is_ours(self.target):
            session.explain_query(sql, {})
            return counted(session.affected(sql, {}))
        insert = InsertStatement.read(StatementHead.of(Clauses.of(sql)))
        assert insert is not None
        return replace(insert, target=self.target).run(session)

    def _rows(self, session: ChangeSession) -> str:
        """Return the SELECT that reads the table."""
        options = Options.of(self.options, "COPY … FROM a Lance table").values(session, ("format",))
        if str(options.get("format", "lance")).lower() != "lance":
            raise UnsupportedError(
                f"FORMAT {options['format']} cannot read a path that ends in .lance",
                where=self.path.sql,
                remedy="use FORMAT lance, or a path with another ending",
            )
        path = self.path.value(session)
        if path is None:
            raise InvalidInputError("the path of COPY … FROM is null", where=self.path.sql)
        return f"SELECT * FROM lance_scan({literal(path)})"  # noqa: S608
