"""COPY FROM DATABASE, if one of the databases contains Lance tables.

    COPY FROM DATABASE a TO b [(SCHEMA | DATA)]

    native to Lance    CREATE TABLE with its defaults, COMMENT and INSERT of each table
    Lance to native    the same, in one transaction
    Lance to Lance     a deep clone of each table, with its indexes

SCHEMA creates the tables without rows. DATA adds rows to tables that exist. Rows are never left out: a table that the
target cannot hold is rejected before anything is written. A warning lists other objects, such as views and sequences,
which are not copied. If a table fails, the tables created so far are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import duckdb
import pyarrow as pa

from lance_duck.arguments import did_you_mean
from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.changed_tables import TransactionBlock
from lance_duck.duck.changes.result import ChangeResult, counted, nothing
from lance_duck.duck.changes.rows.defaults import DEFAULT, calls_sequence, default_values, defaults_of
from lance_duck.duck.changes.rows.insert import InsertStatement
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement, rejected_rows
from lance_duck.duck.changes.tables.create import described_columns, key_as_sql
from lance_duck.duck.changes.tables.new_place import check_place, place_of
from lance_duck.duck.changes.tables.write_options import write_new_table
from lance_duck.duck.databases.database_schema import COMMENT, SCHEMA, DatabaseSchema, check_table_name
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    UnsupportedError,
    warn_of_table,
)
from lance_duck.wire.schema_write import schema_from_arrow
from lance_duck.write.relations import refuse_enums

_PARTS: Final = ("schema", "data")
_LEFT_OUT: Final = """
    SELECT 'view', schema_name, view_name FROM system.main.duckdb_views()
        WHERE database_name = {0} AND NOT internal
    UNION ALL SELECT 'sequence', schema_name, sequence_name FROM system.main.duckdb_sequences()
        WHERE database_name = {0}
    UNION ALL SELECT DISTINCT 'macro', schema_name, function_name FROM system.main.duckdb_functions()
        WHERE database_name = {0} AND NOT internal
    UNION ALL SELECT 'type', schema_name, type_name FROM system.main.duckdb_types()
        WHERE database_name = {0} AND NOT internal
    UNION ALL SELECT 'index', schema_name, index_name FROM system.main.duckdb_indexes() WHERE database_name = {0}
    UNION ALL SELECT system.main.lower(constraint_type) || ' of', schema_name, table_name
        FROM system.main.duckdb_constraints()
        WHERE database_name = {0} AND constraint_type IN ('CHECK', 'UNIQUE', 'FOREIGN KEY')
"""
"""Lists objects of a native database that a folder does not keep: kind, schema and name."""
_OF_COLUMNS: Final = {
    "collate": "collation of",
    "generated": "expression of generated column",
}
"""Kinds of column properties that a folder does not keep, by their keyword in CREATE TABLE."""


@dataclass(frozen=True)
class _Table:
    """A table of the source.

    Attributes:
        schema: Its schema.
        name: Its name.
        sql: Its qualified name.
        columns: Its columns with their nullability, keys, defaults and comments.
        comment: Its comment.
        dataset: Its version, if it is a Lance table.
    """

    schema: str
    name: str
    sql: str
    columns: pa.Schema
    comment: str | None
    dataset: LanceDataset | None = None


@dataclass(frozen=True)
class CopyDatabaseStatement(LanceStatement):
    """A COPY FROM DATABASE.

    Attributes:
        source: Name of the database to read.
        target: Name of the database to write.
        only: "schema" or "data" for one of the two, otherwise empty.
    """

    key_remedy: ClassVar[str] = "DELETE the rows with these keys from one of the tables first"

    source: str
    target: str
    only: str

    @classmethod
    def read(cls, head: StatementHead) -> CopyDatabaseStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        if not body.says(1, "from", "database") or body.word(4) != "to" or len(body) not in (6, 9):
            return None
        source, target = body.tokens[3].name, body.tokens[5].name
        only = body.word(7) or "" if len(body) == 9 else ""
        has_option = body.text_at(6) == "(" and body.text_at(8) == ")" and only in _PARTS
        if source is None or target is None or (len(body) == 9 and not has_option):
            return None
        return cls(source, target, only)

    @property
    def subject(self) -> str:
        """The databases, for errors."""
        return f"databases {self.source} and {self.target}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether either is a Lance database."""
        return any(session.catalog.database(name) is not None for name in (self.source, self.target))

    def target_schemas(self, session: ChangeSession) -> Sequence[DatabaseSchema]:
        """Return the target, if it is a Lance database."""
        target = session.catalog.database(self.target)
        return () if target is None else (target,)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Copy the tables."""
        session.explain_words("The tables of the database would be copied. Nothing was written.")
        session.catalog.refresh(force=True)
        names = [
            name
            for (name,) in session.relation("SELECT database_name FROM system.main.duckdb_databases()", {}).fetchall()
        ]
        source, target = (_database_name(name, names) for name in (self.source, self.target))
        if source == target:
            raise InvalidInputError(f'Cannot copy from "{source}" to "{target}" - FROM and TO databases are the same')
        database = session.catalog.database(target)
        if database is not None:
            session.refuse_in_transaction("COPY FROM DATABASE to Lance tables")
        read = session.catalog.database(source)
        tables = _native_tables(session, source) if read is None else _lance_tables(session, read)
        schemas = _schema_names(session, source, read)
        if database is None:
            count = self._into_native(session, schemas, tables, target)
        else:
            count = self._into_folder(session, schemas, tables, database)
        if self.only != "data" and read is None:
            _warn_of_objects(source, target, _other_objects(session, source))
        elif self.only != "data" and read is not None:
            _warn_of_objects(source, target, session.catalog.objects(read).titles())
        return counted(count) if self.only == "data" else nothing()

    def _into_native(
        self, session: ChangeSession, schemas: Sequence[str], tables: Sequence[_Table], target: str
    ) -> int:
        """Copy Lance tables into a native database. Returns the number of rows."""
        count = 0
        with _transaction(session):
            for schema in schemas if self.only != "data" else ():
                session.run(f"CREATE SCHEMA IF NOT EXISTS {quoted(target)}.{quoted(schema)}")
            for table in tables:
                name = _qualified(target, table.schema, table.name)
                if self.only != "data":
                    _create_native(session, table, name)
                if self.only != "schema":
                    count += session.affected(f"INSERT INTO {name} SELECT * FROM {table.sql}", {})  # noqa: S608
        return count

    def _into_folder(
        self, session: ChangeSession, schemas: Sequence[str], tables: Sequence[_Table], database: DatabaseSchema
    ) -> int:
        """Copy tables into a Lance database. Returns the number of rows."""
        if self.only == "data":
            for table in tables:
                schema = session.catalog.schema(database.database, table.schema)
                if schema is None or schema.find(table.name) is None:
                    reason = None if schema is None else schema.broken(table.name)
                    raise reason or NotFoundError(f"Table with name {table.name} does not exist!")
            return _insert(session, tables, database, into_existing=True)
        for table in tables:
            check_table_name(table.name)
            _check_columns(table)
            schema = session.catalog.schema(database.database, table.schema)
            if schema is not None and (schema.find(table.name) is not None or schema.broken(table.name) is not None):
                raise AlreadyExistsError(
                    f'Table with name "{table.name}" already exists!',
                    where=f"database {database.database}",
                    remedy="drop one of the two tables, or add rows with COPY FROM DATABASE … (DATA)",
                )
        new_schemas = _create_schemas(session, schemas, database)
        created: list[_Table] = []
        try:
            for table in tables:
                dataset = self._create(session, table, database)
                created.append(table)
                if dataset.metadata.get(COMMENT) != table.comment:
                    dataset.update_metadata({COMMENT: table.comment})
            session.catalog.refresh(force=True)
            with_rows = [table for table in tables if table.dataset is None and self.only != "schema"]
            return _insert(session, with_rows, database)
        except BaseException:
            for table in created:
                _remove(_schema_in(session, database, table), table.name)
            for name in new_schemas:
                _drop_schema(database, name)
            session.catalog.refresh(force=True)
            raise

    def _create(self, session: ChangeSession, table: _Table, database: DatabaseSchema) -> LanceDataset:
        """Create a Lance table. A clone also has the rows."""
        try:
            uri, options = place_of(session, _name_in(database, table))
            check_place(uri)
            dataset = table.dataset
            if dataset is not None and self.only != "schema":
                return dataset.deep_clone(uri, storage_options=options)
            arguments: dict[str, Any] = {"mode": "create", "storage_options": options}
            if dataset is not None:
                arguments["data_storage_version"] = dataset.data_storage_version
                arguments["enable_stable_row_ids"] = dataset.has_stable_row_ids
            return write_new_table(pa.Table.from_batches([], table.columns), uri, **arguments)
        except BaseException:
            folder = _schema_in(session, database, table).folder
            if folder is not None:
                folder.abandon(table.name)
            raise


@contextmanager
def _transaction(session: ChangeSession) -> Iterator[None]:
    """Run native statements in one transaction: the caller's, or a new one. An error discards all their changes."""
    is_own = session.block is None
    if is_own:
        session.run("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        with suppress(duckdb.Error):
            if is_own:
                session.run("ROLLBACK")
            else:  # DuckDB 1.5 would keep the tables that were created before the error
                session.native.execute("SELECT error('COPY FROM DATABASE failed')").fetchall()
        raise
    if is_own:
        session.run("COMMIT")


def _database_name(name: str, names: Sequence[str]) -> str:
    found = next((each for each in names if folded(each) == folded(name)), None)
    if found is None:
        raise NotFoundError(f'Catalog "{name}" does not exist!', remedy=did_you_mean(name, names))
    return found


def _name_in(database: DatabaseSchema, table: _Table) -> TableName:
    return TableName((database.database, table.schema, table.name), None, 0, 0)


def _schema_in(session: ChangeSession, database: DatabaseSchema, table: _Table) -> DatabaseSchema:
    """Return the schema of a table in the target."""
    schema = session.catalog.schema(database.database, table.schema)
    assert schema is not None
    return schema


def _schema_names(session: ChangeSession, database: str, main: DatabaseSchema | None) -> list[str]:
    """Return the names of the schemas of a database, which is a Lance database if it has a schema `main`."""
    if main is not None:
        return [schema.name for schema in session.catalog.schemas if schema.place[0] == main.place[0]]
    where = f"database_name = {literal(database)} AND NOT internal"
    sql = f"SELECT schema_name FROM system.main.duckdb_schemas() WHERE {where} ORDER BY 1"  # noqa: S608
    return [name for (name,) in session.relation(sql, {}).fetchall() if name != SCHEMA]


def _create_schemas(session: ChangeSession, names: Sequence[str], database: DatabaseSchema) -> list[str]:
    """Create the missing schemas. Returns their names."""
    missing = [name for name in names if session.catalog.schema(database.database, name) is None]
    if missing and database.folder is not None:
        for name in missing:
            database.folder.namespace.create_namespace((*database.folder.parts, name))
        session.catalog.refresh(force=True)
    return missing


def _drop_schema(database: DatabaseSchema, name: str) -> None:
    """Drop a new schema."""
    assert database.folder is not None
    with suppress(LanceDuckError):  # the original error is more specific
        database.folder.namespace.drop_namespace((*database.folder.parts, name))


def _qualified(database: str, schema: str, table: str) -> str:
    return f"{quoted(database)}.{quoted(schema)}.{quoted(table)}"


def _lance_tables(session: ChangeSession, database: DatabaseSchema) -> list[_Table]:
    """Return the tables of a Lance database. Raises the error of a table that cannot be opened."""
    tables = []
    for schema in session.catalog.schemas:
        if schema.place[0] != database.place[0]:
            continue
        for name, error in schema.broken_tables.items():
            raise _of_table(error, name)
        for name in sorted(schema.tables):
            dataset = session.dataset(TableName((schema.database, schema.name, name), None, 0, 0))
            sql = _qualified(schema.database, schema.name, name)
            tables.append(_Table(schema.name, name, sql, dataset.schema, dataset.metadata.get(COMMENT), dataset))
    return tables


def _native_tables(session: ChangeSession, database: str) -> list[_Table]:
    """Return the tables of a native database.

    Raises:
        UnsupportedError: A table has a type that Lance cannot store.
    """
    tables = f"FROM system.main.duckdb_tables() WHERE database_name = {literal(database)}"
    rows = sorted(session.relation(f"SELECT schema_name, table_name, comment {tables}", {}).fetchall())
    return [_native_table(session, database, *row) for row in rows]


def _native_table(session: ChangeSession, database: str, schema: str, name: str, comment: str | None) -> _Table:
    where = f"database_name = {literal(database)} AND schema_name = {literal(schema)} AND table_name = {literal(name)}"
    sql = f"SELECT column_name, comment FROM system.main.duckdb_columns() WHERE {where} AND comment IS NOT NULL"  # noqa: S608
    comments = dict(session.relation(sql, {}).fetchall())
    try:
        columns = described_columns(session, _qualified(database, schema, name)).schema
        schema_from_arrow(columns)
    except LanceDuckError as error:
        raise _of_table(error, name) from error
    for number, field in enumerate(columns):
        metadata = {key.decode(): value.decode() for key, value in (field.metadata or {}).items()}
        if calls_sequence(metadata.get(DEFAULT, "")):
            del metadata[DEFAULT]
        if field.name in comments:
            metadata[COMMENT] = comments[field.name]
        columns = columns.set(number, field.with_metadata(metadata))
    return _Table(schema, name, _qualified(database, schema, name), columns, comment)


def _check_columns(table: _Table) -> None:
    """Check that a new Lance table can have the columns. Raises UnsupportedError."""
    try:
        refuse_enums(table.columns)
    except UnsupportedError as error:
        raise _of_table(error, table.name) from error


def _of_table(error: LanceDuckError, name: str) -> LanceDuckError:
    """Return an error with the name of its table."""
    where = f"table {name}" if error.where is None else f"table {name}, {error.where}"
    return type(error)(error.what, where=where, expected=error.expected, found=error.found, remedy=error.remedy)


def _create_native(session: ChangeSession, table: _Table, name: str) -> None:
    """Create a native table with the columns that a SELECT of the Lance table returns."""
    assert table.dataset is not None
    rows = session.relation(f"SELECT * FROM {table.sql}", {})  # noqa: S608
    target = session.table(TableName((table.name,), None, 0, 0), table.dataset)
    defaults = default_values(session, target, defaults_of(target))
    columns = []
    for column, type_, field in zip(rows.columns, rows.types, table.columns, strict=True):
        default = f" DEFAULT ({defaults[field.name]})" if field.name in defaults else ""
        columns.append(f"{quoted(column)} {type_}{'' if field.nullable else ' NOT NULL'}{default}")
    session.run(f"CREATE TABLE {name} ({', '.join([*columns, *key_as_sql(table.dataset, rows.columns)])})")
    comments = {f"TABLE {name}": table.comment}
    for column, field in zip(rows.columns, table.columns, strict=True):
        comment = (field.metadata or {}).get(COMMENT.encode())
        comments[f"COLUMN {name}.{quoted(column)}"] = None if comment is None else comment.decode()
    for subject, text in comments.items():
        if text is not None:
            session.run(f"COMMENT ON {subject} IS {literal(text)}")


def _insert(
    session: ChangeSession, tables: Sequence[_Table], database: DatabaseSchema, *, into_existing: bool = False
) -> int:
    """Insert the rows of tables into Lance tables of the same names. All files are written before the first commit.

    Args:
        session: Session of the statement.
        tables: The tables to read.
        database: The tables to write.
        into_existing: Whether the tables existed before the statement. They are then changed in one commit.
    """
    blocks: dict[str, TransactionBlock] = {}
    count = 0
    try:
        with _transaction(session):  # all tables are read as of one moment
            for table in tables:
                target = _name_in(database, table)
                block = blocks.setdefault("" if into_existing else table.sql, TransactionBlock(session.catalog))
                rows = Clauses.of(f"SELECT * FROM {table.sql}")  # noqa: S608
                none = rows.part(len(rows))
                insert = InsertStatement(target, none, table.name, None, False, rows, none, None, none)
                with rejected_rows(table.name, insert.key_remedy):
                    count += insert.run(replace(session, block=block)).rowcount
        for block in blocks.values():
            block.commit()
    except BaseException:
        for block in blocks.values():
            block.discard()
        raise
    return count


def _remove(database: DatabaseSchema, name: str) -> None:
    """Remove a new table."""
    folder = database.folder
    assert folder is not None
    with suppress(LanceDuckError):  # the original error is more specific
        folder.drop(name, folder.tables()[name])


def _column_properties(table: str, create: Clauses) -> Iterator[str]:
    """Yield the properties of columns that a folder does not keep. DuckDB's functions do not list collations."""
    opener = next(place for place, token in enumerate(create.tokens) if token.text == "(")
    for column in create.part(opener + 1, create.closer(opener)).split():
        if calls_sequence(column.text):
            yield f"default of {table}.{column.tokens[0].name}"
        for word, kind in _OF_COLUMNS.items():
            if column.find(word, start=1) > 0:
                yield f"{kind} {table}.{column.tokens[0].name}"


def _other_objects(session: ChangeSession, source: str) -> list[str]:
    """Return the objects of a native database that are not copied."""
    rows = session.relation(_LEFT_OUT.format(literal(source)), {}).fetchall()
    names = [f"{kind} {name if schema in (None, SCHEMA) else f'{schema}.{name}'}" for kind, schema, name in rows]
    sql = f"SELECT table_name, sql FROM system.main.duckdb_tables() WHERE database_name = {literal(source)}"  # noqa: S608
    for table, text in session.relation(sql, {}).fetchall():
        names += _column_properties(table, Clauses.of(text))
    return names


def _warn_of_objects(source: str, target: str, names: Sequence[str]) -> None:
    """Warn of the objects of a database that were not copied."""
    if names:
        listed = ", ".join(dict.fromkeys(names))
        warn_of_table(f"COPY FROM DATABASE {source} TO {target} copies tables only, and leaves out: {listed}")
