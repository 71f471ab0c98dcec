"""Base class of the procedures that CALL runs.

    CALL lance_name(table, …) | CALL lance.name(table, …)

`lance` stands for a database of Lance tables. A table is given by its name, with or without quotes, or by its path as a
text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.databases.database import SCHEMA
from lance_duck.duck.statement.call import Call
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.errors import InvalidInputError

PREFIX: Final = "lance_"
TABLE: Final = "table"


@dataclass(frozen=True)
class Procedure(LanceStatement):
    """A CALL of a procedure.

    A kind of procedure gives its name, its parameters with their types in DuckDB's words, and how many of them, from
    the first on, have to be given.

    Attributes:
        call: The statement.
        arguments: The text of each argument that is given, by its parameter.
    """

    name: ClassVar[str]
    parameters: ClassVar[Mapping[str, str]]
    required: ClassVar[int] = 0

    call: Call
    arguments: Mapping[str, Clauses]

    @classmethod
    def read(cls, head: StatementHead) -> Self | None:
        """Read the arguments; None if the statement is not a CALL of this procedure.

        Raises:
            InvalidInputError: An argument is missing, is for no parameter, or is given twice.
        """
        call = Call.of(head.body)
        if call is None or call.name[-1] not in (cls.name, PREFIX + cls.name):
            return None
        if len(call.name) == 1 and call.name[-1] == cls.name:
            return None
        return cls(call, _without_bare_table(call.bound(tuple(cls.parameters), cls.required)))

    @property
    def subject(self) -> str:
        """The procedure, for errors."""
        return f"{PREFIX}{self.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the procedure is one of ours, and not one of another database or schema."""
        database, *schema = self.call.name[:-1] or (session.catalog.name,)
        return session.catalog.database(database) is not None and schema in ([], [SCHEMA])

    def values(self, session: ChangeSession) -> dict[str, Any]:
        """Return the values of the arguments, as DuckDB evaluates them; None for those that are not given."""
        values = dict.fromkeys(self.parameters)
        selected = [
            f"CAST(({argument.text}) AS {self.parameters[name]}) AS {quoted(name)}"
            for name, argument in self.arguments.items()
        ]
        if selected:
            sql = f"SELECT {', '.join(selected)}"
            session.explain_query(sql, {})
            values.update(zip(self.arguments, session.relation(sql, {}).fetchall()[0], strict=True))
        return values

    def table(self, session: ChangeSession, values: Mapping[str, Any]) -> TableHandle:
        """Return the table that the argument `table` names.

        Raises:
            InvalidInputError: It is NULL.
            UnsupportedError: It is in a database that is only read, and the procedure changes it.
        """
        text = values[TABLE]
        if text is None:
            raise InvalidInputError(f"{self.subject} without a table", expected="its name or path", found="NULL")
        named = session.catalog.table((self.call.name[0], text)) if len(self.call.name) > 1 else None
        handle = named or session.catalog.path_handle(session.names.qualified(text, later=True))
        home = session.catalog.home(handle) if self.writes else None
        if home is not None:
            home.check_writable(self.subject)
        return handle


def _without_bare_table(arguments: Mapping[str, Clauses]) -> Mapping[str, Clauses]:
    """Return the arguments with a text in place of a table that is named without quotes."""
    table = arguments.get(TABLE)
    name = None if table is None or table.word(0) == "null" else TableName.at(table, 0)
    if table is None or name is None or name.path is not None or name.after != len(table):
        return arguments
    return {**arguments, TABLE: Clauses.of(literal(table.text.strip()))}
