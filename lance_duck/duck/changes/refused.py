"""Statements about Lance tables and their databases that are not supported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

from lance_duck.duck.changes.head import StatementHead
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement, TableStatement
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.errors import UnsupportedError

_BEFORE_VIEW: Final = frozenset({"create", "or", "replace", "recursive"})
"""Words before VIEW with which a view comes into the database that its name tells."""


@dataclass(frozen=True)
class RefusedStatement(TableStatement):
    """A statement about a Lance table that is not supported: DuckDB would run it on the view that stands for the table.

        DROP VIEW [IF EXISTS] t | CREATE [OR REPLACE] VIEW lance.t | ALTER VIEW [IF EXISTS] t … | COMMENT ON VIEW t …

    Attributes:
        what: The statement, as an error names it.
        remedy: What does the same.
        is_new: The name is that of a new view, which may stand before that of a table in another database.
    """

    what: str
    remedy: str
    is_new: bool = False

    @classmethod
    def read(cls, head: StatementHead) -> RefusedStatement | None:
        """Read the clauses; None if the statement is none of these."""
        body = head.body
        if body.says(0, "drop", "view"):
            return cls._of(_after_if_exists(body, 2), "DROP VIEW", "DROP TABLE drops the table")
        if body.says(0, "alter", "view"):
            remedy = "a table is called what its folder is called: CREATE TABLE AS makes another one"
            return cls._of(_after_if_exists(body, 2), "ALTER VIEW", remedy)
        if body.says(0, "comment", "on", "view"):
            return cls._of(TableName.at(body, 3), "COMMENT ON VIEW", "COMMENT ON TABLE keeps the text")
        view = body.find("view", stop=min(5, len(body))) if head.verb == "create" else -1
        if view < 0 or any(body.word(place) not in _BEFORE_VIEW for place in range(view)):
            return None
        if body.says(view + 1, "if", "not", "exists"):
            return None  # which does nothing where there is a table
        remedy = "DROP TABLE it, or give the view another name"
        return cls._of(TableName.at(body, view + 1), "CREATE VIEW under the name of a table", remedy, is_new=True)

    @classmethod
    def _of(cls, target: TableName | None, what: str, remedy: str, *, is_new: bool = False) -> RefusedStatement | None:
        return None if target is None else cls(target, what, remedy, is_new)

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the name is that of a Lance table, in the database where a new view would be."""
        if not self.is_new or len(self.target.parts) > 1:
            return session.is_ours(self.target)
        database = session.database_of_new(self.target)
        return database is not None and database.find(self.target.name) is not None

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(
            f"{self.what} is not supported on Lance tables", where=f"table {self.target.name}", remedy=self.remedy
        )


@dataclass(frozen=True)
class RefusedAlias(LanceStatement):
    """An ALTER DATABASE of a database of Lance tables, whose tables would be known by no name.

        ALTER DATABASE [IF EXISTS] lance SET ALIAS TO other

    Attributes:
        name: The database.
    """

    name: str

    @classmethod
    def read(cls, head: StatementHead) -> RefusedAlias | None:
        """Read the clauses; None if they are not those of an ALTER DATABASE."""
        name = _after_if_exists(head.body, 2) if head.body.says(0, "alter", "database") else None
        return None if name is None or len(name.parts) > 1 else cls(name.name)

    @property
    def subject(self) -> str:
        """The database, for errors."""
        return f"database {self.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether it is a database of Lance tables."""
        return session.catalog.database(self.name) is not None

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(
            "ALTER DATABASE is not supported on databases of Lance tables",
            where=self.subject,
            remedy="ATTACH 'folder' AS other (TYPE lance) gives a folder another name",
        )


def _after_if_exists(body: Clauses, place: int) -> TableName | None:
    """Return the name at a place, perhaps after IF EXISTS."""
    return TableName.at(body, place + 2 if body.says(place, "if", "exists") else place)
