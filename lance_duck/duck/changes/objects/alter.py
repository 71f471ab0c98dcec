"""DROP, RENAME and COMMENT of views, macros and types in a database of Lance tables.

DROP VIEW | MACRO [TABLE] | FUNCTION [TABLE] | TYPE [IF EXISTS] name [CASCADE | RESTRICT]
ALTER VIEW [IF EXISTS] name RENAME TO name
COMMENT ON VIEW | MACRO [TABLE] | FUNCTION [TABLE] | TYPE name IS 'text' | NULL
COMMENT ON COLUMN view.column IS 'text' | NULL
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import duckdb

from lance_duck.duck.changes.objects.statement import (
    KIND_OF_WORD,
    MACRO,
    TABLE_MACRO,
    VIEW,
    ObjectChange,
    ObjectStatement,
    found_object,
    is_missing,
    name_at,
)
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.databases.objects import StoredObjects
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded
from lance_duck.errors import AlreadyExistsError
from lance_duck.namespaces import CatalogObject, ObjectKey, ViewDefinition


@dataclass(frozen=True)
class StoredObjectStatement(ObjectStatement):
    """A statement about an object that exists.

    Attributes:
        kinds: The kinds of objects that the name may refer to.
    """

    kinds: Sequence[str]

    def schema(self, session: ChangeSession) -> DatabaseSchema | None:
        """Return the schema of the object, or None if it is not in a Lance database."""
        found = found_object(session, self.target, self.kinds)
        return None if found is None else _schema_of(session, *found)

    def change(
        self, session: ChangeSession, schema: DatabaseSchema, execute: Callable[[], None]
    ) -> ObjectChange | None:
        """Change the object in DuckDB."""
        found = found_object(session, self.target, self.kinds)
        assert found is not None
        objects, key = found
        return self.change_of(session, objects, key, execute)

    @abstractmethod
    def change_of(
        self, session: ChangeSession, objects: StoredObjects, key: ObjectKey, execute: Callable[[], None]
    ) -> ObjectChange | None:
        """Change an object in DuckDB. Returns the change to store."""


@dataclass(frozen=True)
class DropObjectStatement(StoredObjectStatement):
    """A DROP of a view, a macro or a type."""

    @classmethod
    def read(cls, head: StatementHead) -> DropObjectStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        kinds, at = _kinds(body, 1)
        at += 2 if body.says(at, "if", "exists") else 0
        end = len(body) - (body.word(len(body) - 1) in ("cascade", "restrict"))
        target = name_at(body, at, end)
        return cls(target, kinds[0], kinds) if kinds and target is not None else None

    def change_of(
        self, session: ChangeSession, objects: StoredObjects, key: ObjectKey, execute: Callable[[], None]
    ) -> ObjectChange:
        """Drop the object in DuckDB, unless it does not bind there."""
        try:
            execute()
        except duckdb.Error as error:
            if key not in objects.reasons or not is_missing(error):
                raise
        return ObjectChange(key)


@dataclass(frozen=True)
class RenameViewStatement(StoredObjectStatement):
    """An ALTER VIEW … RENAME TO.

    Attributes:
        new_name: The new name.
    """

    new_name: str

    @property
    def names(self) -> Sequence[str]:
        """The names that the statement may change in DuckDB."""
        return (self.target.name, self.new_name)

    @classmethod
    def read(cls, head: StatementHead) -> RenameViewStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        is_alter = body.says(0, "alter", "view") or body.says(0, "alter", "table")
        target = name_at(body, 4 if body.says(2, "if", "exists") else 2) if is_alter else None
        if target is None or not body.says(target.after, "rename", "to") or len(body) != target.after + 3:
            return None
        name = body.tokens[-1].name
        return None if name is None else cls(target, VIEW, (VIEW,), name)

    def change_of(
        self, session: ChangeSession, objects: StoredObjects, key: ObjectKey, execute: Callable[[], None]
    ) -> ObjectChange:
        """Rename the view in DuckDB."""
        schema = _schema_of(session, objects, key)
        if schema.find(self.new_name) is not None:
            raise AlreadyExistsError(f'Table with name "{self.new_name}" already exists!', where=self.subject)
        execute()
        return ObjectChange(key, replace(objects.definition(key), name=(*key.name[:-1], self.new_name)))


@dataclass(frozen=True)
class CommentObjectStatement(StoredObjectStatement):
    """A COMMENT ON a view, a macro, a type, or a column of a view.

    Attributes:
        column: The column, or None.
        value: The text after IS.
    """

    column: str | None
    value: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CommentObjectStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        if not body.says(0, "comment", "on"):
            return None
        is_column = body.word(2) == "column"
        kinds, at = ((VIEW,), 3) if body.word(2) in ("column", "table") else _kinds(body, 2)
        target = name_at(body, at)
        if not kinds or target is None or body.word(target.after) != "is" or (is_column and len(target.parts) < 2):
            return None
        value = body.part(target.after + 1)
        column = target.parts[-1] if is_column else None
        view = TableName(target.parts[:-1], None, target.first, target.after) if is_column else target
        return cls(view, kinds[0], kinds, column, value)

    def change_of(
        self, session: ChangeSession, objects: StoredObjects, key: ObjectKey, execute: Callable[[], None]
    ) -> ObjectChange:
        """Store the comment in DuckDB."""
        definition = objects.definition(key)
        execute()
        (text,) = session.relation(f"SELECT {self.value.text}", {}).fetchall()[0]
        return ObjectChange(None, self._commented(definition, text), replaces=True)

    def _commented(self, definition: CatalogObject, text: str | None) -> CatalogObject:
        if self.column is None:
            return replace(definition, comment=text)  # type: ignore[call-arg]  # all kinds have comments
        assert isinstance(definition, ViewDefinition)
        comments = {
            name: each for name, each in definition.column_comments.items() if folded(name) != folded(self.column)
        }
        return replace(definition, column_comments=comments if text is None else {**comments, self.column: text})


def _schema_of(session: ChangeSession, objects: StoredObjects, key: ObjectKey) -> DatabaseSchema:
    """Return the schema of an object."""
    schema = session.catalog.schema(*objects.place_of(key))
    assert schema is not None
    return schema


def _kinds(body: Clauses, at: int) -> tuple[Sequence[str], int]:
    """Return the kinds of objects that the words at a token name, and the token after them."""
    kind = KIND_OF_WORD.get(body.word(at) or "")
    if kind is None:
        return (), at
    if kind != MACRO:
        return (kind,), at + 1
    if body.word(at + 1) == "table":
        return (TABLE_MACRO,), at + 2
    return (MACRO, TABLE_MACRO), at + 1
