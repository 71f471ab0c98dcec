"""COMMENT ON, implemented by `update_metadata` and `update_field_metadata`.

    COMMENT ON TABLE t IS 'text' | NULL
    COMMENT ON COLUMN t.c[.field …] IS 'text' | NULL

Comments are stored in the metadata of the table and its fields under the key "comment", as in DuckDB's `lance`
extension. `duckdb_views()` and `duckdb_columns()` return them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lance_duck.duck.changes.result import ChangeResult, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement, dataset_to_alter, show_columns
from lance_duck.duck.changes.tables.column_path import ColumnPath, lance_path
from lance_duck.duck.databases.database_schema import COMMENT, DatabaseSchema
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.errors import InvalidInputError


@dataclass(frozen=True)
class CommentStatement(TableStatement):
    """A COMMENT ON.

    Attributes:
        is_column: Whether the name ends in a column path.
        value: The value after IS.
    """

    is_column: bool
    value: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CommentStatement | None:
        """Read the clauses. Returns None for other statements."""
        body = head.body
        kind = body.word(2) if body.says(0, "comment", "on") else None
        target = TableName.at(body, 3) if kind in ("table", "column") else None
        if target is None:
            return None
        after = target.after
        if target.path is not None and kind == "column" and body.text_at(after) == ".":
            fields = TableName.at(body, after + 1)
            if fields is None:
                return None
            target, after = replace(target, parts=target.parts + fields.parts), fields.after
        if body.word(after) != "is" or (kind == "column" and len(target.parts) < 2):
            return None
        return cls(target, kind == "column", body.part(after + 1))

    @property
    def subject(self) -> str:
        """The table or column, for errors."""
        return f"{'column' if self.is_column else 'table'} {'.'.join(self.target.parts)}"

    def concerns(self, session: ChangeSession) -> bool:
        """Return whether the table is a Lance table."""
        return self._table(session) is not None

    def target_schemas(self, session: ChangeSession) -> tuple[DatabaseSchema, ...]:
        """Return the schema of the table. Empty if the table is given by path."""
        table = self._table(session)
        schema = None if table is None else session.schema_of(table)
        return () if schema is None else (schema,)

    def _table(self, session: ChangeSession) -> TableName | None:
        """Return the table name: the longest prefix of the name that refers to a Lance table."""
        parts = self.target.parts
        if self.target.path is not None:
            return replace(self.target, parts=parts[:1])
        sizes = range(min(3, len(parts) - 1), 0, -1) if self.is_column else [len(parts)]
        names = (replace(self.target, parts=parts[:size]) for size in sizes)
        return next((name for name in names if session.is_ours(name)), None)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Store the comment."""
        session.explain_words("The comment would be stored. Nothing was written.")
        table = self._table(session)
        assert table is not None
        text = self._text(session)
        dataset = dataset_to_alter(session, table)
        if self.is_column:
            path = ColumnPath(self.target.parts[len(table.parts) :], self.target.after)
            schema = dataset.handle.snapshot.schema
            field = path.field(schema, f"table {table.name}")
            dataset.update_field_metadata({lance_path(schema, field): {COMMENT: text}})
        else:
            dataset.update_metadata({COMMENT: text})
        show_columns(session, table)
        return nothing()

    def _text(self, session: ChangeSession) -> str | None:
        value = self.value
        if len(value) != 1 or not (value.word(0) == "null" or value.text_at(0)[:1] in ("'", "$")):
            raise InvalidInputError(
                "COMMENT ON", where=self.subject, expected="a string or NULL", found=value.text.strip() or "nothing"
            )
        (text,) = session.relation(f"SELECT {value.text}", {}).fetchall()[0]
        return None if text is None else str(text)
