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

from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.rows.shadow import columns_as_sql
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.changes.tables.written_files import WrittenPath, is_in_table, path_refused
from lance_duck.duck.databases.database import SCHEMA, LanceDatabase
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded, literal, qualified_names, quoted
from lance_duck.errors import InvalidInputError, UnsupportedError
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
        """Return whether there are Lance tables to export, or the path may refer to a Lance table."""
        return bool(self._databases(session)) or self.path.may_be_lance(session)

    def _databases(self, session: ChangeSession) -> list[LanceDatabase]:
        """Return the databases with Lance tables to export: the named one, or those of the search path."""
        names = [self.name]
        if self.name is None:
            path = session.relation("SELECT current_setting('search_path')", {}).fetchall()[0][0]
            names = [entry[0] for entry in qualified_names(path)]
        found = (session.catalog.database(name) for name in dict.fromkeys(map(folded, filter(None, names))))
        return [database for database in found if database is not None and database.tables]

    def run(self, session: ChangeSession) -> ChangeResult:
        """Write the files."""
        path = self.path.value(session)
        if path is None:
            raise InvalidInputError("the path of EXPORT DATABASE is null", where=self.path.sql)
        if is_in_table(path):
            raise path_refused("EXPORT DATABASE to", path)
        folder = local_path(path)
        if folder is None:
            raise UnsupportedError(
                "EXPORT DATABASE with Lance tables needs a local folder",
                where=literal(path),
                remedy="write each table with COPY … TO",
            )
        session.explain_words("The database would be exported. Nothing was written.")
        session.refuse_in_transaction("EXPORT DATABASE")
        tables = self._tables(session)
        native = self._native_database(session)
        self._refuse_repeated(session, native, tables)
        scripts = dict.fromkeys(_SCRIPTS, "")
        if native is not None:
            _export(session, native, path, self.options)
            scripts = _scripts(folder)
        os.makedirs(folder, exist_ok=True)
        with _copies(session, folder):
            for database, name in tables.values():
                added = self._exported(session, TableName((database.name, SCHEMA, name), None, 0, 0), folder)
                # Views of the native database may read the table.
                scripts = {each: added[each] + scripts[each] for each in _SCRIPTS}
        for name, text in scripts.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        return nothing()

    def _tables(self, session: ChangeSession) -> dict[str, tuple[LanceDatabase, str]]:
        """Return the Lance tables to export, by their names ignoring case. The first database of a name wins."""
        tables: dict[str, tuple[LanceDatabase, str]] = {}
        for database in self._databases(session):
            for name in database.tables:
                tables.setdefault(folded(name), (database, name))
        return tables

    def _native_database(self, session: ChangeSession) -> str | None:
        """Return the native database to export, or None."""
        name = self.name or str(session.relation("SELECT current_database()", {}).fetchall()[0][0])
        return name if session.catalog.database(name) is None else None

    def _refuse_repeated(
        self, session: ChangeSession, native: str | None, tables: dict[str, tuple[LanceDatabase, str]]
    ) -> None:
        """Reject a name that both a native table or view and a Lance table have. Raises UnsupportedError."""
        if native is None:
            return
        sql = f"""
            SELECT name FROM (
                SELECT table_name AS name, database_name, schema_name FROM duckdb_tables()
                UNION ALL SELECT view_name, database_name, schema_name FROM duckdb_views()
            ) WHERE lower(database_name) = lower({literal(native)}) AND schema_name = {literal(SCHEMA)}"""  # noqa: S608
        repeated = sorted(name for (name,) in session.relation(sql, {}).fetchall() if folded(name) in tables)
        if repeated:
            database = tables[folded(repeated[0])][0].name
            raise UnsupportedError(
                "EXPORT DATABASE would write two tables with one name",
                where=repeated[0],
                remedy=f"export them separately: EXPORT DATABASE {quoted(native)} TO 'a', "
                f"and EXPORT DATABASE {quoted(database)} TO 'b'",
            )

    def _exported(self, session: ChangeSession, name: TableName, folder: str) -> dict[str, str]:
        """Write the data of a table, and return the scripts that import it. DuckDB writes them for an empty copy."""
        table = session.table(name, session.dataset(name))
        copy = f"{_COPY}.{SCHEMA}.{quoted(name.name)}"
        session.run(f"CREATE TABLE {copy} {columns_as_sql(table)}")
        staged = os.path.join(folder, _COPY)
        _export(session, _COPY, staged, self.options)
        session.run(f"DROP TABLE {copy}")
        scripts = _scripts(staged)
        (file,) = (each for each in os.listdir(staged) if each not in _SCRIPTS)
        target = _unused(folder, file)
        columns = ", ".join(column.quoted for column in table.columns)
        rows = f"SELECT {columns} FROM {'.'.join(map(quoted, name.parts))}"  # noqa: S608
        session.affected(f"COPY ({rows}) TO {literal(target)} {self.options.text}", {})
        shutil.rmtree(staged)
        scripts["load.sql"] = scripts["load.sql"].replace(literal(os.path.join(staged, file)), literal(target))
        return scripts


def _export(session: ChangeSession, database: str, path: str, options: Clauses) -> None:
    session.run(f"EXPORT DATABASE {quoted(database)} TO {literal(path)} {options.text}")


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


def _unused(folder: str, name: str) -> str:
    """Return the path of a new file. Adds a number to the name if it is in use."""
    stem, dot, ending = name.partition(".")
    path, number = os.path.join(folder, name), 0
    while os.path.exists(path):
        number += 1
        path = os.path.join(folder, f"{stem}_lance{number}{dot}{ending}")
    return path
