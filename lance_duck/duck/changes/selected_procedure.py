"""SELECT … FROM a procedure: what `CALL` gives, as the `lance` extension of DuckDB has it.

SELECT list FROM lance_name(table, …) [[AS] alias] … | FROM lance_name(table, …) …

The procedure stands first after FROM, and runs once, before the rest of the statement is evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_duck.duck.changes.clause_tables import AFTER_TABLE
from lance_duck.duck.changes.procedure import Procedure
from lance_duck.duck.changes.result import ChangeResult, returned
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.user_scope import call_as_user


@dataclass(frozen=True)
class SelectedProcedure(LanceStatement):
    """A SELECT from a procedure.

    Attributes:
        procedure: The call.
        before: What stands before FROM.
        alias: What the rows of the procedure are called.
        after: What follows it.
    """

    procedure: Procedure
    before: str
    alias: str
    after: str

    @classmethod
    def read_of(cls, procedures: Sequence[type[Procedure]], head: StatementHead) -> SelectedProcedure | None:
        """Read the clauses. Returns None for other statements.

        Raises:
            InvalidInputError: Arguments do not fit the procedure.
        """
        body, place = head.body, head.body.find("from")
        name = TableName.at(body, place + 1) if place >= 0 and not head.ctes.tokens else None
        if name is None or name.path is not None or body.text_at(name.after) != "(":
            return None
        close = body.closer(name.after)
        call = StatementHead.of(Clauses.of(f"CALL {body.part(place + 1, close + 1).text}"))
        procedure = next((found for each in procedures if (found := each.read(call)) is not None), None)
        if procedure is None:
            return None
        rows = TableName((name.name,), None, name.first, close + 1)
        alias, after = rows.alias(body, *AFTER_TABLE)
        return cls(procedure, body.part(0, place).text, alias, body.part(after).text)

    @property
    def subject(self) -> str:
        """The procedure, for errors."""
        return self.procedure.subject

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the procedure is one of ours."""
        return self.procedure.concerns(session)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Run the procedure, and evaluate the statement on what it gives."""
        result = self.procedure.run(session)
        sql = f"{self.before}FROM ({result.sql}) AS {quoted(self.alias)}\n{self.after}"
        relation = session.relation(sql, result.tables)
        types = list(map(str, relation.types))
        return returned(call_as_user(relation.to_arrow_table, result.tables), types, result.rowcount)
