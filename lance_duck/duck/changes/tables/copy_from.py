"""COPY … FROM a file, committed as an append by `write_dataset`.

    COPY t [(c, …)] FROM 'file' [[WITH] (option [value], …)]

DuckDB runs the statement on an empty temporary table with the same columns. This supports all of DuckDB's file formats,
with their options and errors. `copy_lance` reads Lance tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from lance_duck import lazy
from lance_duck.duck.changes.result import ChangeResult, counted
from lance_duck.duck.changes.rows.defaults import default_values, left_out
from lance_duck.duck.changes.rows.shadow import SHADOW, columns_as_sql, temporary_table
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.target import TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.wire.schema import EMBEDDING_FUNCTIONS

if TYPE_CHECKING:
    from lance_duck import embedders
else:
    embedders = lazy.modules(globals(), "lance_duck", "embedders")


@dataclass(frozen=True)
class CopyFromStatement(TableStatement):
    """A COPY … FROM.

    Attributes:
        names: The named columns. Defaults to all columns.
        source: FROM and the rest of the statement.
    """

    key_remedy: ClassVar[str] = "remove the duplicates, or load the file with INSERT OR IGNORE INTO … FROM 'file'"

    names: tuple[str, ...] | None
    source: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CopyFromStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        target = TableName.at(body, 1)
        if target is None:
            return None
        after, names = target.after, None
        if body.text_at(after) == "(":
            close = body.closer(after)
            parts = body.part(after + 1, close).split()
            names = tuple(part.tokens[0].name or "" for part in parts if part.tokens)
            after = close + 1
        return cls(target, names, body.part(after)) if body.word(after) == "from" and after + 1 < len(body) else None

    def run(self, session: ChangeSession) -> ChangeResult:
        """Append the rows."""
        return counted(session.append(self.target, lambda table: self._rows(session, table)))

    @contextmanager
    def _rows(self, session: ChangeSession, table: TargetTable) -> Iterator[pa.RecordBatchReader]:
        names = "" if self.names is None else f" ({', '.join(map(quoted, self.names))})"
        sql = f"COPY {SHADOW}{names} {self.source.text}"
        named = {folded(name) for name in self.names or ()}
        given = [column for column in table.columns if self.names is None or folded(column.name) in named]
        defaults = default_values(session, table, {column.name for column in left_out(table, given)})
        with temporary_table(session, columns_as_sql(table, defaults=defaults), table.name):
            session.explain_query(sql, {})
            session.affected(sql, {})
            schema = table.dataset.handle.snapshot.schema
            is_plain = session.explain or EMBEDDING_FUNCTIONS not in schema.metadata
            read = [column for column in table.columns if is_plain or column in given or column.name in defaults]
            values = ", ".join(column.cast(column.quoted) for column in read)
            with session.stream(f"SELECT {values} FROM {SHADOW}", {}, table) as reader:  # noqa: S608
                yield reader if is_plain else embedders.with_embeddings(reader, schema)
