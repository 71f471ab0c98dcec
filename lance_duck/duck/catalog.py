"""The catalog of Lance databases and tables of one DuckDB instance."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final
from weakref import WeakSet

import duckdb

from lance_duck.duck.binder import Binder
from lance_duck.duck.databases.changed_names import changed_names
from lance_duck.duck.databases.database_schema import SCHEMA, DatabaseSchema
from lance_duck.duck.databases.objects import StoredObjects
from lance_duck.duck.databases.secrets import Secrets
from lance_duck.duck.failures import missing_table
from lance_duck.duck.macros import load_macros
from lance_duck.duck.statement.identifiers import escaped, folded, literal, parts_of_name, qualified_names, quoted
from lance_duck.duck.tables.folder import Folder
from lance_duck.duck.tables.handle import TableHandle, VersionChoice
from lance_duck.duck.tables.namespace_folder import NamespaceFolder
from lance_duck.errors import LanceDuckError, UnsupportedError, warn_of_table
from lance_duck.forks import RLock
from lance_duck.groups.log import CommitLog
from lance_duck.wire.paths import TABLE_SUFFIX

Place = tuple[str, str]
"""A database and a schema, in lower case."""
FUNCTIONS: Final = frozenset({"lance_scan", "lance_vector_search", "lance_fts", "lance_hybrid_search"})
_NAME: Final = "lance"
_HINTS: Final = ("duckdb_", "information_schema", "pg_", "tables")
_LISTS_COLUMNS: Final = re.compile(
    r"\bduckdb_(columns|tables|views)\b|\binformation_schema\b.*\bcolumns\b|\bpg_(attribute|class)\b"
    r"|\bshow\s+all\s+tables\b|\bshow_tables_expanded\b",
    re.DOTALL,
)
"""Matches statements in lower case that read columns from the catalog. All of them contain one of `_HINTS`."""
WORD: Final = re.compile(r"[\w$]+")
"""Matches a word of a statement, or a name that is valid without quotes."""


class TableCatalog:
    """The Lance tables of one DuckDB instance, by name. All cursors of the instance share the catalog.

    Args:
        given: Tables that the caller named. They belong to the database `lance`.
        folder: Folder with additional tables, or None.

    Attributes:
        binder: Binder of the instance.
        default: The schema `main` of the database `lance`.
        native: DuckDB's own database, which new cursors search.
        secrets: Secrets for the object stores that contain tables.
        version: Counter that increases when tables or databases are added or removed.
    """

    def __init__(self, given: Mapping[str, TableHandle], folder: Folder | None = None) -> None:
        self.native = ""
        self._path = ""
        self.secrets = Secrets()
        self.version = 0
        self.binder = Binder(
            self.named,
            self.secrets.options_for,
            self._qualified_names,
            self.qualified,
            self._roots,
            self.missing_folder,
            self.log,
        )
        self.default = DatabaseSchema(_NAME, self.binder, self._forget, given=dict(given), folder=folder)
        self._schemas: dict[Place, DatabaseSchema] = {}
        self._refused: set[Place] = set()
        self._objects: dict[str, StoredObjects] = {}
        self._vocabulary: Vocabulary | None = None
        self._lock = RLock()
        self._users: WeakSet[object] = WeakSet()

    def used_by(self, user: object) -> TableCatalog:
        """Register a connection that uses the catalog, and return the catalog."""
        self._users.add(user)
        return self

    def left_by(self, user: object) -> None:
        """Unregister a closed connection. When the last one closes, all tables are closed."""
        self._users.discard(user)
        if not self._users:
            for schema in self.schemas:
                schema.let_go()
            self.binder.let_go()

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Set up the database `lance` on a new instance, and a view for each table."""
        taken = {
            row[0] for row in connection.execute("SELECT database_name FROM system.main.duckdb_databases()").fetchall()
        }
        if _NAME in taken:
            self.default.database = next(name for i in range(len(taken) + 1) if (name := f"{_NAME}_{i}") not in taken)
        self._schemas[self.default.place] = self.default
        self._objects[self.default.place[0]] = StoredObjects(self.default)
        try:
            self.binder.install(connection)
        except duckdb.CatalogException as error:
            raise UnsupportedError(
                "another connection of this process has the DuckDB database open",
                remedy="use the cursor() of that connection, or close it",
            ) from error
        self.default.create(connection)
        self._introduce(connection)

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Set up macros and names on a cursor."""
        self.binder.add(connection)
        self._introduce(connection)

    def _introduce(self, connection: duckdb.DuckDBPyConnection) -> None:
        load_macros(connection)
        current, schema = connection.execute(
            "SELECT system.main.current_database(), system.main.current_schema()"
        ).fetchall()[0]
        self.native = str(current)
        path = [f"{quoted(current)}.{quoted(schema)}", self.default.sql]
        if self.default.folder is not None:  # unqualified names are names of the folder
            path.reverse()
        self._path = ",".join(path)
        connection.execute(f"SET search_path = {literal(self._path)}")

    def restore_path(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Set the initial search path again if a statement has reset it."""
        if connection.execute("SELECT system.main.current_setting('search_path')").fetchall() == [("",)]:
            connection.execute(f"SET search_path = {literal(self._path)}")

    # Databases.

    @property
    def name(self) -> str:
        """The name of the database `lance`, or a substitute if DuckDB already has a database with that name."""
        return self.default.database

    @property
    def schemas(self) -> list[DatabaseSchema]:
        """The schemas of all databases of Lance tables. The first is `lance.main`."""
        drafts = changed_names()
        if drafts is None or not drafts.schemas:
            return list(self._schemas.values())
        schemas = {**self._schemas, **drafts.schemas}
        return [schema for schema in schemas.values() if schema is not None]

    @property
    def databases(self) -> list[DatabaseSchema]:
        """The schema `main` of each database of Lance tables. The first is `lance.main`."""
        return [schema for schema in self.schemas if schema.name == SCHEMA]

    def database(self, name: str) -> DatabaseSchema | None:
        """Return the schema `main` of a database. Names are case-insensitive, as in DuckDB."""
        return self.schema(name, SCHEMA)

    def schema(self, database: str, name: str) -> DatabaseSchema | None:
        """Return a schema of a database of Lance tables. Names are case-insensitive, as in DuckDB."""
        place, drafts = (folded(database), folded(name)), changed_names()
        if drafts is not None and place in drafts.schemas:
            changed: DatabaseSchema | None = drafts.schemas[place]
            return changed
        return self._schemas.get(place)

    def attach(self, name: str, folder: Folder, choice: VersionChoice, read_only: str | None) -> None:
        """Add the tables of a folder as a database with this name, which must be unused.

        Args:
            name: Name of the database.
            folder: The folder with the tables.
            choice: The version to read of each table.
            read_only: Reason why the tables are read-only, or None.
        """
        schema = DatabaseSchema(name, self.binder, self._forget, folder=folder, choice=choice, read_only=read_only)
        if read_only is not None and schema.log is not None:
            schema.log.may_finish = False
        with self._lock, self.binder.spare_cursor() as cursor:
            self._add(schema, cursor)
            self._objects[schema.place[0]] = StoredObjects(schema)
            self._refresh_schemas(schema)

    def _add(self, schema: DatabaseSchema, cursor: duckdb.DuckDBPyConnection) -> None:
        """Add a schema that DuckDB does not have."""
        self._schemas[schema.place] = schema  # DuckDB 1.x binds views by name
        try:
            schema.create(cursor)
        except BaseException:
            del self._schemas[schema.place]
            raise
        finally:
            self._forget()

    def forget(self, name: str) -> None:
        """Remove a database that was detached."""
        with self._lock:
            for place in [place for place in self._schemas if place[0] == folded(name)]:
                del self._schemas[place]
            self._objects.pop(folded(name), None)
            self._forget()

    def _refresh_schemas(self, main: DatabaseSchema) -> bool:
        """Add and remove the schemas of a database, which are the namespaces of its folder.

        Returns whether schemas were added or removed.
        """
        folder = main.folder
        names = () if folder is None else folder.schemas
        places = {(main.place[0], folded(name)): name for name in names if folded(name) != SCHEMA}
        known = [schema for schema in self._schemas.values() if schema.place[0] == main.place[0] and schema is not main]
        gone = [schema for schema in known if schema.place not in places]
        new = [name for place, name in places.items() if place not in self._schemas and place not in self._refused]
        if not gone and not new:
            return False
        with self._lock, self.binder.spare_cursor() as cursor:
            for schema in gone:
                with suppress(duckdb.TransactionException):  # an open transaction uses the schema: drop it later
                    cursor.execute(f"DROP SCHEMA IF EXISTS {schema.sql} CASCADE")
                    self._schemas.pop(schema.place)
            for name in new:
                assert folder is not None
                inside = NamespaceFolder(folder.namespace, (*folder.parts, name), f"{folder.uri}/{name}", folder)
                schema = replace(main, name=name, given={}, folder=inside)
                try:
                    self._add(schema, cursor)
                except duckdb.TransactionException:  # an open transaction creates the schema
                    continue
                except duckdb.Error as error:
                    self._refused.add(schema.place)
                    warn_of_table(f"schema {name} is skipped: {error}")
            self._forget()
        return True

    def objects(self, schema: DatabaseSchema) -> StoredObjects:
        """Return the views, macros and types of the database of a schema."""
        return self._objects[schema.place[0]]

    def words_read(self, words: Iterable[str]) -> set[str]:
        """Return words of a statement, and those of the stored views and macros that it may read."""
        return set().union(words, *(objects.words_read(words) for objects in self._objects.values()))

    def load_objects(self, run: Callable[[str, str], object]) -> list[str]:
        """Create, replace and drop views, macros and types in DuckDB, so that they equal the stored ones.

        Args:
            run: See `StoredObjects.load`.

        Returns:
            Warnings of damaged definitions.
        """
        damaged = []
        with self._lock:
            for objects in list(self._objects.values()):
                if not objects.is_current(self.version):
                    self._forget()
                    damaged += objects.load(run, self.version)
        return damaged

    @property
    def has_new_objects(self) -> bool:
        """Whether `load_objects` has work to do."""
        return not all(objects.is_current(self.version) for objects in list(self._objects.values()))

    def options_for(self, uri: str) -> Mapping[str, str] | None:
        """Return the storage options that secrets define for a URI. Returns None without a secret.

        Raises:
            duckdb.PermissionException: DuckDB's settings do not let statements access the URI.
        """
        self.binder.access.check(uri)
        return self.secrets.options_for(uri)

    def log(self, folder: str | None, search_path: str) -> CommitLog | None:
        """Return the commit log of a folder.

        Args:
            folder: Name of a database, or path of a folder. None is the first Lance database of the search path.
            search_path: The value of DuckDB's `search_path` setting.
        """
        if folder is not None and self.database(folder) is None:
            return CommitLog(folder, self.options_for(folder))
        names = (place[0] for place in qualified_names(search_path)) if folder is None else (folder,)
        found = next(filter(None, map(self.database, names)), self.default)
        return found.log

    # Tables.

    def named(self, text: str) -> TableHandle | None:
        """Return a table of `lance` by its name, or any table by its qualified name. Returns None for a path."""
        table = self.default.find(text)
        return self.table(parts_of_name(text)) if table is None and "." in text else table

    def qualified(self, text: str, search_path: str) -> str:
        """Qualify a name with the schema that contains it. The search path is searched first, then `lance`.

        Args:
            text: A name as passed to a function, or a path.
            search_path: The value of DuckDB's `search_path` setting.
        """
        *qualifiers, name = parts_of_name(text) or (text,)
        is_bare = [folded(part) for part in qualifiers] in ([], [SCHEMA])
        if not is_bare and self.table((*qualifiers, name)) is not None:
            return text
        places = (self.schema(*place) for place in qualified_names(search_path) if len(place) == 2)
        for schema in filter(None, (*places, self.default)):
            names = (text, name) if is_bare else (text,)  # the dot may be part of an unqualified name
            known = next((each for each in names if schema.find(each) is not None), None)
            if known is not None:
                return schema.table_sql(known)
        return text

    def table(self, parts: tuple[str, ...]) -> TableHandle | None:
        """Return the table with a name that is qualified with a database, a schema, or both."""
        qualifiers = [folded(part) for part in parts[:-1]]
        for schema in self.schemas:
            database, named = schema.place
            if qualifiers == [database, named] or qualifiers == [database if named == SCHEMA else named]:
                found = schema.find(parts[-1])
                if found is not None:
                    return found
        return None

    def is_table(self, parts: tuple[str, ...]) -> bool:
        """Return whether a name, qualified or not, may refer to a table of these databases."""
        qualifiers = tuple(map(folded, parts[:-1]))
        return any(
            qualifiers in ((), schema.place, schema.place[1:], schema.place[:1]) and schema.find(parts[-1]) is not None
            for schema in self.schemas
        )

    def home(self, handle: TableHandle) -> DatabaseSchema | None:
        """Return the schema of a table. Returns None if the table was opened by path."""
        return next((schema for schema in self.schemas if schema.has(handle)), None)

    def is_repeated(self, name: str) -> bool:
        """Return whether several schemas contain a table with this name."""
        return sum(schema.find(name) is not None for schema in self.schemas) > 1

    def path_handle(self, path: str) -> TableHandle:
        """Return the table at a path, at its newest version."""
        return self.binder.handle(path, VersionChoice())

    def add(self, name: str, handle: TableHandle) -> None:
        """Add a table to `lance`. Replaces an existing table with the same name. Raises LanceDuckError."""
        self.default.add(name, handle)

    def remove(self, name: str) -> bool:
        """Remove a table that was added by `add` or named by the caller. Returns False if it does not exist."""
        return self.default.remove(name)

    def missing_folder(self, name: str) -> LanceDuckError | None:
        """Return an error if the name's database is a folder that does not exist, or else None."""
        parts = parts_of_name(name)
        schema = self._named_by(parts[:-1]) if len(parts) > 1 else self.default
        return None if schema is None else schema.missing()

    def _roots(self) -> list[str]:
        """Return the locations of all folders and of the tables that were named by the caller."""
        return [root for schema in self.schemas for root in schema.roots]

    def _names(self) -> list[str]:
        tables = [name for schema in self.schemas for name in schema.tables]
        return [*tables, *(name for objects in list(self._objects.values()) for name in objects.names())]

    def _qualified_names(self) -> list[str]:
        """Return the table names that functions accept."""
        qualified = (
            f"{schema.database if schema.name == SCHEMA else schema.name}.{name}"
            for schema in self.schemas
            for name in schema.tables
        )
        return [*self.default.tables, *qualified]

    def refresh(self, statement: object = None, *, force: bool = False) -> bool:
        """List the tables again. Returns whether tables were added or removed.

        Args:
            statement: The text to run. If it may read table columns from DuckDB's catalog, the columns in the catalog
                are updated first.
            force: List even if nothing seems to have changed, and retry tables that could not be opened.
        """
        changed = False
        for schema in self.databases:
            changed |= schema.refresh(force=force)
            changed |= self._refresh_schemas(schema)
        for schema in self.schemas:
            if schema.name != SCHEMA:
                changed |= schema.refresh(force=force)
            if isinstance(statement, str):
                schema.retry(statement)
        if isinstance(statement, str) and _lists_columns(statement.lower()):
            for schema in self.schemas:
                schema.show_changed_columns()
        return changed

    @property
    def vocabulary(self) -> Vocabulary:
        """Words with which a statement can refer to these tables.

        A new object is created whenever the set of tables changes.
        """
        drafts = changed_names()
        if drafts is not None and drafts.names:
            return Vocabulary.of([*self._names(), *drafts.names])
        vocabulary = self._vocabulary
        if vocabulary is None:
            vocabulary = self._vocabulary = Vocabulary.of(self._names())
        return vocabulary

    def explain(self, message: str, current: Callable[[], str], statement: object) -> LanceDuckError | None:
        """Return the reason why DuckDB does not find a Lance table: it cannot be opened, or its folder does not exist.

        Args:
            message: DuckDB's error message.
            current: Returns the database in which unqualified names are looked up first.
            statement: The text that was run.

        Returns:
            The error, or None to keep DuckDB's error.
        """
        missing = missing_table(message)
        if missing is None:
            return None
        name, qualifiers = missing
        named = self._named_by(qualifiers) if qualifiers else None
        if named is not None:
            return named.broken(name) or named.missing()
        first = self.database(current()) or self.default
        others = self.schemas if qualifiers is None else [self.default]
        text = folded(statement) if isinstance(statement, str) and qualifiers is None else ""
        named_by_text = [schema for schema in self.databases if folded(schema.database) in text]
        reasons = chain(
            (schema.broken(name) for schema in (first, *others)),
            (schema.missing() for schema in (first, *named_by_text)),
        )
        return next((reason for reason in reasons if reason is not None), None)

    def _named_by(self, qualifiers: tuple[str, ...]) -> DatabaseSchema | None:
        """Return the schema that qualifies a name: `database.schema`, `database` or `schema`."""
        if len(qualifiers) > 1:
            return self.schema(qualifiers[0], qualifiers[1])
        return self.database(qualifiers[0]) or self.schema(self.name, qualifiers[0])

    def describe(self) -> str:
        """Describe the origin and number of the tables."""
        return ", ".join(schema.describe() for schema in self.schemas)

    def _forget(self) -> None:
        self._vocabulary = None
        self.version += 1


def _lists_columns(text: str) -> bool:
    """Return whether a statement in lower case may read the columns of tables from the catalog."""
    return any(hint in text for hint in _HINTS) and _LISTS_COLUMNS.search(text) is not None


@dataclass(frozen=True)
class Vocabulary:
    """Words that identify statements about Lance tables.

    Attributes:
        names: Names of tables and functions, case-folded like DuckDB's.
        parts: Substrings that identify paths, and names that are not plain words.
    """

    names: frozenset[str]
    parts: tuple[str, ...]

    @classmethod
    def of(cls, tables: Iterable[str]) -> Vocabulary:
        """Return the vocabulary for tables with these names."""
        names = frozenset(map(folded, tables)) | FUNCTIONS
        odd = sorted(escaped(name) for name in names if WORD.fullmatch(name) is None)
        return cls(names, (TABLE_SUFFIX, *odd))

    def may_be_in(self, sql: str, *more: frozenset[str], parts: Iterable[str] = ()) -> bool:
        """Return whether a text contains one of the words, at any position.

        Args:
            sql: The text.
            more: Additional words, in lower case.
            parts: Lower-case strings that may also occur inside a word.
        """
        text = folded(sql)
        words = WORD.findall(text)
        for names in (self.names, *more):
            if not names.isdisjoint(words):
                return True
        for part in (*self.parts, *parts):  # noqa: SIM110  a generator is slower than this loop
            if part in text:
                return True
        return False
