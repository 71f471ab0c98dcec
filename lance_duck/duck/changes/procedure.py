"""Procedures, which run the operations of `upkeep.operations` with CALL or SELECT … FROM.

    CALL lance_name(table, …) | CALL lance.name(table, …)
    SELECT list FROM lance_name(table, …) [[AS] alias] … | FROM lance_name(table, …) …

`lance` is the name of a Lance database. A table is given by name, with or without quotes, or by path as a string. In a
SELECT, the procedure comes first after FROM. It runs once, before DuckDB evaluates the statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, NoReturn

from lance_duck.arguments import nearest_name, refuse_unknown
from lance_duck.duck.changes.clause_tables import AFTER_TABLE
from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, returned
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.changes.upkeep.operations import PROCEDURES, TABLE, TableOperation
from lance_duck.duck.databases.database_schema import SCHEMA
from lance_duck.duck.history.names import NAMES, PREFIX
from lance_duck.duck.statement.call import Call
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.duck.user_scope import call_as_user
from lance_duck.errors import InvalidInputError, NotFoundError

_NO_CALL: Final = Call(("",), (), {})


@dataclass(frozen=True)
class ProcedureCall(LanceStatement):
    """A CALL of a procedure.

    Attributes:
        operation: The operation that it runs.
        call: The statement.
        arguments: The text of each argument, by parameter.
    """

    operation: TableOperation
    call: Call
    arguments: Mapping[str, Clauses]

    @classmethod
    def read(cls, head: StatementHead) -> ProcedureCall | None:
        """Read the arguments. Returns None for other statements.

        Raises:
            WrongTypeError: An argument is unknown.
            InvalidInputError: An argument is missing or repeated.
        """
        call = Call.of(head.body)
        if call is None:
            return None
        *qualifiers, name = call.name
        operation = PROCEDURES.get(name) or (PROCEDURES.get(f"{PREFIX}{name}") if qualifiers else None)
        if operation is None:
            return None
        refuse_unknown(call.named, operation.signature, f"CALL {'.'.join(call.name)}")
        required = operation.required + (not operation.in_transaction)
        return cls(operation, call, _without_bare_table(call.bound(tuple(operation.signature), required)))

    @property
    def writes(self) -> bool:
        """Whether the operation changes the table."""
        return self.operation.writes

    @property
    def subject(self) -> str:
        """The procedure, for errors."""
        return f"{PREFIX}{self.operation.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the name is unqualified, or qualified by a Lance database."""
        database, *schema = self.call.name[:-1] or (session.catalog.name,)
        return len(schema) < 2 and session.catalog.schema(database, *(schema or [SCHEMA])) is not None

    def run(self, session: ChangeSession) -> ChangeResult:
        """Run the operation."""
        operation, types = self.operation, self.operation.signature
        session.explain_words(operation.note or f"{self.subject} would change the table. Nothing was written.")
        if not operation.in_transaction:
            session.refuse_in_transaction(f"CALL {self.subject}")
        elif session.block is None:
            raise InvalidInputError(
                f"{self.subject} needs an open transaction", remedy="run it between BEGIN and COMMIT"
            )
        texts = {name: f"CAST(({argument.text}) AS {types[name]})" for name, argument in self.arguments.items()}
        values = operation.values(session, Options(texts, f"CALL {self.subject}"), {})
        about = session.block if operation.in_transaction else self._table(session, values.pop(TABLE))
        return operation.result(operation.run(about, values))

    def _table(self, session: ChangeSession, text: str) -> TableHandle:
        """Return the table with a name or at a path.

        Raises:
            UnsupportedError: The operation would change a table of a read-only database.
        """
        named = session.catalog.table((*self.call.name[:-1], text)) if len(self.call.name) > 1 else None
        handle = named or session.catalog.path_handle(session.names.qualified(text, later=True))
        home = session.catalog.home(handle) if self.writes else None
        if home is not None:
            home.check_writable(self.subject)
        return handle


@dataclass(frozen=True)
class UnknownProcedure(LanceStatement):
    """A CALL with a name similar to a procedure's name.

    Attributes:
        name: The unknown name.
        remedy: The procedure or function that was probably meant.
    """

    writes: ClassVar[bool] = False

    name: str
    remedy: str

    @classmethod
    def read(cls, head: StatementHead) -> UnknownProcedure | None:
        """Read the name. Returns None for other statements."""
        name = (Call.of(head.body) or _NO_CALL).name[-1]
        names = [*(known.removeprefix(PREFIX) for known in PROCEDURES), *NAMES]
        bare = name.removeprefix(PREFIX)
        nearest = nearest_name(bare, names) if bare != name and bare not in names else None
        return None if nearest is None else cls(name, f"did you mean {PREFIX + nearest!r}?")

    @property
    def subject(self) -> str:
        """The name, for errors."""
        return self.name

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether DuckDB does not have a function or macro with this name."""
        found = f"system.main.lower(function_name) = {literal(self.name)}"
        sql = f"SELECT 1 FROM system.main.duckdb_functions() WHERE {found}"  # noqa: S608
        return not session.relation(sql, {}).fetchall()

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise NotFoundError."""
        raise NotFoundError("no such procedure", where=f"CALL {self.name}", remedy=self.remedy)


@dataclass(frozen=True)
class SelectedProcedure(LanceStatement):
    """A SELECT from a procedure.

    Attributes:
        procedure: The call.
        before: Text before FROM.
        alias: Name of the procedure's rows.
        after: Text after the procedure.
    """

    procedure: ProcedureCall
    before: str
    alias: str
    after: str

    @classmethod
    def read(cls, head: StatementHead) -> SelectedProcedure | None:
        """Read the clauses. Returns None for other statements.

        Raises:
            LanceDuckError: See `ProcedureCall.read`.
        """
        body, place = head.body, head.body.find("from")
        name = TableName.at(body, place + 1) if place >= 0 and not head.ctes.tokens else None
        if name is None or name.path is not None or body.text_at(name.after) != "(":
            return None
        close = body.closer(name.after)
        call = Clauses.of(f"CALL {body.part(place + 1, close + 1).text}")
        procedure = ProcedureCall.read(StatementHead.of(call))
        if procedure is None:
            return None
        rows = TableName((name.name,), None, name.first, close + 1)
        alias, after = rows.alias(body, *AFTER_TABLE)
        return cls(procedure, body.part(0, place).text, alias, body.part(after).text)

    @property
    def writes(self) -> bool:
        """Whether the procedure changes the table."""
        return self.procedure.writes

    @property
    def subject(self) -> str:
        """The procedure, for errors."""
        return self.procedure.subject

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the procedure concerns Lance tables."""
        return self.procedure.concerns(session)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Run the procedure, and evaluate the statement on its rows."""
        result = self.procedure.run(session)
        sql = f"{self.before}FROM ({result.sql}) AS {quoted(self.alias)}\n{self.after}"
        relation = session.relation(sql, result.tables)
        types = list(map(str, relation.types))
        return returned(call_as_user(relation.to_arrow_table, result.tables), types, result.rowcount)


def _without_bare_table(arguments: Mapping[str, Clauses]) -> Mapping[str, Clauses]:
    """Return the arguments with an unquoted table name converted to a string."""
    table = arguments.get(TABLE)
    name = None if table is None or table.word(0) == "null" else TableName.at(table, 0)
    if table is None or name is None or name.path is not None or name.after != len(table):
        return arguments
    return {**arguments, TABLE: Clauses.of(literal(table.text.strip()))}
