"""CREATE TABLE, DROP TABLE and COPY … TO, which end in `write_dataset` and `LanceDataset.drop`.

    CREATE [OR REPLACE] TABLE [IF NOT EXISTS] target (column …) | AS query
    DROP TABLE [IF EXISTS] target
    COPY (query) | t [(c, …)] TO 'x.lance' [(FORMAT lance, MODE 'create' | 'append' | 'overwrite')]

A target is a path that ends in `.lance`, or a name in the database of our names, such as lance.t, which lies in the
folder that is connected. Other names are of tables of DuckDB's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.head import StatementHead
from lance_duck.duck.changes.result import ChangeResult, counted, nothing
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.shadow import SHADOW
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.write_dataset import write_dataset

_REFUSED: Final = ("check", "references", "foreign", "generated", "default", "unique", "collate", "as")
_PRIMARY_KEY: Final = "lance-schema:unenforced-primary-key"
_NOTHING: Final = "SELECT 1 WHERE false"
_MODES: Final = ("create", "append", "overwrite")


@dataclass(frozen=True)
class CreateStatement:
    """A CREATE TABLE.

    Attributes:
        target: The table.
        replaces: OR REPLACE.
        may_exist: IF NOT EXISTS.
        columns: What stands in parentheses, with them; or nothing.
        query: What follows AS, or nothing.
    """

    target: TableName
    replaces: bool
    may_exist: bool
    columns: Clauses
    query: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CreateStatement | None:
        """Read the clauses; None if they are not those of a CREATE TABLE."""
        body = head.body
        place = 3 if body.says(1, "or", "replace") else 1
        may_exist = body.says(place + 1, "if", "not", "exists")
        target = TableName.at(body, place + (4 if may_exist else 1)) if body.word(place) == "table" else None
        if target is None:
            return None
        after = target.after
        end = body.closer(after) + 1 if body.text_at(after) == "(" else after
        query = body.part(end + 1) if body.word(end) == "as" else body.part(len(body))
        if (end == after and not query.tokens) or (end < len(body) and not query.tokens):
            return None
        return cls(target, place == 3, may_exist, body.part(after, end), query)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Create the table."""
        session.explain_query(self.query.text or _NOTHING, {})
        uri, options = session.place_of(self.target)
        if self.may_exist and session.exists(uri, options):
            return counted(0) if self.query.tokens else nothing("Count", "BIGINT")
        mode = "overwrite" if self.replaces else "create"
        if not self.query.tokens:
            write_dataset(self._empty(session), uri, mode=mode, storage_options=options)
            session.catalog.refresh(force=True)
            return nothing("Count", "BIGINT")
        if self.columns.tokens:
            raise UnsupportedError("CREATE TABLE with names of columns before AS", remedy="name them in the query")
        rows = session.relation(self.query.text, {})
        table = write_dataset(rows, uri, mode=mode, storage_options=options)
        session.catalog.refresh(force=True)
        return counted(table.count_rows())

    def _empty(self, session: ChangeSession) -> pa.Table:
        """Return a table without rows that has the columns, as DuckDB understands them."""
        words = {token.word for token in self.columns.tokens}
        refused = next((word for word in _REFUSED if word in words), None)
        if refused is not None:
            raise UnsupportedError(f"{refused.upper()} in CREATE TABLE", where=self.target.name, remedy="leave it out")
        session.run(f"CREATE OR REPLACE TEMP TABLE {SHADOW} {self.columns.text}")
        try:
            described = session.relation(f"DESCRIBE {SHADOW}", {}).fetchall()
            rows = session.arrow(f"SELECT * FROM {SHADOW}", {})  # noqa: S608
        finally:
            session.run(f"DROP TABLE IF EXISTS temp.main.{SHADOW}")
        fields = [
            field.with_nullable(row[2] == "YES").with_metadata({_PRIMARY_KEY: "true"} if row[3] == "PRI" else None)
            for field, row in zip(rows.schema, described, strict=True)
        ]
        return pa.schema(fields).empty_table()


@dataclass(frozen=True)
class DropStatement:
    """A DROP TABLE."""

    target: TableName

    @classmethod
    def read(cls, head: StatementHead) -> DropStatement | None:
        """Read the clauses; None if they are not those of a DROP TABLE."""
        body = head.body
        place = 4 if body.says(2, "if", "exists") else 2
        target = TableName.at(body, place) if body.says(0, "drop", "table") else None
        if target is None:
            return None
        end = target.after + (body.word(target.after) in ("cascade", "restrict"))  # nothing depends on a Lance table
        return None if end < len(body) else cls(target)

    def run(self, session: ChangeSession) -> ChangeResult:
        """Drop the table with all its versions."""
        session.explain_query(_NOTHING, {})
        handle = session.handle(self.target)
        session.refuse_in_transaction("DROP TABLE")
        LanceDataset.drop(handle.uri, storage_options=dict(handle.storage_options or {}))
        session.catalog.remove(self.target.name)
        session.catalog.refresh(force=True)
        return nothing()


@dataclass(frozen=True)
class CopyStatement:
    """A COPY … TO a Lance table.

    Attributes:
        target: The table.
        source: A query in parentheses, or a table, perhaps with columns.
        options: What stands in parentheses at the end, with them; or nothing.
    """

    target: TableName
    source: Clauses
    options: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CopyStatement | None:
        """Read the clauses; None if they are not those of a COPY to a Lance table."""
        body = head.body
        to = body.find("to")
        target = TableName.at(body, to + 1) if to > 0 else None
        if target is None or target.path is None:
            return None
        after = target.after + (body.word(target.after) == "with")
        return cls(target, body.part(1, to), body.part(after))

    def run(self, session: ChangeSession) -> ChangeResult:
        """Write the rows."""
        assert self.target.path is not None
        session.refuse_in_transaction("COPY")
        mode = self._mode()
        session.explain_query(self._query(), {})
        rows = session.relation(self._query(), {})
        before = session.exists(self.target.path, None)
        count = before.count_rows() if before is not None and mode == "append" else 0
        table = write_dataset(rows, self.target.path, mode=mode)
        session.catalog.refresh(force=True)
        return counted(table.count_rows() - count)

    def _query(self) -> str:
        if self.source.text_at(0) == "(":
            return f"SELECT * FROM {self.source.text}"  # noqa: S608
        name = TableName.at(self.source, 0)
        assert name is not None
        columns = self.source.part(name.after + 1, len(self.source) - 1).text.strip()
        return f"SELECT {columns or '*'} FROM {self.source.part(0, name.after).text}"  # noqa: S608

    def _mode(self) -> str:
        mode = "overwrite"
        if self.options.tokens and (self.options.text_at(0) != "(" or self.options.closer(0) != len(self.options) - 1):
            raise UnsupportedError(
                "COPY to a Lance table", where=self.options.text.strip(), expected="(FORMAT lance, MODE …) or nothing"
            )
        inside = self.options.part(1, len(self.options) - 1) if self.options.tokens else self.options
        for option in inside.split():
            word, value = option.word(0), option.part(1).text.strip().strip("'").lower()
            if word == "format" and value != "lance":
                raise InvalidInputError(
                    f"COPY to a path that ends in .lance with FORMAT {value}",
                    where=literal(str(self.target.path)),
                    remedy="FORMAT lance, or a path with another ending",
                )
            if word == "mode":
                mode = value
            elif word != "format":
                raise UnsupportedError(
                    f"option {quoted(option.text.strip())} of COPY to a Lance table", expected="FORMAT and MODE"
                )
        if mode not in _MODES:
            raise InvalidInputError("MODE of COPY", expected=", ".join(_MODES), found=mode)
        return mode
