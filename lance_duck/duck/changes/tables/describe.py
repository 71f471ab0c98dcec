"""DESCRIBE of a Lance table. DuckDB would describe the view with the table's name, without NOT NULL, keys and defaults.

DESCRIBE [TABLE] t | SHOW t
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from lance_duck.duck.changes.result import ChangeResult, listed
from lance_duck.duck.changes.rows.defaults import defaults_of
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.statement.clauses import TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import shown_names
from lance_duck.wire.schema_write import primary_key

_COLUMNS: Final = ("column_name", "column_type", "null", "key", "default", "extra")
_LISTS: Final = frozenset({"tables", "databases", "schemas", "variables", "all"})
"""Words after SHOW that are not table names."""


@dataclass(frozen=True)
class DescribeStatement(TableStatement):
    """A DESCRIBE of one table."""

    writes: ClassVar[bool] = False

    @classmethod
    def read(cls, head: StatementHead) -> DescribeStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        place = 1 + (head.verb == "describe" and body.word(1) == "table" and len(body) > 2)
        if head.verb == "show" and body.word(1) in _LISTS:
            return None
        target = TableName.at(body, place)
        return None if target is None or target.after < len(body) else cls(target)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Describe the columns, in order."""
        session.explain_words("The columns of the table would be described.")
        table = session.table(self.target, session.dataset(self.target))
        defaults = defaults_of(table)
        keys = {field.name: "PRI" for field in primary_key(table.dataset.handle.snapshot.schema)}
        names = shown_names([column.name for column in table.columns])
        rows = [
            (
                name,
                column.type,
                "YES" if column.nullable else "NO",
                "PRI" if column.name in keys else None,
                defaults.get(column.name),
                None,
            )
            for name, column in zip(names, table.columns, strict=True)
        ]
        return listed(dict.fromkeys(_COLUMNS, "VARCHAR"), rows)
