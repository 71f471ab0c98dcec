"""Views, macros and types of a Lance database: definitions that the folder stores, and their copies in DuckDB.

Other programs can write the definitions. `single_statement` therefore parses each statement before it runs. A type must
also be valid in a CAST, where an ENUM cannot run a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import duckdb

from lance_duck.duck.databases.changed_names import changed_names
from lance_duck.duck.databases.database_schema import SCHEMA, DatabaseSchema
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.errors import ConfinedError
from lance_duck.namespaces import (
    CatalogObject,
    MacroDefinition,
    ObjectKey,
    TableMacroDefinition,
    TypeDefinition,
    ViewDefinition,
)

KINDS: Final[Mapping[type[CatalogObject], str]] = {
    ViewDefinition: "VIEW",
    MacroDefinition: "MACRO",
    TableMacroDefinition: "MACRO TABLE",
    TypeDefinition: "TYPE",
}
"""The words for an object in DROP and COMMENT ON."""
_ORDER: Final = (TypeDefinition, MacroDefinition, TableMacroDefinition, ViewDefinition)


class DamagedDefinition(duckdb.ParserException):
    """A stored text that is more than the definition of one object."""


def single_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """Return the only statement of a text. Raises DamagedDefinition for other texts."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise DamagedDefinition(f"expected one statement, found {len(statements)}")
    return statements[0]


@dataclass
class StoredObjects:
    """The objects of one database in DuckDB, as of the last load.

    Attributes:
        main: The schema `main` of the database.
        reasons: Why objects do not bind, by key. In DuckDB, a view among them has its columns but cannot be read.
    """

    main: DatabaseSchema
    reasons: dict[ObjectKey, str] = field(default_factory=dict)
    _loaded: dict[ObjectKey, CatalogObject] = field(default_factory=dict, init=False)
    _has_conflicts: bool = field(default=False, init=False)
    _seen: tuple[Mapping[ObjectKey, CatalogObject], int | None] | None = field(default=None, init=False)

    @property
    def stored(self) -> Mapping[ObjectKey, CatalogObject]:
        """The objects that the folder had when it was last listed."""
        return {} if self.main.folder is None else self.main.folder.catalog.objects

    def is_current(self, version: int) -> bool:
        """Return whether DuckDB has the stored objects, and whether objects that do not bind need no second attempt.

        Args:
            version: Counter that increases when tables are added or removed.
        """
        seen = (self.stored, version if self.reasons else None)
        if self._seen is not None and self._seen[0] is seen[0] and self._seen[1] == seen[1]:
            return True
        if seen[0] != self._loaded or self.reasons:
            return False
        self._seen = seen
        return True

    def names(self) -> list[str]:
        """Return the unqualified names of all objects."""
        return [key.name[-1] for key in {*self.stored, *self._loaded}]

    def titles(self) -> list[str]:
        """Return the kinds and names of all objects, for messages."""
        return [f"{key.kind.replace('_', ' ')} {'.'.join(key.name)}" for key in sorted(self._seen_now())]

    def names_in(self, schema: DatabaseSchema) -> list[str]:
        """Return the names of the objects in a schema."""
        return [key.name[-1] for key in self._seen_now() if folded(self._schema(key.name[:-1])) == folded(schema.name)]

    def find(self, schema: DatabaseSchema, name: str, kinds: Sequence[str]) -> ObjectKey | None:
        """Return the first object of a schema with this name and one of the kinds, or None."""
        assert schema.folder is not None
        wanted = [ObjectKey(kind, (*schema.folder.parts, name)).folded for kind in kinds]
        found = {key.folded: key for key in self._seen_now()}
        return next((found[key] for key in wanted if key in found), None)

    def definition(self, key: ObjectKey) -> CatalogObject:
        """Return the definition of an object."""
        return self._seen_now()[key]

    def _seen_now(self) -> Mapping[ObjectKey, CatalogObject]:
        """Return the objects that the current transaction sees."""
        drafts = changed_names()
        if drafts is None or not drafts.objects:
            return self._loaded
        return {key: each for key, each in {**self._loaded, **drafts.objects}.items() if each is not None}

    def words_read(self, words: Iterable[str]) -> set[str]:
        """Return words of a statement, and the words of the views and macros that these words may refer to."""
        found, new = set(), set(words)
        while new:
            found |= new
            texts = [_body(each) for key, each in self._seen_now().items() if folded(key.name[-1]) in new]
            new = {word for text in texts for word in LiftedText.of(text).statement.names} - found
        return found

    def forget(self, run: Callable[[str], object], schema: DatabaseSchema, names: Iterable[str]) -> None:
        """Drop objects in DuckDB after a failed statement, so that the next statement loads the stored ones.

        Args:
            run: Runs a statement.
            schema: The schema of the objects.
            names: Their names. Lance tables with these names are kept.
        """
        for name in names:
            for kind in KINDS.values():
                if kind != "VIEW" or (schema.find(name) is None and schema.broken(name) is None):
                    with suppress(duckdb.Error):
                        run(f"DROP {kind} IF EXISTS {schema.sql}.{quoted(name)}")
        self._loaded.clear()
        self._seen = None

    def keep(self, old: ObjectKey | None, new: CatalogObject | None) -> None:
        """Record that a statement has changed an object in DuckDB: `old` no longer exists, `new` does."""
        if old is not None:
            self._loaded.pop(old, None)
            self.reasons.pop(old, None)
        if new is not None:
            self._loaded[new.key] = new
            self.reasons.pop(new.key, None)
        self.main.changed()

    def load(self, run: Callable[[str, str], object], version: int) -> list[str]:
        """Create, replace and drop objects in DuckDB. An object that DuckDB refuses does not hide the others.

        Names that an open transaction has changed are loaded by a later call.

        Args:
            run: Runs a statement. Its second argument is the schema in which names are looked up first, in SQL.
            version: See `is_current`.

        Returns:
            Warnings of damaged definitions.
        """
        stored = self.stored
        self._seen, self._has_conflicts = None, False
        for key, old in list(self._loaded.items()):
            is_gone = key not in stored or (stored[key] != old and isinstance(old, TypeDefinition))
            drop = f"DROP {KINDS[type(old)]} IF EXISTS {self.sql(old)}"
            if is_gone and self._tried(run, drop, self.main.sql) is None:
                self.keep(key, None)
        missing = [each for key, each in stored.items() if self._loaded.get(key) != each or key in self.reasons]
        missing.sort(key=lambda each: _ORDER.index(type(each)))
        while missing:
            failed = {each.key: error for each in missing if (error := self._create(run, each)) is not None}
            if len(failed) == len(missing):
                break
            missing = [each for each in missing if each.key in failed]
        if self._has_conflicts:
            return []
        damaged = []
        for each in missing:
            error = failed[each.key]
            reason = str(error).partition("\n\nLINE ")[0]
            if isinstance(error, DamagedDefinition) and each.key not in self.reasons:
                damaged.append(f"{each.key} is skipped: its definition is damaged: {reason}")
            self._create_unreadable(run, each, reason)
        self._seen = (stored, version if self.reasons else None)
        return damaged

    def _create(self, run: Callable[[str, str], object], each: CatalogObject) -> duckdb.Error | None:
        """Create or replace an object. Returns the error if DuckDB refuses it."""
        try:
            self._check_type(each)
        except DamagedDefinition as damaged:
            return damaged
        error = self._tried(run, self.create_sql(each), self._schema_of(getattr(each, "default_namespace_path", ())))
        if error is None:
            self.keep(each.key, each)
            for statement in self.comments_sql(each):
                self._tried(run, statement, self.main.sql)
        return error

    def _check_type(self, each: CatalogObject) -> None:
        """Raise DamagedDefinition if the definition of a type is not a type."""
        if isinstance(each, TypeDefinition):
            with self.main.binder.spare_cursor() as cursor:
                try:
                    single_statement(cursor, f"SELECT CAST(NULL AS {each.definition}\n)")
                except duckdb.ParserException as error:
                    raise DamagedDefinition(f"expected a type, found {each.definition}") from error

    def _create_unreadable(self, run: Callable[[str, str], object], each: CatalogObject, reason: str) -> None:
        """List a view that does not bind, with its stored columns. Statements that read it get the reason."""
        if isinstance(each, ViewDefinition):
            message = literal(f"view {each.name[-1]} cannot be read: {reason}")
            columns = [f"CAST(error({message}) AS {type_}) AS {quoted(name)}" for name, type_ in each.schema]
            query = f"SELECT {', '.join(columns) or f'error({message}) AS error'}"
            if self._tried(run, f"CREATE OR REPLACE VIEW {self.sql(each)} AS {query}", self.main.sql) is not None:
                query = f"SELECT error({message}) AS error"  # a type of a column does not exist any more
                self._tried(run, f"CREATE OR REPLACE VIEW {self.sql(each)} AS {query}", self.main.sql)
        self.keep(each.key, each)
        self.reasons[each.key] = reason

    def _tried(self, run: Callable[[str, str], object], statement: str, schema: str) -> duckdb.Error | None:
        """Run a statement. Returns the error if DuckDB refuses it."""
        try:
            run(statement, schema)
        except duckdb.InterruptException:
            raise
        except ConfinedError as error:  # later statements that read the view get this error again
            return duckdb.PermissionException(f"{type(error).__name__}: {error}")
        except duckdb.Error as error:
            self._has_conflicts |= isinstance(error, duckdb.TransactionException)
            return error
        return None

    def sql(self, each: CatalogObject) -> str:
        """Return the qualified name of an object in SQL."""
        return f"{self._schema_of(each.name[:-1])}.{quoted(each.name[-1])}"

    def place_of(self, key: ObjectKey) -> tuple[str, str]:
        """Return the database and the schema of an object."""
        return self.main.database, self._schema(key.name[:-1])

    def _schema_of(self, namespace: tuple[str, ...]) -> str:
        return f"{quoted(self.main.database)}.{quoted(self._schema(namespace))}"

    def _schema(self, namespace: tuple[str, ...]) -> str:
        parts = () if self.main.folder is None else self.main.folder.parts
        inside = namespace[len(parts) :]
        return inside[-1] if inside else SCHEMA

    def create_sql(self, each: CatalogObject) -> str:
        """Return the statement that creates or replaces an object."""
        match each:
            case ViewDefinition():
                columns = f" ({', '.join(map(quoted, each.columns))})" if each.columns else ""
                return f"CREATE OR REPLACE VIEW {self.sql(each)}{columns} AS {each.query}"
            case MacroDefinition():
                return f"CREATE OR REPLACE MACRO {self.sql(each)} {each.definitions}"
            case TypeDefinition():
                return f"CREATE TYPE {self.sql(each)} AS {each.definition}"
        raise AssertionError(each)

    def comments_sql(self, each: CatalogObject) -> list[str]:
        """Return the statements that store the comments of an object."""
        comment = getattr(each, "comment", None)
        statements = (
            [] if comment is None else [f"COMMENT ON {KINDS[type(each)]} {self.sql(each)} IS {literal(comment)}"]
        )
        if isinstance(each, ViewDefinition):
            for column, text in each.column_comments.items():
                statements.append(f"COMMENT ON COLUMN {self.sql(each)}.{quoted(column)} IS {literal(text)}")
        return statements


def _body(each: CatalogObject) -> str:
    """Return the part of a definition that may read tables."""
    match each:
        case ViewDefinition():
            return each.query
        case MacroDefinition():
            return each.definitions
    return ""
