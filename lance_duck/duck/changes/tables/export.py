"""EXPORT DATABASE with Lance tables. IMPORT DATABASE makes native tables of them.

    EXPORT DATABASE [name TO] 'folder' [(option [value], …)]

DuckDB exports the native tables. The files of the Lance tables are added to the same folder, with the same options.
Without a name, the Lance tables are those that an unqualified name refers to.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import duckdb

from lance_duck.duck.changes.options import is_lance
from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.rows.defaults import default_values, defaults_of
from lance_duck.duck.changes.rows.shadow import columns_as_sql
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.changes.tables.create import key_as_sql
from lance_duck.duck.changes.tables.written_files import WrittenPath, is_in_table, path_refused
from lance_duck.duck.changes.target import TargetTable
from lance_duck.duck.databases.database_schema import SCHEMA, DatabaseSchema
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded, literal, qualified_names, quoted
from lance_duck.errors import InvalidInputError, StoreError, UnsupportedError, warn_of_table
from lance_duck.store.uri import local_path

_SCRIPTS: Final = ("schema.sql", "load.sql")
_COPY: Final = "__lance_export"


@dataclass(frozen=True)
class ExportStatement(LanceStatement):
    """An EXPORT DATABASE.

    Attributes:
        name: The database, or None for the current database.
        path: The folder to write.
        options: The options, including parentheses. May be empty.
    """

    writes: ClassVar[bool] = False

    name: str | None
    path: WrittenPath
    options: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> ExportStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        if not body.says(0, "export", "database"):
            return None
        has_name = body.word(3) == "to" and body.tokens[2].name is not None
        path = WrittenPath.at(body, 4 if has_name else 2)
        return None if path is None else cls(body.tokens[2].name if has_name else None, path, body.part(path.after))

    @property
    def subject(self) -> str:
        """The folder, for errors."""
        return self.path.sql

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether Lance tables are read or written, or the path may refer to a Lance table."""
        has_folder = any(schema.tables or schema.folder is not None for schema in self._all_schemas(session))
        return is_lance(self.options) or has_folder or self.path.may_be_lance(session)

    def _schemas(self, session: ChangeSession) -> list[DatabaseSchema]:
        """Return the schemas with Lance tables to export."""
        return [schema for schema in self._all_schemas(session) if schema.tables]

    def _all_schemas(self, session: ChangeSession) -> list[DatabaseSchema]:
        """Return all schemas of the named database. Without a name, use all databases of the search path."""
        names = [self.name]
        if self.name is None:
            path = session.relation("SELECT system.main.current_setting('search_path')", {}).fetchall()[0][0]
            names = [entry[0] for entry in qualified_names(path)]
        found = (session.catalog.database(name) for name in dict.fromkeys(map(folded, filter(None, names))))
        wanted = {database.place[0] for database in found if database is not None}
        return [schema for schema in session.catalog.schemas if schema.place[0] in wanted]

    def run(self, session: ChangeSession) -> ChangeResult:
        """Write the files."""
        path = self.path.value(session)
        if path is None:
            raise InvalidInputError("the path of EXPORT DATABASE is null", where=self.path.sql)
        if is_in_table(path):
            raise path_refused("EXPORT DATABASE to", path)
        if is_lance(self.options):
            raise self._refused_format(session, path)
        session.catalog.binder.access.check(path)
        folder = local_path(path)
        if folder is None:
            raise UnsupportedError(
                "EXPORT DATABASE with Lance tables needs a local folder",
                where=literal(path),
                remedy="write each table with COPY … TO",
            )
        session.explain_words("The database would be exported. Nothing was written.")
        session.refuse_in_transaction("EXPORT DATABASE")
        session.catalog.refresh(force=True)
        tables = self._tables(session)
        native = self._native_database(session)
        self._refuse_repeated(session, native, tables)
        names = [TableName((schema.database, schema.name, name), None, 0, 0) for schema, name in tables.values()]
        opened = [(name, session.table(name, session.dataset(name))) for name in names]  # may raise errors
        scripts = dict.fromkeys(_SCRIPTS, "")
        with _removed_after_error(folder):
            if native is not None:
                _export(session, native, path, self.options)
                scripts = _scripts(folder)
            _make(folder)
            with _copies(session, folder):
                for name, table in opened:
                    added = self._exported(session, name, table, folder, scripts["load.sql"])
                    # Views of the native database may read the table.
                    scripts = {each: added[each] + scripts[each] for each in _SCRIPTS}
            empty = [each for each in self._all_schemas(session) if not each.tables and each.name != SCHEMA]
            created = (f"CREATE SCHEMA IF NOT EXISTS {quoted(each.name)};\n" for each in empty)
            scripts["schema.sql"] = _schemas_first("".join([scripts["schema.sql"], *created]))
            for script, text in scripts.items():
                Path(folder, script).write_text(text, encoding="utf-8")
        self._warn_of_objects(session)
        return nothing()

    def _warn_of_objects(self, session: ChangeSession) -> None:
        """Warn of views, macros and types of folders, which are not exported."""
        mains = {schema.place[0]: session.catalog.database(schema.database) for schema in self._schemas(session)}
        left = [
            title for main in mains.values() if main is not None for title in session.catalog.objects(main).titles()
        ]
        if left:
            warn_of_table(f"EXPORT DATABASE writes the tables of a folder, and leaves out: {', '.join(left)}")

    def _refused_format(self, session: ChangeSession, path: str) -> UnsupportedError:
        databases = self._schemas(session)
        source = databases[0].database if databases else self._name(session)
        return UnsupportedError(
            "EXPORT DATABASE cannot write Lance tables",
            where=literal(path),
            remedy=f"copy the database: ATTACH {literal(path)} AS copies (TYPE lance), "
            f"and COPY FROM DATABASE {quoted(source)} TO copies",
        )

    def _tables(self, session: ChangeSession) -> dict[tuple[str, str], tuple[DatabaseSchema, str]]:
        """Return the Lance tables to export, by schema and name ignoring case. The first database of a name wins.

        Raises the error of a table that cannot be opened.
        """
        tables: dict[tuple[str, str], tuple[DatabaseSchema, str]] = {}
        for schema in self._schemas(session):
            for error in schema.broken_tables.values():
                raise error
            for name in schema.tables:
                tables.setdefault((schema.place[1], folded(name)), (schema, name))
        return tables

    def _name(self, session: ChangeSession) -> str:
        return self.name or str(session.relation("SELECT system.main.current_database()", {}).fetchall()[0][0])

    def _native_database(self, session: ChangeSession) -> str | None:
        """Return the native database to export, or None."""
        name = self._name(session)
        return name if session.catalog.database(name) is None else None

    def _refuse_repeated(
        self, session: ChangeSession, native: str | None, tables: dict[tuple[str, str], tuple[DatabaseSchema, str]]
    ) -> None:
        """Reject a name that both a native table or view and a Lance table have. Raises UnsupportedError."""
        if native is None:
            return
        sql = f"""
            SELECT schema_name, name FROM (
                SELECT table_name AS name, database_name, schema_name FROM system.main.duckdb_tables()
                UNION ALL SELECT view_name, database_name, schema_name FROM system.main.duckdb_views()
            ) WHERE lower(database_name) = lower({literal(native)})"""  # noqa: S608
        rows = session.relation(sql, {}).fetchall()
        repeated = sorted(row for row in rows if (folded(row[0]), folded(row[1])) in tables)
        if repeated:
            database = tables[folded(repeated[0][0]), folded(repeated[0][1])][0].database
            raise UnsupportedError(
                "EXPORT DATABASE would write two tables with one name",
                where=repeated[0][1],
                remedy=f"export them separately: EXPORT DATABASE {quoted(native)} TO 'a', "
                f"and EXPORT DATABASE {quoted(database)} TO 'b'",
            )

    def _exported(
        self, session: ChangeSession, name: TableName, table: TargetTable, folder: str, load: str
    ) -> dict[str, str]:
        """Write the data of a table, and return the scripts that import it. DuckDB writes them for an empty copy.

        Args:
            session: The statement.
            name: The qualified name of the table.
            table: The table.
            folder: The folder to write.
            load: The script that loads the tables written before. Their files are kept.
        """
        key = key_as_sql(table.dataset, [column.name for column in table.columns])
        schema = f"{_COPY}.{quoted(name.parts[1])}"
        copy = f"{schema}.{quoted(name.name)}"
        session.run(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        defaults = default_values(session, table, defaults_of(table))
        session.run(f"CREATE TABLE {copy} {columns_as_sql(table, *key, defaults=defaults)}")
        staged = os.path.join(folder, _COPY)
        _export(session, _COPY, staged, self.options)
        session.run(f"DROP TABLE {copy}" if name.parts[1] == SCHEMA else f"DROP SCHEMA {schema} CASCADE")
        scripts = _scripts(staged)
        (file,) = (each for each in os.listdir(staged) if each not in _SCRIPTS)
        target = _unused(folder, file, load)
        columns = ", ".join(column.quoted for column in table.columns)
        rows = f"SELECT {columns} FROM {'.'.join(map(quoted, name.parts))}"  # noqa: S608
        session.affected(f"COPY ({rows}) TO {literal(target)} {self.options.text}", {})
        shutil.rmtree(staged)
        scripts["load.sql"] = scripts["load.sql"].replace(literal(os.path.join(staged, file)), literal(target))
        return scripts


def _export(session: ChangeSession, database: str, path: str, options: Clauses) -> None:
    session.run(f"EXPORT DATABASE {quoted(database)} TO {literal(path)} {options.text}")


def _schemas_first(script: str) -> str:
    """Return a script that creates each schema once, before the tables."""
    lines = script.splitlines(keepends=True)
    schemas = dict.fromkeys(line for line in lines if line.startswith("CREATE SCHEMA "))
    return "".join([*schemas, *(line for line in lines if line not in schemas)])


def _scripts(folder: str) -> dict[str, str]:
    return {name: Path(folder, name).read_text(encoding="utf-8").strip() + "\n" for name in _SCRIPTS}


@contextmanager
def _copies(session: ChangeSession, folder: str) -> Iterator[None]:
    """Attach a database for empty copies of tables, while the context is open."""
    session.run(f"ATTACH ':memory:' AS {_COPY}")
    try:
        yield
    finally:
        shutil.rmtree(os.path.join(folder, _COPY), ignore_errors=True)
        with suppress(duckdb.Error):
            session.run(f"DETACH {_COPY}")


def _unused(folder: str, name: str, load: str) -> str:
    """Return the path of a file that a script does not load. Files of earlier exports are replaced, as by DuckDB."""
    stem, dot, ending = name.partition(".")
    file, number = name, 0
    while folded(literal(f"/{file}")[1:]) in folded(load):
        number += 1
        file = f"{stem}_lance{number}{dot}{ending}"
    return os.path.join(folder, file)


def _make(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise StoreError("cannot create the folder", where=folder, found=error.strerror or str(error)) from error


@contextmanager
def _removed_after_error(folder: str) -> Iterator[None]:
    """Remove a new folder and its new parents after an error. A folder that existed is kept."""
    new = [path for path in (Path(folder), *Path(folder).parents) if not os.path.exists(path)]
    try:
        yield
    except BaseException:
        if new:
            shutil.rmtree(new[-1], ignore_errors=True)
        raise
