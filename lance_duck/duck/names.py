"""Resolves the names and the SQL dialect of a connection. Results are cached until they may have changed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

import duckdb

from lance_duck.arguments import nearest_name
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.databases.database_schema import SCHEMA, DatabaseSchema
from lance_duck.duck.databases.search_path import Place, SearchPath
from lance_duck.duck.rules.spelling import Spelling
from lance_duck.duck.settings import SETTINGS, About, Dialect
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.head import FirstWords, StatementKind
from lance_duck.duck.statement.identifiers import folded, literal
from lance_duck.duck.statement.scope import TableRead
from lance_duck.duck.tables.computed_columns import AskedColumns
from lance_duck.duck.tables.handle import TableHandle, VersionChoice
from lance_duck.errors import InvalidInputError

_KEPT: Final = 256
_SETTINGS: Final = ", ".join(map(literal, SETTINGS))

_DUCKDB_COUNTS: Final = hasattr(duckdb.DuckDBPyConnection, "_catalog_version")
_NOT_COUNTED: Final = nullcontext()


@dataclass(frozen=True)
class View:
    """A user-defined view.

    Attributes:
        sql: The CREATE VIEW statement.
        place: Its database and schema. Names in the view are looked up there first, unless it is temporary.
    """

    sql: str
    place: Place

    @property
    def within(self) -> Place | None:
        """The schema in which names of the view are looked up first. None for a temporary view."""
        return None if self.place == _TEMPORARY else self.place


@dataclass(frozen=True)
class _Meaning:
    """A resolved name.

    Attributes:
        database: The Lance database that contains the table, or None if the name does not refer to a Lance table.
        dialect: The SQL dialect.
        place: Database and schema of the table or view. None if it does not exist or is ambiguous.
        view: The view if the name refers to a view, otherwise None.
        is_unique: Whether only one table or view of all schemas has its last part as name.
    """

    is_lance: bool
    dialect: Dialect
    place: Place | None = None
    view: View | None = None
    is_unique: bool = True


_NOTHING: Final = _Meaning(is_lance=False, dialect=Dialect(~About(0)))
_TEMPORARY: Final = ("temp", SCHEMA)


class Names:
    """Name resolver of one connection.

    Args:
        native: DuckDB's connection.
        catalog: Its Lance tables.
        changes: Counters shared by all connections to the database.
    """

    def __init__(self, native: duckdb.DuckDBPyConnection, catalog: TableCatalog, changes: Changes) -> None:
        self._native = native
        self._catalog = catalog
        self._counted = changes
        self._changes: object = None
        self._known: dict[tuple[tuple[str, ...], Place | None], _Meaning] = {}
        self._shown: set[str] = set()
        self._built_in: tuple[object, Sequence[str], bool] | None = None
        self._own: dict[tuple[str, Sequence[str]], frozenset[str]] = {}
        self._made_before: object = None

    def show(self, name: str) -> None:
        """Register a temporary view that stands for a Lance table. It does not count as an object with its name."""
        self._shown.add(folded(name))
        self._known.clear()

    def hide(self, name: str) -> None:
        """Unregister a temporary view that stands for a Lance table."""
        self._shown.discard(folded(name))
        self._known.clear()

    def are_ours(self, name: tuple[str, ...], *, later: bool) -> bool:
        """Return whether DuckDB resolves a qualified name to a Lance table.

        Args:
            name: Its parts.
            later: Whether an unfetched result is kept while names are looked up.
        """
        return self.table(name, later=later) is not None

    def table(self, name: tuple[str, ...], *, later: bool) -> TableHandle | None:
        """Return the Lance table with a name, or None. Takes the same arguments as `are_ours`."""
        schema = self.schema_of(name, later=later)
        return None if schema is None else schema.find(name[-1])

    def schema_of(self, name: tuple[str, ...], *, later: bool, within: Place | None = None) -> DatabaseSchema | None:
        """Return the schema that contains the Lance table with a name, or None.

        Args:
            name: Its parts.
            later: See `are_ours`.
            within: Database and schema of the view that contains the name, or None.
        """
        if not self._catalog.is_table(name):
            return None
        meaning = self._meaning(name, later, within)
        return self._catalog.schema(*meaning.place) if meaning.is_lance and meaning.place is not None else None

    def view(self, name: tuple[str, ...], *, later: bool, within: Place | None = None) -> View | None:
        """Return the view with a name, or None. Takes the same arguments as `schema_of`."""
        return self._meaning(name, later, within).view

    def place(self, name: tuple[str, ...], *, later: bool, within: Place | None = None) -> Place | None:
        """Return the database and schema of a table or view, or None if they are uncertain.

        Takes the same arguments as `schema_of`.
        """
        return self._meaning(name, later, within).place

    def is_unique(self, name: str) -> bool:
        """Return whether only one table or view has a name, in all schemas.

        A temporary view with the name then hides no other table from the views that users have created.
        """
        return self._meaning((name,), later=True).is_unique

    def qualified(self, text: str, *, later: bool) -> str:
        """Qualify a table name as `lance_scan` and the searches do. See `TableCatalog.qualified`.

        Args:
            text: The name in SQL spelling, or a path. Paths are returned unchanged.
            later: See `are_ours`.
        """
        if len(self._catalog.schemas) == 1:
            return self._catalog.qualified(text, "")
        method: Any = self._native.sql if later else self._native.execute
        (path,) = method("SELECT system.main.current_setting('search_path')").fetchall()[0]
        return self._catalog.qualified(text, path)

    def place_of_new(self, name: tuple[str, ...], *, later: bool) -> Place | None:
        """Return the database and schema in which a table with this name would be created.

        Returns None if they are uncertain.

        Args:
            name: Its parts.
            later: See `are_ours`.
        """
        if len(name) == 3:
            return folded(name[0]), folded(name[1])
        method: Any = self._native.sql if later else self._native.execute
        first = literal(folded(name[0])) if len(name) == 2 else "NULL"
        text = f"""
            SELECT {SearchPath.QUERY},
                (FROM (FROM system.main.duckdb_schemas() SELECT system.main.list([database_name, schema_name]))),
                EXISTS (FROM system.main.duckdb_databases() WHERE {_folded_sql("database_name")} = {first})"""
        *setting, schemas, is_database = method(text).fetchall()[0]
        search = SearchPath.of(*setting)
        existing = {(folded(database), folded(schema)) for database, schema in schemas}
        database, schema = search.order[0]
        if len(name) == 1:
            return database, schema if (database, schema) in existing else SCHEMA
        is_schema = (database, folded(name[0])) in existing
        if is_schema == is_database:
            return None  # ambiguous or unknown
        return search.schema_of(folded(name[0])) if is_database else (database, folded(name[0]))

    def spelled(self, spellings: Iterable[Spelling], *, later: bool) -> Iterator[Edit]:
        """Yield the edits of those spellings that refer to paths or Lance tables.

        Args:
            spellings: The spellings of a statement.
            later: See `are_ours`.
        """
        for each in spellings:
            if each.database is not None and self._catalog.database(each.database) is None:
                continue
            schema = None if each.name is None else self.schema_of(each.name, later=later)
            if each.name is not None and schema is None:
                continue
            if each.value is not None:
                each = self._answered(each)
            if schema is None or (schema is self._catalog.default and not each.is_argument):
                yield each.edit
            else:
                yield each.qualified(
                    schema.table_sql((each.name or ("",))[-1])
                )  # also in `lance`: a view may run after USE

    def _answered(self, spelling: Spelling) -> Spelling:
        """Run the query that computes the version in a spelling. Returns the spelling with the result.

        Raises:
            InvalidInputError: The version is a column, or the query has parameters.
        """
        value = spelling.value or ""
        if not spelling.asks or any(mark in value for mark in "?$"):
            raise InvalidInputError(
                "AT needs one version for all rows",
                where=".".join(spelling.name or ()) or None,
                expected="a constant, a parameter, or a query without parameters",
                found=value.strip(),
            )
        return spelling.answered(self._native.sql(f"SELECT ({value})::VARCHAR").fetchall()[0][0])

    def nearest_table(self, name: str) -> str | None:
        """Return the remedy that suggests the closest Lance table, with its database if its name alone is not found."""
        owners = {table: schema for schema in reversed(self._catalog.schemas) for table in schema.tables}
        nearest = nearest_name(name, owners)
        if nearest is None:
            return None
        found = self.schema_of((nearest,), later=True)
        meant = nearest if found is not None else owners[nearest].table_sql(nearest).replace('"', "")
        return f"did you mean {meant!r}?"

    def dialect(self, name: tuple[str, ...], *, later: bool) -> Dialect:
        """Return the dialect of statements on this table. Takes the same arguments as `are_ours`."""
        return self._meaning(name, later).dialect

    def are_built_in(self, functions: Sequence[str], *, later: bool) -> bool:
        """Return whether functions are built in, and not overridden by macros.

        The result is cached until the catalog changes. Returns False if changes cannot be detected.

        Args:
            functions: Their names, in lower case.
            later: See `are_ours`.
        """
        changes = _changes(self._native, self._counted)
        if changes is None:
            return False
        if self._built_in is None or self._built_in[:2] != (changes, functions):
            method: Any = self._native.sql if later else self._native.execute
            names = ", ".join(map(literal, functions))
            text = (
                "FROM system.main.duckdb_functions() "
                f"WHERE NOT internal AND {_folded_sql('function_name')} IN ({names}) LIMIT 1"
            )
            self._built_in = changes, functions, not method(text).fetchall()
        return self._built_in[2]

    def are_known_built_in(self, functions: Sequence[str]) -> bool:
        """Return whether the last call of `are_built_in` found that these functions are built in, and this still holds.

        DuckDB is not called, so an unfetched result is kept.
        """
        return self._built_in == (_changes(self._native, self._counted), functions, True)

    def may_stand_for_ours(self, names: Iterable[str]) -> bool:
        """Return whether one of the names is a user-defined view or macro, which may read Lance tables.

        Args:
            names: Names, in lower case.
        """
        listed = ", ".join(map(literal, sorted(names))) or "NULL"
        text = f"""
            SELECT 1 FROM system.main.duckdb_views()
            WHERE NOT internal AND {_folded_sql("view_name")} IN ({listed}) UNION ALL
            SELECT 1 FROM system.main.duckdb_functions()
            WHERE NOT internal AND {_folded_sql("function_name")} IN ({listed}) LIMIT 1"""  # noqa: S608
        return bool(self._native.sql(text).fetchall())

    def own_functions(self, functions: Sequence[str], *, later: bool) -> frozenset[str]:
        """Return the names for which user-defined functions (usually macros) exist.

        Args:
            functions: Their names, in lower case. Must not include built-in functions.
            later: See `are_ours`.
        """
        return self._made("function_name", "system.main.duckdb_functions()", functions, later=later)

    def own_types(self, types: Sequence[str], *, later: bool) -> frozenset[str]:
        """Return the names of user-defined types. Takes the same arguments as `own_functions`."""
        return self._made("type_name", "system.main.duckdb_types()", types, later=later)

    def _made(self, column: str, source: str, names: Sequence[str], *, later: bool) -> frozenset[str]:
        changes = _changes(self._native, self._counted)
        if changes is None or changes != self._made_before or len(self._own) > _KEPT:
            self._own.clear()
            self._made_before = changes
        if (column, names) not in self._own:
            method: Any = self._native.sql if later else self._native.execute
            condition = f"NOT internal AND {_folded_sql(column)} IN ({', '.join(map(literal, names)) or 'NULL'})"
            text = f"SELECT DISTINCT {_folded_sql(column)} FROM {source} WHERE {condition}"  # noqa: S608
            self._own[column, names] = frozenset(row[0] for row in method(text).fetchall())
        return self._own[column, names]

    def state(self) -> object:
        """Return a value that changes whenever the meaning of SQL may change, or None if changes are not detected."""
        return _changes(self._native, self._counted)

    def constancy(self) -> Callable[[], bool]:
        """Return a function that reports whether names and settings are certainly unchanged."""
        native, counted = self._native, self._counted
        before = _changes(native, counted, names=False)
        return lambda: before is not None and before == _changes(native, counted, names=False)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the cache during a statement that DuckDB counts as a change, although it does not change names."""
        before = _changes(self._native, self._counted)
        is_known = before is not None and before == self._changes
        yield
        after = _changes(self._native, self._counted)
        if is_known and isinstance(before, int) and after == before + 1:
            self._changes = after

    def _meaning(self, name: tuple[str, ...], later: bool, within: Place | None = None) -> _Meaning:
        key = tuple(map(folded, name)), within
        changes = _changes(self._native, self._counted)
        if changes is None or changes != self._changes or len(self._known) > _KEPT:
            self._known.clear()
            self._changes = changes
        if key not in self._known:
            meaning = self._ask(*key, later)
            if meaning is _NOTHING:  # DuckDB answers no questions now, for example before rows are fetched
                return meaning
            self._known[key] = meaning
        return self._known[key]

    def _ask(self, name: tuple[str, ...], within: Place | None, later: bool) -> _Meaning:
        named, first = literal(folded(name[-1])), literal(folded(name[0]))
        text = f"""
            SELECT {SearchPath.QUERY},
                (SELECT system.main.list([name, value]) FROM system.main.duckdb_settings() WHERE name IN ({_SETTINGS})),
                (SELECT system.main.list([database_name, schema_name, sql]) FROM (
                    SELECT database_name, schema_name, NULL AS sql FROM system.main.duckdb_tables()
                    WHERE {_folded_sql("table_name")} = {named}
                    UNION ALL
                    SELECT database_name, schema_name, sql FROM system.main.duckdb_views()
                    WHERE {_folded_sql("view_name")} = {named})),
                EXISTS (FROM system.main.duckdb_schemas() WHERE {_folded_sql("schema_name")} = {first}),
                EXISTS (FROM system.main.duckdb_databases() WHERE {_folded_sql("database_name")} = {first})"""  # noqa: S608
        method: Any = self._native.sql if later else self._native.execute
        try:
            row = method(text).fetchall()[0]
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            return _NOTHING
        *setting, settings, places, is_schema, is_database = row
        search = SearchPath.of(*setting)
        if within is not None:
            search = SearchPath([within, *search.named], [within, *search.order])
        objects = {(folded(database), folded(schema)): sql for database, schema, sql in places or ()}
        if name[-1] in self._shown:
            objects.pop(_TEMPORARY, None)
        is_unique = len(objects) <= 1
        if is_schema and is_database and len(name) == 2:
            place = None  # DuckDB rejects the name as ambiguous
        else:
            place = _first(name, search, objects, is_schema=is_schema)
        dialect = Dialect.of(settings or ())
        if place is None:
            return _Meaning(False, dialect, is_unique=is_unique)
        ours = self._catalog.schema(*place)
        is_lance = ours is not None and ours.find(name[-1]) is not None
        is_table = objects[place] is None or is_lance
        view = None if is_table else View(objects[place], place)
        return _Meaning(is_lance, dialect, place, view, is_unique)


def _first(name: tuple[str, ...], search: SearchPath, objects: Container[Place], *, is_schema: bool) -> Place | None:
    """Return the database and schema in which DuckDB finds a name first, or None if they are uncertain.

    Args:
        name: Its parts.
        search: Where DuckDB looks for names.
        objects: The schemas that contain a table or view with the name.
        is_schema: Whether the first part of a name with two parts is a schema, not a database.
    """
    everywhere = [_TEMPORARY, *search.order]
    match tuple(map(folded, name[:-1])):
        case ():
            return next((place for place in everywhere if place in objects), None)
        case (schema,) if is_schema:
            places = ((database, schema) for database, _ in everywhere)
            return next((place for place in places if place in objects), None)
        case (database,):
            place = search.schema_of(database)
            return place if place in objects else None
        case (database, schema):
            return (database, schema) if (database, schema) in objects else None
    return None


def handle_of(table_read: TableRead, catalog: TableCatalog, names: Names, *, later: bool) -> TableHandle | None:
    """Return the Lance table that a SELECT reads. Returns None for other tables, or if the version is an expression."""
    handle: TableHandle | None
    if table_read.path is not None:
        handle = catalog.path_handle(table_read.path)
    else:
        handle = None if table_read.name is None else names.table(table_read.name, later=later)
    if table_read.columns is not None and handle is not None:
        version = AskedColumns.of(table_read.columns).version
        return handle.at(VersionChoice(**version)) if version else handle
    if handle is None or not table_read.version:
        return handle
    texts = version_texts(table_read)
    if "asof" in texts or not all(
        part.string is not None or texts[name].isdecimal() for name, part in table_read.version
    ):
        return None
    return handle.at(VersionChoice(**texts))


def version_texts(table_read: TableRead) -> dict[str, str]:
    """Return the version that a statement specifies for a table, as arguments of `VersionChoice`."""
    return {name: part.text.strip() if part.string is None else part.string for name, part in table_read.version}


@dataclass
class Changes:
    """Counter of statements that may change how names are resolved.

    Not used with DuckDB 2.0, which counts these statements itself.

    Attributes:
        count: Number of statements and calls that may have changed names.
        is_sure: Whether all access to the database is counted.
        is_private: Whether user code cannot access the native connection, and therefore cannot change its settings.
        is_usual: Whether names are looked up in the default order: native database, Lance tables, Python variables.
    """

    count: int = 0
    is_sure: bool = False
    is_private: bool = False
    is_usual: bool = True

    def during(self, statement: object) -> AbstractContextManager[None]:
        """Return a context manager that counts a statement at its start and end, unless it only reads."""
        return _NOT_COUNTED if _DUCKDB_COUNTS else self._counted(statement)

    @contextmanager
    def _counted(self, statement: object) -> Iterator[None]:
        reads = isinstance(statement, str) and _reads(statement)
        self.count += not reads
        try:
            yield
        finally:
            self.count += not reads


def _reads(sql: str) -> bool:
    """Return whether a text is a single statement that does not change names."""
    first = FirstWords.of(sql)
    return first.kind is StatementKind.ROWS and not first.explain and ";" not in sql[first.start :].rstrip("; \t\n")


def _changes(native: Any, ours: Changes, *, names: bool = True) -> object:
    """Return a value that changes whenever the meaning of SQL may change, or None if changes cannot be detected.

    Args:
        native: DuckDB's connection.
        ours: The counter used if DuckDB does not count.
        names: Whether changes of names matter, not only changes of settings.
    """
    count = getattr(native, "_catalog_version", None)
    if count is not None:
        return count()
    return ours.count if (ours.is_sure if names else ours.is_private) else None


def _folded_sql(expression: str) -> str:
    """Return SQL for `folded` of an expression. DuckDB's `lower` also folds letters outside ASCII."""
    return f"system.main.translate({expression}, {literal(ascii_uppercase)}, {literal(ascii_lowercase)})"
