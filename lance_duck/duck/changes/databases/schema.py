"""CREATE SCHEMA and DROP SCHEMA in a database of Lance tables, implemented by namespaces of its folder.

    CREATE [OR REPLACE] SCHEMA [IF NOT EXISTS] [database.]schema
    DROP SCHEMA [IF EXISTS] [database.]schema [CASCADE | RESTRICT]

Without a name, the database is the current one. The schema `main` is the folder itself. Other libraries see a schema as
a namespace directly below the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.databases.database_schema import SCHEMA, DatabaseSchema
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.tables.namespace_folder import NamespaceFolder
from lance_duck.errors import AlreadyExistsError, NotFoundError, ReferencedError, UnsupportedError
from lance_duck.namespaces.names import NAMESPACE, check_new

_INTERNAL: Final = frozenset({SCHEMA, "information_schema", "pg_catalog"})


@dataclass(frozen=True)
class SchemaStatement(LanceStatement):
    """A CREATE SCHEMA or DROP SCHEMA.

    Attributes:
        target: The name of the schema, with its database if it is given.
    """

    target: TableName

    @property
    def name(self) -> str:
        """The name of the schema."""
        return self.target.name

    @property
    def subject(self) -> str:
        """The schema, for errors."""
        return f"schema {self.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the database of the schema is a Lance database."""
        return self._main(session) is not None

    def target_schemas(self, session: ChangeSession) -> Sequence[DatabaseSchema]:
        """Return the schema `main` of the database."""
        main = self._main(session)
        return () if main is None else (main,)

    def _main(self, session: ChangeSession) -> DatabaseSchema | None:
        """Return the schema `main` of the database. Returns None for other databases."""
        if len(self.target.parts) > 1:
            return session.catalog.database(self.target.parts[0])
        place = session.names.place_of_new((self.name,), later=True)
        return None if place is None else session.catalog.database(place[0])

    def _found(self, session: ChangeSession) -> tuple[DatabaseSchema, DatabaseSchema | None]:
        """Return the schema `main` of the database, and the schema with the name, or None."""
        main = self._main(session)
        assert main is not None
        if main.folder is None:
            raise UnsupportedError(
                "the connection does not have a folder for schemas",
                where=self.subject,
                remedy="open lance_duck.connect(folder), or ATTACH a folder",
            )
        if session.block is None:
            session.catalog.refresh(force=True)
        return main, session.catalog.schema(main.database, self.name)


@dataclass(frozen=True)
class CreateSchemaStatement(SchemaStatement):
    """A CREATE SCHEMA.

    Attributes:
        replaces: OR REPLACE.
        may_exist: IF NOT EXISTS.
    """

    replaces: bool
    may_exist: bool

    @classmethod
    def read(cls, head: StatementHead) -> CreateSchemaStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        replaces = body.says(1, "or", "replace")
        at = 3 if replaces else 1
        may_exist = body.says(at + 1, "if", "not", "exists")
        target = _name(body, at + (4 if may_exist else 1), len(body)) if body.word(at) == "schema" else None
        return None if target is None else cls(target, replaces, may_exist)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Create the namespace."""
        session.explain_words("The schema would be created. Nothing was written.")
        main, present = self._found(session)
        if present is not None and self.replaces:
            _refuse_full(session, present)
        elif present is not None or folded(self.name) in _INTERNAL:
            if not self.may_exist:
                raise AlreadyExistsError(f'Schema with name "{self.name}" already exists!')
        else:
            assert main.folder is not None
            parts = (*main.folder.parts, self.name)
            check_new(parts, NAMESPACE)
            if session.transaction is None:
                main.folder.namespace.create_namespace(parts)
                session.catalog.refresh(force=True)
            else:
                folder = NamespaceFolder(main.folder.namespace, parts, f"{main.folder.uri}/{self.name}", main.folder)
                schema = replace(main, name=self.name, given={}, folder=folder)
                session.run(f"CREATE SCHEMA {schema.sql}")
                session.transaction.drafts.create_schema(main, schema)
        return nothing()


@dataclass(frozen=True)
class DropSchemaStatement(SchemaStatement):
    """A DROP SCHEMA.

    Attributes:
        may_miss: IF EXISTS.
        cascades: CASCADE.
    """

    may_miss: bool
    cascades: bool

    @classmethod
    def read(cls, head: StatementHead) -> DropSchemaStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        if not body.says(0, "drop", "schema"):
            return None
        may_miss = body.says(2, "if", "exists")
        last = body.word(len(body) - 1)
        end = len(body) - (last in ("cascade", "restrict"))
        target = _name(body, 4 if may_miss else 2, end)
        return None if target is None else cls(target, may_miss, last == "cascade")

    def run(self, session: ChangeSession) -> ChangeResult:
        """Drop the namespace, and with CASCADE its tables."""
        session.explain_words("The schema would be dropped. Nothing was dropped.")
        main, present = self._found(session)
        if folded(self.name) in _INTERNAL:
            raise UnsupportedError(f'Cannot drop entry "{self.name}" because it is an internal system entry')
        if present is None:
            if not self.may_miss:
                raise NotFoundError(f"Schema with name {self.name} does not exist!")
            return nothing()
        if not self.cascades:
            _refuse_full(session, present)
        assert present.folder is not None
        if session.transaction is None:
            present.folder.namespace.drop_namespace(present.folder.parts, cascade=self.cascades)
            session.catalog.refresh(force=True)
        else:
            session.run(f"DROP SCHEMA {present.sql} CASCADE")
            session.transaction.drafts.drop_schema(main, present, cascades=self.cascades)
        return nothing()


def _name(body: Clauses, start: int, end: int) -> TableName | None:
    """Return the name of a schema that ends at a token. Returns None for names with three parts."""
    name = TableName.at(body, start)
    return name if name is not None and name.path is None and name.after == end and len(name.parts) < 3 else None


def _refuse_full(session: ChangeSession, schema: DatabaseSchema) -> None:
    """Raise ReferencedError if a schema contains tables, views, macros or types."""
    drafts = None if session.transaction is None else session.transaction.drafts
    tables = [*schema.tables, *(() if drafts is None else drafts.names_in(schema.place))]
    present = [name for name in tables if schema.find(name) is not None]
    names = [*present, *schema.broken_tables, *session.catalog.objects(schema).names_in(schema)]
    if names:
        raise ReferencedError(
            f'Cannot drop entry "{schema.name}" because there are entries that depend on it.',
            found=", ".join(dict.fromkeys(names)),
            remedy="DROP SCHEMA … CASCADE drops them, too",
        )
