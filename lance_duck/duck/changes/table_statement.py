"""Base classes of the statements that change tables, and the change that a text requests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import dataset_of
from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.errors import DataMismatchError, DuplicateKeyError


class LanceStatement(ABC):
    """A statement run by this package instead of DuckDB.

    Attributes:
        parses: Whether DuckDB can parse the statement, if it refers to the table by name instead of path.
        key_remedy: Remedy for a repeated primary key.
    """

    parses: ClassVar[bool] = True
    key_remedy: ClassVar[str] = "remove the duplicates"

    @property
    def writes(self) -> bool:
        """Whether the statement changes a table or database. Read-only connections reject such statements."""
        return True

    def changes_lance(self, session: ChangeSession) -> bool:
        """Return whether the statement changes a Lance table or database, if that depends on the session's names."""
        return self.writes

    @property
    def is_only_ours(self) -> bool:
        """Whether the statement is not in DuckDB's grammar. Its table must then be a Lance table."""
        return False

    @property
    @abstractmethod
    def subject(self) -> str:
        """The object of the statement, for errors."""

    @abstractmethod
    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the statement is about Lance tables. DuckDB runs all other statements."""

    def target_schemas(self, session: ChangeSession) -> Sequence[DatabaseSchema]:
        """Return the schemas of Lance tables that the statement changes."""
        return ()

    @abstractmethod
    def run(self, session: ChangeSession) -> ChangeResult:
        """Run the statement, and return its result."""


@dataclass(frozen=True)
class TableStatement(LanceStatement):
    """A statement about one table.

    Attributes:
        target: The table.
    """

    target: TableName

    @property
    def subject(self) -> str:
        """The table, for errors."""
        return f"table {self.target.name}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the table is a Lance table."""
        return session.is_ours(self.target)

    def target_schemas(self, session: ChangeSession) -> Sequence[DatabaseSchema]:
        """Return the schema of the table. Empty if the table is given by path."""
        schema = session.schema_of(self.target)
        return () if schema is None else (schema,)


@dataclass(frozen=True)
class Change:
    """A change requested by a statement.

    Attributes:
        statement: Its clauses.
        sql: Its text, with numbered placeholders.
        explain: The words of an EXPLAIN. Empty without one.
    """

    statement: LanceStatement
    sql: str
    explain: str

    @property
    def table(self) -> str:
        """Unqualified name of the changed table. Empty if the statement does not change a table."""
        return self.statement.target.name if isinstance(self.statement, TableStatement) else ""


def dataset_to_alter(session: ChangeSession, name: TableName) -> LanceDataset:
    """Return a dataset whose changes of columns and metadata are committed, or belong to the open transaction."""
    handle = session.handle(name)
    block = session.block_of(handle)
    if block is None:
        return handle.current()
    return dataset_of(block.changes_of(handle, name.name).collecting())


def show_columns(session: ChangeSession, name: TableName) -> None:
    """Update the columns and comments that DuckDB shows for a table."""
    schema = session.schema_of(name)
    if session.block_of(session.handle(name)) is not None:
        assert session.block is not None
        session.block.show_columns(session.handle(name))
    elif schema is not None and session.transaction is not None:
        session.transaction.show_again(schema, name.name)
    elif schema is not None:
        schema.show_columns(name.name)


@contextmanager
def rejected_rows(table: str, key_remedy: str) -> Iterator[None]:
    """Complete the errors about missing values and repeated keys.

    Args:
        table: Name of the table. Empty if the errors name it.
        key_remedy: Remedy for a repeated primary key.
    """
    try:
        yield
    except DuplicateKeyError as error:
        error.remedy = key_remedy
        raise
    except DataMismatchError as error:
        if table and "null" in error.what:
            error.where = f"{error.where}, table {table}"
        raise


def name_after_if_exists(body: Clauses, place: int) -> TableName | None:
    """Return the name at a token, after an optional IF EXISTS. Returns None if the token is not a name."""
    return TableName.at(body, place + 2 if body.says(place, "if", "exists") else place)
