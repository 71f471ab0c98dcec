"""CREATE TABLE, implemented by `write_dataset`.

    CREATE [OR REPLACE] TABLE [IF NOT EXISTS] target
        (column type [DEFAULT e] [NOT NULL] [PRIMARY KEY], … [, PRIMARY KEY (column, …)]) [WITH (option = value, …)]
        [(column, …)] [WITH (option = value, …)] AS query [WITH [NO] DATA]
        LIKE table | (LIKE table)

A target is a path that ends in `.lance`, or a name in a Lance database, such as t, s.t or lance.t.
Named tables are created in the folder of their schema. Other names refer to native tables. Options are arguments of
`write_dataset`. LIKE, which DuckDB does not support, creates an empty table with the same columns, defaults and primary
key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.block import DuckTransaction
from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, counted, nothing
from lance_duck.duck.changes.rows.defaults import DEFAULT, refuse_sequences
from lance_duck.duck.changes.rows.shadow import SHADOW, temporary_table
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.tables.new_place import check_has_folder, check_place, place_of
from lance_duck.duck.changes.tables.write_options import (
    WRITE_OPTIONS,
    is_unreadable,
    write_arguments,
    write_new_table,
    write_query,
)
from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import quoted, shown_names
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.errors import AlreadyExistsError, FormatError, InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.snapshot import Location
from lance_duck.wire.schema_write import primary_key
from lance_duck.write.relations import relation_reader

_REFUSED: Final = ("check", "references", "foreign", "generated", "unique", "collate", "as")
_PRIMARY_KEY: Final = "lance-schema:unenforced-primary-key"


@dataclass(frozen=True)
class CreateStatement(TableStatement):
    """A CREATE TABLE. Missing clauses are empty.

    Attributes:
        replaces: OR REPLACE.
        may_exist: IF NOT EXISTS.
        columns: The column list, including parentheses.
        options: WITH and the options in parentheses.
        query: The query after AS.
        has_data: Whether the rows of the query are written.
        like: The table after LIKE.
    """

    replaces: bool
    may_exist: bool
    columns: Clauses
    options: Clauses
    query: Clauses
    has_data: bool
    like: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CreateStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 3 if body.says(1, "or", "replace") else 1
        may_exist = body.says(place + 1, "if", "not", "exists")
        target = TableName.at(body, place + (4 if may_exist else 1)) if body.word(place) == "table" else None
        if target is None:
            return None
        after = target.after
        if body.word(after) == "like" or (body.text_at(after) == "(" and body.word(after + 1) == "like"):
            empty = body.part(len(body))
            inside = body.part(after + 1) if body.word(after) == "like" else body.part(after + 2, body.closer(after))
            return cls(target, place == 3, may_exist, empty, empty, empty, False, inside)
        end = body.closer(after) + 1 if body.text_at(after) == "(" else after
        columns, after = body.part(after, end), end
        if body.word(after) == "with" and body.text_at(after + 1) == "(":
            end = body.closer(after + 1) + 1
        options = body.part(after, end)
        query = body.part(end + 1) if body.word(end) == "as" else body.part(len(body))
        if (end < len(body) and not query.tokens) or not (query.tokens or columns.tokens):
            return None
        query, has_data = _with_data(query)
        return cls(target, place == 3, may_exist, columns, options, query, has_data, body.part(len(body)))

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the table is a Lance table, or would become one."""
        return self.target.path is not None or session.schema_of_new(self.target) is not None

    def target_schemas(self, session: ChangeSession) -> Sequence[DatabaseSchema]:
        """Return the schema of the new table."""
        schema = session.schema_of_new(self.target)
        return () if schema is None else (schema,)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Create the table."""
        query = self._query()
        if query:
            session.explain_query(query, {})
        session.explain_words("A table without rows would be created. Nothing was written.")
        schema = session.schema_of_new(self.target)
        if schema is not None and schema.folder is not None and self._is_view(session, schema):
            return nothing("Count", "BIGINT")
        if session.transaction is not None and schema is not None:
            return self._create_draft(session, session.transaction, schema, query)
        uri, storage = place_of(session, self.target)
        try:
            return self._create(session, query, uri, storage)
        except BaseException:
            with suppress(LanceDuckError):  # the original error is more specific
                if schema is not None and schema.folder is not None and schema.find(self.target.name) is None:
                    schema.folder.abandon(self.target.name)
            raise

    def _create_draft(
        self, session: ChangeSession, transaction: DuckTransaction, schema: DatabaseSchema, query: str
    ) -> ChangeResult:
        """Create a table that only the transaction sees until COMMIT."""
        name = self.target.name
        if schema.find(name) is not None or schema.broken(name) is not None:
            if self.may_exist:
                return nothing("Count", "BIGINT")
            if self.replaces:
                raise UnsupportedError(
                    "CREATE OR REPLACE TABLE cannot replace a table in a transaction",
                    where=f"table {name}",
                    remedy="DROP TABLE first in the same transaction, or COMMIT or ROLLBACK",
                )
            raise AlreadyExistsError(f'Table with name "{name}" already exists!')
        check_has_folder(self.target, schema)
        uri, storage = transaction.drafts.place_of_new(schema, name)
        table = self._written(session, query, uri, "create", storage)
        transaction.create_table(schema, name, TableHandle(uri, storage_options=storage, is_draft=True))
        return counted(table.count_rows()) if query else nothing("Count", "BIGINT")

    def _written(
        self, session: ChangeSession, query: str, uri: str, mode: str, storage: Mapping[str, str] | None
    ) -> LanceDataset:
        """Write the new table."""
        values = Options.of(self.options, "CREATE TABLE").values(session, WRITE_OPTIONS)
        arguments: dict[str, Any] = {**write_arguments(values), "mode": mode, "storage_options": storage}
        if query and not self.has_data:
            query = f"SELECT * FROM (\n{query}\n) LIMIT 0"  # noqa: S608
        if query:
            return write_query(session, query, uri, **arguments)
        return write_new_table(self._empty(session), uri, **arguments)

    def _is_view(self, session: ChangeSession, schema: DatabaseSchema) -> bool:
        """Return whether a view has the name, and IF NOT EXISTS permits it.

        Raises:
            AlreadyExistsError: A view has the name.
        """
        name = self.target.name
        if session.catalog.objects(schema).find(schema, name, ("view",)) is None:
            return False
        if self.may_exist:
            return True
        if self.replaces:
            raise AlreadyExistsError(f'Existing object "{name}" is of type View, trying to replace with type Table')
        raise AlreadyExistsError(f'View with name "{name}" already exists!', remedy="DROP VIEW first")

    def _create(self, session: ChangeSession, query: str, uri: str, storage: Mapping[str, str] | None) -> ChangeResult:
        check_place(uri)
        try:
            if self.may_exist and session.exists(uri, storage) is not None:
                return nothing("Count", "BIGINT")
            table = self._written(session, query, uri, "overwrite" if self.replaces else "create", storage)
        except AlreadyExistsError as error:
            remedy = "OR REPLACE replaces it, IF NOT EXISTS leaves it as it is, INSERT adds rows"
            raise AlreadyExistsError(f"table {self.target.name} exists", where=uri, remedy=remedy) from error
        except FormatError as error:
            if self.replaces or not is_unreadable(Location.of(uri, storage)):
                raise
            what = f"table {self.target.name} exists, but cannot be opened: {error.what}"
            facts = {"where": error.where, "expected": error.expected, "found": error.found}
            raise type(error)(what, **facts, remedy="DROP TABLE or CREATE OR REPLACE TABLE removes it") from error
        session.catalog.refresh(force=True)
        return counted(table.count_rows()) if query else nothing("Count", "BIGINT")

    def _query(self) -> str:
        """Return the query, with columns renamed by the statement's column list. Empty without a query.

        Raises:
            InvalidInputError: The list contains items that are not names.
        """
        if not self.query.tokens or not self.columns.tokens:
            return self.query.text
        columns = self.columns.part(1, len(self.columns) - 1).split()
        names = [column.tokens[0].name for column in columns if len(column) == 1]
        if len(names) < len(columns) or None in names:
            raise InvalidInputError(
                "types in the column list of CREATE TABLE AS are not supported",
                where=self.target.name,
                expected="only names",
                found=self.columns.text.strip(),
                remedy="cast the columns in the query",
            )
        listed = ", ".join(quoted(name) for name in names if name is not None)
        return f"SELECT * FROM (\n{self.query.text}) AS {quoted(self.target.name)}({listed})"  # noqa: S608

    def _empty(self, session: ChangeSession) -> pa.Table:
        """Return an empty table with the columns, as DuckDB parses them."""
        if self.like.tokens:
            return self._alike(session)
        # Words in parentheses belong to types and defaults.
        words = {self.columns.word(place) for place, depth in enumerate(self.columns.depths) if depth == 1}
        refused = next((word for word in _REFUSED if word in words), None)
        if refused is not None:
            raise UnsupportedError(
                f"{refused.upper()} is not supported in CREATE TABLE", where=self.target.name, remedy="leave it out"
            )
        refuse_sequences(self.columns.text, self.subject)
        try:
            with temporary_table(session, self.columns.text, self.target.name):
                return described_columns(session, SHADOW)
        except duckdb.Error as error:
            raise type(error)(str(error).partition("\n\nLINE ")[0]) from error  # the line is generated SQL

    def _alike(self, session: ChangeSession) -> pa.Table:
        """Return an empty table with the columns of the table after LIKE."""
        other = TableName.at(self.like, 0)
        if other is None or other.after < len(self.like):
            raise UnsupportedError(
                "this form of CREATE TABLE LIKE is not supported",
                where=self.like.text.strip(),
                expected="the name of a table",
            )
        if session.is_ours(other):
            schema = session.handle(other).current().schema
            return pa.Table.from_batches([], schema).rename_columns(shown_names(schema.names))
        described = described_columns(session, self.like.text)
        for field in described.schema:
            refuse_sequences((field.metadata or {}).get(DEFAULT.encode(), b"").decode(), self.subject)
        return described


def key_as_sql(dataset: LanceDataset, names: Sequence[str]) -> list[str]:
    """Return the primary key as a constraint of a native table. Empty without a key, or if the key is in a struct.

    Args:
        dataset: The Lance table.
        names: The names of its columns in the native table.
    """
    schema = dataset.handle.snapshot.schema
    shown = {field.id: name for field, name in zip(schema.fields, names, strict=True)}
    keys = [shown.get(field.id) for field in primary_key(schema)]
    columns = [quoted(name) for name in keys if name is not None]
    return [f"PRIMARY KEY ({', '.join(columns)})"] if columns and len(columns) == len(keys) else []


def described_columns(session: ChangeSession, table: str) -> pa.Table:
    """Return an empty table with the columns, nullability, keys and defaults of a native table."""
    described = session.relation(f"DESCRIBE {table}", {}).fetchall()
    with ExitStack() as opened:
        rows = session.relation(f"SELECT * FROM {table} LIMIT 0", {})  # noqa: S608
        schema = relation_reader(rows, 1, opened).schema
    fields = []
    for field, (_, _, null, key, default, _) in zip(schema, described, strict=True):
        metadata = {**(field.metadata or {}), **({_PRIMARY_KEY: "true"} if key == "PRI" else {})}
        if default is not None:
            metadata[DEFAULT] = default
        fields.append(field.with_nullable(null == "YES").with_metadata(metadata))
    return pa.Table.from_batches([], pa.schema(fields))


def _with_data(query: Clauses) -> tuple[Clauses, bool]:
    """Split WITH [NO] DATA from the end of a query. Returns whether to write its rows."""
    end = len(query)
    if query.says(end - 3, "with", "no", "data"):
        return query.part(0, end - 3), False
    return (query.part(0, end - 2) if query.says(end - 2, "with", "data") else query), True
