"""CREATE VIEW, CREATE MACRO and CREATE TYPE in a database of Lance tables.

    CREATE [OR REPLACE] [RECURSIVE] VIEW [IF NOT EXISTS] name [(column, …)] AS query
    CREATE [OR REPLACE] MACRO | FUNCTION [IF NOT EXISTS] name (parameters) AS [TABLE] body, …
    CREATE [OR REPLACE] TYPE [IF NOT EXISTS] name AS type

The stored text is what the user wrote, without the name of the own database, which another process may not use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import duckdb

from lance_duck.duck.changes.objects.statement import (
    KIND_OF_WORD,
    MACRO,
    TABLE_MACRO,
    TYPE,
    VIEW,
    ObjectChange,
    ObjectStatement,
    name_at,
    written_clauses,
)
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.duck.statement.text import Statement
from lance_duck.errors import AlreadyExistsError, UnsupportedError
from lance_duck.namespaces import (
    CatalogObject,
    MacroDefinition,
    TableMacroDefinition,
    TypeDefinition,
    ViewDefinition,
)

_ENGINE: Final = f"duckdb {duckdb.__version__}"


@dataclass(frozen=True)
class CreateObjectStatement(ObjectStatement):
    """A CREATE VIEW, MACRO or TYPE.

    Attributes:
        replaces: OR REPLACE.
        may_exist: IF NOT EXISTS.
        is_recursive: RECURSIVE.
        definition: The clauses after the name.
    """

    replaces: bool
    may_exist: bool
    is_recursive: bool
    definition: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CreateObjectStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        replaces = body.says(1, "or", "replace")
        at = 3 if replaces else 1
        is_recursive = body.word(at) == "recursive"
        at += is_recursive
        kind = KIND_OF_WORD.get(body.word(at) or "")
        may_exist = body.says(at + 1, "if", "not", "exists")
        target = name_at(body, at + (4 if may_exist else 1))
        if kind is None or target is None or target.after >= len(body):
            return None
        return cls(target, kind, replaces, may_exist, is_recursive, body.part(target.after))

    def schema(self, session: ChangeSession) -> DatabaseSchema | None:
        """Return the schema of the new object, or None if it is not in a Lance database."""
        return session.schema_of_new(self.target)

    def change(
        self, session: ChangeSession, schema: DatabaseSchema, execute: Callable[[], None]
    ) -> ObjectChange | None:
        """Create the object in DuckDB. Returns None if it exists, and IF NOT EXISTS permits it."""
        name, objects = self.target.name, session.catalog.objects(schema)
        if self.kind == VIEW and (schema.find(name) is not None or schema.broken(name) is not None):
            if self.may_exist:
                return None
            remedy = "DROP TABLE first, or give the view another name"
            raise AlreadyExistsError(f'Table with name "{name}" already exists!', where=self.subject, remedy=remedy)
        if self.kind == VIEW:
            _refuse_other_databases(session, schema, self)
        present = objects.find(schema, name, (self._stored_kind,))
        execute()
        if present is not None and self.may_exist:
            return None
        added = self._definition(session, schema)
        removed = present if present is not None and present != added.key else None
        return ObjectChange(removed, added, replaces=self.replaces)

    def _definition(self, session: ChangeSession, schema: DatabaseSchema) -> CatalogObject:
        """Return the definition to store. The object exists in DuckDB."""
        assert schema.folder is not None
        written = CreateObjectStatement.read(written_clauses(session))
        assert written is not None
        name = (*schema.folder.parts, self.target.name)
        namespace = _current_namespace(session, schema)
        if self.kind == TYPE:
            return TypeDefinition(name=name, definition=_type_text(session, schema, written))
        if self.kind == VIEW:
            columns, query = written.view_parts()
            return ViewDefinition(
                name=name,
                query=_without_database(session, query, schema.database),
                columns=columns,
                schema=_columns_of(session, schema, self.target.name),
                engine=_ENGINE,
                default_namespace_path=namespace,
            )
        text = _without_database(session, written.definition, schema.database)
        kind = TableMacroDefinition if self._stored_kind == TABLE_MACRO else MacroDefinition
        return kind(name=name, definitions=text, engine=_ENGINE, default_namespace_path=namespace)

    @property
    def _stored_kind(self) -> str:
        """The kind of the stored object. In DuckDB, a macro and a table macro may have one name."""
        is_table = self.definition.word(self.definition.find("as") + 1) == "table"
        return TABLE_MACRO if self.kind == MACRO and is_table else self.kind

    def view_parts(self) -> tuple[tuple[str, ...], Clauses]:
        """Return the listed columns of a view, and its query.

        Raises:
            UnsupportedError: The view has options.
        """
        definition = self.definition
        end = definition.closer(0) + 1 if definition.text_at(0) == "(" else 0
        listed = definition.part(1, end - 1).split() if end else []
        columns = tuple(column.tokens[0].name or "" for column in listed)
        if definition.word(end) != "as":
            raise UnsupportedError("options of a view are not supported", where=self.subject, remedy="leave them out")
        query = definition.part(end + 1)
        if self.is_recursive:
            names = ", ".join(map(quoted, columns))
            table = quoted(self.target.name)
            text = f"WITH RECURSIVE {table}({names}) AS (\n{query.text}) SELECT {names} FROM {table}"  # noqa: S608
            return (), Clauses.of(text)
        return columns, query


def _refuse_other_databases(session: ChangeSession, schema: DatabaseSchema, view: CreateObjectStatement) -> None:
    """Raise UnsupportedError if a view reads a table or view that is not in its own database."""
    scopes = Statement.of(view.view_parts()[1].text).scopes
    for read in scopes.tables:
        if read.name is None or read.place is None or scopes.cte(read.name[-1], read.place[0]) is not None:
            continue
        found = session.names.schema_of(read.name, later=True)
        place = session.names.place(read.name, later=True) if found is None else found.place
        if place is not None and place[0] != schema.place[0]:
            raise UnsupportedError(
                f"the view reads {'.'.join((*place, read.name[-1]))}, which other connections may not have",
                where=view.subject,
                expected="tables and views of its own database, and paths",
                remedy=f"use CREATE TEMP VIEW, or CREATE VIEW {session.catalog.native}.main.{view.target.name}",
            )


def _current_namespace(session: ChangeSession, schema: DatabaseSchema) -> tuple[str, ...]:
    """Return the namespace of the current schema. Empty if another database is current."""
    current = session.relation("SELECT system.main.current_database(), system.main.current_schema()", {}).fetchall()[0]
    found = session.catalog.schema(*current)
    is_here = found is not None and found.place[0] == schema.place[0] and found.folder is not None
    return found.folder.parts if is_here and found is not None and found.folder is not None else ()


def _columns_of(session: ChangeSession, schema: DatabaseSchema, view: str) -> tuple[tuple[str, str], ...]:
    """Return the names and types of the columns of a view."""
    rows = session.relation(f"DESCRIBE {schema.sql}.{quoted(view)}", {}).fetchall()
    return tuple((row[0], row[1]) for row in rows)


def _type_text(session: ChangeSession, schema: DatabaseSchema, written: CreateObjectStatement) -> str:
    """Return a type in SQL. The labels of an ENUM that a query computes are listed."""
    definition = written.definition
    if definition.word(1) != "enum" or definition.word(3) not in ("select", "from", "with", "values"):
        return _without_database(session, definition.part(1), schema.database, is_type=True)
    sql = f"""
        SELECT labels FROM system.main.duckdb_types()
        WHERE database_name = {literal(schema.database)} AND schema_name = {literal(schema.name)}
            AND system.main.lower(type_name) = {literal(folded(written.target.name))}"""  # noqa: S608
    labels = session.relation(sql, {}).fetchall()[0][0]
    return f"ENUM ({', '.join(map(literal, labels))})"


def _without_database(session: ChangeSession, part: Clauses, database: str, *, is_type: bool = False) -> str:
    """Return a text whose tables, views, macros and types are not qualified with their own database.

    Args:
        session: The statement.
        part: The text.
        database: The database.
        is_type: Whether the text is a type.
    """
    edits = []
    main = session.catalog.database(database)
    for place, token in enumerate(part.tokens):
        name = TableName.at(part, place) if folded(token.name or "") == folded(database) else None
        if name is None or part.text_at(place - 1) == "." or len(name.parts) < 2:
            continue
        is_schema = session.catalog.schema(database, name.parts[1]) is not None and len(name.parts) > 2
        kinds = [MACRO, TABLE_MACRO] if part.text_at(name.after) == "(" else []
        kinds += [TYPE] if is_type or _follows_a_cast(part, place) else []
        is_object = main is not None and session.catalog.objects(main).find(main, name.parts[1], kinds) is not None
        if is_schema or is_object or session.names.place(name.parts[:2], later=True) is not None:
            end = part.tokens[place + 2].start
            edits.append(Edit(token.start, end, "" if is_schema else "main."))
    return part.edited(edits).strip()


def _follows_a_cast(part: Clauses, place: int) -> bool:
    """Return whether a token is in the type of a CAST: after `::` or `AS`, or in a STRUCT after one of them."""
    if place < 1 or part.word(place - 1) == "as":
        return place > 0
    at = part.tokens[place - 1].start
    if part.text_at(place - 1) == ":" and "::" in part.sql[max(at - 1, 0) : at + 2]:
        return True
    depth = part.depths[place]
    opener = next((i for i in range(place - 1, 0, -1) if part.text_at(i) == "(" and part.depths[i] < depth), 0)
    return part.word(opener - 1) in ("struct", "union", "map", "row") and _follows_a_cast(part, opener - 1)
