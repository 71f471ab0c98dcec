"""Statements about Lance tables and their databases that are not supported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, NoReturn

from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement, TableStatement, name_after_if_exists
from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import UnsupportedError

_NAMED_AFTER: Final = {"insert": "into", "update": "update", "delete": "from", "merge": "into", "truncate": "truncate"}
"""The keyword before the table name, for each change."""


@dataclass(frozen=True)
class RefusedStatement(TableStatement):
    """A statement about a Lance table that is not supported. DuckDB would run most of them on the table's view.

        DROP VIEW [IF EXISTS] t | ALTER VIEW [IF EXISTS] t … | COMMENT ON VIEW t …
        ALTER INDEX [IF EXISTS] i ON t …

    Attributes:
        what: The name of the statement in error messages.
        remedy: The statement to use instead.
    """

    parses: ClassVar[bool] = False

    what: str
    remedy: str

    @classmethod
    def read(cls, head: StatementHead) -> RefusedStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        if body.says(0, "drop", "view"):
            return cls._of(name_after_if_exists(body, 2), "DROP VIEW", "DROP TABLE drops the table")
        if body.says(0, "alter", "view"):
            remedy = "ALTER TABLE … RENAME TO renames a table"
            return cls._of(name_after_if_exists(body, 2), "ALTER VIEW", remedy)
        if body.says(0, "alter", "index"):
            index = name_after_if_exists(body, 2)
            target = None if index is None or body.word(index.after) != "on" else TableName.at(body, index.after + 1)
            remedy = "to rename an index, DROP INDEX and CREATE INDEX again; options go after OPTIMIZE"
            return cls._of(target, "this form of ALTER INDEX", remedy)
        if body.says(0, "comment", "on", "view"):
            return cls._of(TableName.at(body, 3), "COMMENT ON VIEW", "COMMENT ON TABLE stores a comment")
        return None

    @classmethod
    def _of(cls, target: TableName | None, what: str, remedy: str) -> RefusedStatement | None:
        return None if target is None else cls(target, what, remedy)

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(
            f"{self.what} is not supported on Lance tables", where=f"table {self.target.name}", remedy=self.remedy
        )


@dataclass(frozen=True)
class RefusedSequence(TableStatement):
    """A CREATE SEQUENCE in a Lance database. DuckDB would drop the sequence at disconnect.

    CREATE [OR REPLACE] SEQUENCE [IF NOT EXISTS] name …
    """

    @classmethod
    def read(cls, head: StatementHead) -> RefusedSequence | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        at = 3 if body.says(1, "or", "replace") else 1
        if body.word(at) != "sequence":
            return None
        target = TableName.at(body, at + (4 if body.says(at + 1, "if", "not", "exists") else 1))
        return None if target is None or target.path is not None else cls(target)

    @property
    def subject(self) -> str:
        """The sequence, for errors."""
        return f"sequence {self.target.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the sequence would be created in a Lance database."""
        return session.schema_of_new(self.target) is not None

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(
            "CREATE SEQUENCE is not supported in a database of Lance tables",
            where=self.subject,
            remedy=f"use CREATE SEQUENCE {session.catalog.native}.main.{self.target.name}, or a TEMP sequence",
        )


@dataclass(frozen=True)
class RefusedImport(LanceStatement):
    """An IMPORT DATABASE into a Lance database. DuckDB would create native tables there, and drop them at disconnect.

    IMPORT DATABASE 'folder' | PRAGMA import_database('folder')
    """

    @classmethod
    def read(cls, head: StatementHead) -> RefusedImport | None:
        """Read the clauses. Returns None for other statements."""
        is_import = head.body.says(0, "import", "database") or head.body.says(0, "pragma", "import_database")
        return cls() if is_import and not head.explain.tokens else None

    @property
    def subject(self) -> str:
        """The statement, for errors."""
        return "IMPORT DATABASE"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the tables would be created in a Lance database."""
        return self._database(session) is not None

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise UnsupportedError."""
        schema = self._database(session)
        assert schema is not None
        sql = "SELECT database_name FROM system.main.duckdb_databases() WHERE NOT internal ORDER BY database_oid"
        names = [name for (name,) in session.relation(sql, {}).fetchall()]
        native = quoted(next((name for name in names if session.catalog.database(name) is None), "memory"))
        raise UnsupportedError(
            "IMPORT DATABASE into a database of Lance tables is not supported",
            where=f"database {schema.database}",
            remedy=f"import into a native database, and copy it: USE {native}, IMPORT DATABASE, "
            f"COPY FROM DATABASE {native} TO {quoted(schema.database)}",
        )

    def _database(self, session: ChangeSession) -> DatabaseSchema | None:
        return session.schema_of_new(TableName(("",), None, 0, 0))


@dataclass(frozen=True)
class RefusedAlias(LanceStatement):
    """An ALTER DATABASE of a Lance database, after which its tables would be unreachable by name.

        ALTER DATABASE [IF EXISTS] lance SET ALIAS TO other

    Attributes:
        name: The database.
    """

    name: str

    @classmethod
    def read(cls, head: StatementHead) -> RefusedAlias | None:
        """Read the clauses. Returns None for other statements."""
        name = name_after_if_exists(head.body, 2) if head.body.says(0, "alter", "database") else None
        return None if name is None or len(name.parts) > 1 else cls(name.name)

    @property
    def subject(self) -> str:
        """The database, for errors."""
        return f"database {self.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether it is a Lance database."""
        return session.catalog.database(self.name) is not None

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(
            "ALTER DATABASE is not supported on databases of Lance tables",
            where=self.subject,
            remedy="DETACH the database, then ATTACH its folder under another name",
        )


@dataclass(frozen=True)
class NestedChange(TableStatement):
    """A change of a Lance table inside WITH, as supported by DuckDB 2.0.

    WITH x AS (DELETE FROM t … RETURNING …) …
    """

    @classmethod
    def targets(cls, head: StatementHead) -> list[NestedChange]:
        """Return the changes inside WITH. They may change Lance tables or native tables."""
        names = (_target(head.ctes, place) for place in range(len(head.ctes)))
        return [cls(name) for name in names if name is not None]

    def run(self, session: ChangeSession) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(
            "changes of a Lance table inside a common table expression are not supported",
            where=f"table {self.target.name}",
            remedy="run the change as a separate statement, and store its RETURNING rows",
        )


def _target(ctes: Clauses, place: int) -> TableName | None:
    """Return the table of the change that begins at a token after `AS (`. Returns None if there is no change."""
    word = _NAMED_AFTER.get(ctes.word(place) or "")
    if word is None or ctes.text_at(place - 1) != "(" or ctes.word(place - 2) not in ("as", "materialized"):
        return None
    named = next((i for i in range(place, min(place + 4, len(ctes))) if ctes.word(i) == word), None)
    return None if named is None else TableName.at(ctes, named + 1)
