"""DROP TABLE, implemented by `LanceDataset.drop`.

    DROP TABLE [IF EXISTS] target, … [CASCADE | RESTRICT]

If a statement lists several tables, all are looked up first, then dropped one by one. DuckDB itself only accepts one
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import LanceStatement
from lance_duck.duck.databases.database_schema import DatabaseSchema
from lance_duck.duck.statement.clauses import TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import FormatError, NotFoundError, UnsupportedError


@dataclass(frozen=True)
class DropStatement(LanceStatement):
    """A DROP TABLE.

    Attributes:
        targets: The tables.
        may_miss: IF EXISTS.
    """

    targets: tuple[TableName, ...]
    may_miss: bool

    @classmethod
    def read(cls, head: StatementHead) -> DropStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        if not body.says(0, "drop", "table"):
            return None
        may_miss = body.says(2, "if", "exists")
        end = len(body) - (body.word(len(body) - 1) in ("cascade", "restrict"))  # both have no effect
        parts = body.part(4 if may_miss else 2, end).split()
        names = [(TableName.at(part, 0), len(part)) for part in parts]
        targets = tuple(name for name, size in names if name is not None and name.after == size)
        return cls(targets, may_miss) if targets and len(targets) == len(parts) else None

    @property
    def subject(self) -> str:
        """The tables, for errors."""
        return "table " + ", ".join(target.name for target in self.targets)

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether one of the tables is a Lance table."""
        return any(session.is_ours(target) for target in self.targets)

    def target_schemas(self, session: ChangeSession) -> Sequence[DatabaseSchema]:
        """Return the schemas of the tables, except tables given by path."""
        schemas = (session.schema_of(target) for target in self.targets)
        return [schema for schema in schemas if schema is not None]

    def run(self, session: ChangeSession) -> ChangeResult:
        """Drop the tables with all their versions."""
        session.explain_words("The table would be dropped. Nothing was dropped.")
        for target in [target for target in self.targets if self._is_there(session, target)]:
            handle, schema = session.handle(target), session.schema_of(target)
            if session.transaction is not None and schema is not None and not schema.is_given(target.name):
                session.transaction.drop_table(schema, target.name)
                continue
            session.refuse_in_transaction("DROP TABLE of a path, or of a table that was passed to connect(),")
            name = target.name if schema is None else schema.stored_name(target.name)
            if schema is None or schema.remove(name) or schema.folder is None:
                LanceDataset.drop(handle.uri, storage_options=dict(handle.storage_options or {}))
            else:
                schema.folder.drop(name, handle.uri)
        if session.block is None:
            session.catalog.refresh(force=True)
        return nothing()

    def _is_there(self, session: ChangeSession, target: TableName) -> bool:
        """Return whether a table exists.

        Raises:
            NotFoundError: The table does not exist, and IF EXISTS is not given.
            UnsupportedError: The table is a native table.
        """
        if target.path is not None:
            is_there = _exists(session, target.path)
        else:
            is_there = session.is_ours(target)
            if not is_there and self._is_of_duckdb(session, target):
                raise UnsupportedError(
                    "DROP TABLE cannot drop Lance and native tables together",
                    where=target.name,
                    remedy="write one DROP TABLE for each table",
                )
        if not is_there and not self.may_miss:
            raise NotFoundError("no such table", where=target.path) if target.path else session.unknown_table(target)
        return is_there

    def _is_of_duckdb(self, session: ChangeSession, target: TableName) -> bool:
        name = ".".join(map(quoted, target.parts))
        try:
            session.relation(f"SELECT * FROM {name} LIMIT 0", {})  # noqa: S608
        except duckdb.CatalogException:
            return False
        return True


def _exists(session: ChangeSession, path: str) -> bool:
    """Return whether there is a table at a path, readable or not."""
    try:
        return session.exists(path, session.catalog.options_for(path)) is not None
    except FormatError:
        return True
