"""What statements about views, macros and types have in common: DuckDB runs them, then the folder stores the change."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import duckdb

from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.databases.objects import StoredObjects
from lance_duck.duck.databases.search_path import SearchPath
from lance_duck.duck.statement.clauses import Clauses, TableName, statements_of
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded, literal
from lance_duck.errors import UnsupportedError
from lance_duck.namespaces import CatalogDraft, CatalogObject, ObjectKey

VIEW: Final = "view"
MACRO: Final = "macro"
TABLE_MACRO: Final = "table_macro"
TYPE: Final = "type"
KIND_OF_WORD: Final = {"view": VIEW, "macro": MACRO, "function": MACRO, "type": TYPE}
"""The kind of object that a word in CREATE or DROP names. A macro may also be a table macro."""


@dataclass(frozen=True)
class ObjectChange:
    """A change of one object.

    Attributes:
        removed: The object that no longer exists, or None.
        added: The object that exists afterwards, or None.
        replaces: Whether the new object may replace another one with its name.
    """

    removed: ObjectKey | None
    added: CatalogObject | None = None
    replaces: bool = False

    def apply(self, draft: CatalogDraft) -> None:
        """Change the names of a folder. Raises AlreadyExistsError if the name was taken meanwhile."""
        if self.removed is not None and self.removed in draft.objects():
            draft.remove(self.removed)
        if self.added is not None:
            draft.put(self.added, replace=self.replaces)


@dataclass(frozen=True)
class ObjectStatement(LanceStatement):
    """A statement about a view, a macro or a type.

    Attributes:
        target: Name of the object.
        kind: "view", "macro" or "type".
    """

    target: TableName
    kind: str

    @property
    def subject(self) -> str:
        """The object, for errors."""
        return f"{self.kind} {self.target.name}"

    @abstractmethod
    def schema(self, session: ChangeSession) -> DatabaseSchema | None:
        """Return the schema of the object, or None if it is not in a Lance database."""

    @abstractmethod
    def change(
        self, session: ChangeSession, schema: DatabaseSchema, execute: Callable[[], None]
    ) -> ObjectChange | None:
        """Run the statement in DuckDB. Returns the change to store, or None if there is none.

        Args:
            session: The statement.
            schema: The schema of the object.
            execute: Runs the statement in DuckDB as the user wrote it.
        """

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the object is in a Lance database."""
        return self.schema(session) is not None

    def target_schemas(self, session: ChangeSession) -> Sequence[DatabaseSchema]:
        """Return the schema of the object."""
        schema = self.schema(session)
        return () if schema is None else (schema,)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Change the object in DuckDB and in the folder."""
        session.explain_words(f"The {self.kind} would change. Nothing was written.")
        schema = self.schema(session)
        assert schema is not None
        if schema.folder is None:
            native = f"{session.catalog.native}.main.{self.target.name}"
            raise UnsupportedError(
                "the connection does not have a folder that stores views, macros and types",
                where=self.subject,
                remedy=f"create it in a native database, such as {native}, or use TEMP",
            )
        executed = []

        def execute() -> None:
            session.run_as_written()
            executed.append(True)

        try:
            change = self.change(session, schema, execute)
            if change is not None:
                self._store(session, schema, change)
        except BaseException:
            if executed and session.block is None:  # a failed transaction is discarded as a whole
                session.catalog.objects(schema).forget(session.run, schema, self.names)
            raise
        return nothing()

    @property
    def names(self) -> Sequence[str]:
        """The names that the statement may change in DuckDB."""
        return (self.target.name,)

    def _store(self, session: ChangeSession, schema: DatabaseSchema, change: ObjectChange) -> None:
        """Store a change that DuckDB has made."""
        objects = session.catalog.objects(schema)
        if session.transaction is not None:
            kept = partial(objects.keep, change.removed, change.added)
            session.transaction.drafts.change_object(schema, change.removed, change.added, change.apply, kept)
            return
        assert schema.folder is not None
        schema.folder.namespace.change_catalog(change.apply)
        objects.keep(change.removed, change.added)
        session.catalog.refresh(force=True)


def written_clauses(session: ChangeSession) -> StatementHead:
    """Return the statement as the user wrote it."""
    return StatementHead.of(statements_of(session.written)[0])


def found_object(
    session: ChangeSession, name: TableName, kinds: Sequence[str]
) -> tuple[StoredObjects, ObjectKey] | None:
    """Return the stored object that a name refers to, with the objects of its database.

    Returns None if DuckDB finds the name elsewhere first, or not at all.

    Args:
        session: The statement.
        name: The name.
        kinds: The kinds of objects that it may refer to.
    """
    for database, schema in _places(session, name):
        lance = session.catalog.schema(database, schema)
        if lance is None:
            if _is_native(session, database, schema, name.name, kinds):
                return None
            continue
        objects = session.catalog.objects(lance)
        found = objects.find(lance, name.name, kinds)
        if found is not None:
            return objects, found
    return None


def _places(session: ChangeSession, name: TableName) -> list[tuple[str, str]]:
    """Return the databases and schemas in which DuckDB looks for a name, in order."""
    search = SearchPath.of(*session.relation(f"SELECT {SearchPath.QUERY}", {}).fetchall()[0])
    everywhere = [("temp", "main"), *search.order]
    match tuple(map(folded, name.parts[:-1])):
        case ():
            return everywhere
        case (part,) if session.catalog.database(part) is not None:
            return [search.schema_of(part)]
        case (part,):
            return [(database, part) for database, _ in everywhere]
        case (database, schema):
            return [(database, schema)]
    return []


def _is_native(session: ChangeSession, database: str, schema: str, name: str, kinds: Sequence[str]) -> bool:
    """Return whether a native database has an object of one of the kinds."""
    sources = {
        VIEW: ("system.main.duckdb_views()", "view_name"),
        MACRO: ("system.main.duckdb_functions()", "function_name"),
        TABLE_MACRO: ("system.main.duckdb_functions()", "function_name"),
        TYPE: ("system.main.duckdb_types()", "type_name"),
    }
    source, column = sources[kinds[0]]
    sql = f"""
        SELECT 1 FROM {source} WHERE system.main.lower(database_name) = {literal(database)}
            AND system.main.lower(schema_name) = {literal(schema)}
            AND system.main.lower({column}) = {literal(folded(name))} LIMIT 1"""  # noqa: S608
    return bool(session.relation(sql, {}).fetchall())


def says_missing(error: duckdb.Error) -> bool:
    """Return whether DuckDB does not find the object of a statement."""
    return isinstance(error, duckdb.CatalogException) and "does not exist" in str(error)


def name_at(body: Clauses, place: int, end: int | None = None) -> TableName | None:
    """Return the name of an object that begins at a token, and if given, ends before another. Paths are no names."""
    name = TableName.at(body, place)
    is_name = name is not None and name.path is None and (end is None or name.after == end)
    return name if is_name else None
