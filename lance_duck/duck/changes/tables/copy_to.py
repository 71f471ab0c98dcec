"""COPY … TO, implemented by `write_dataset`.

COPY (query) | t [(c, …)] TO 'x.lance' [[WITH] (FORMAT lance, MODE 'create' | 'append' | 'overwrite', …)]

MODE defaults to `overwrite`, like DuckDB's COPY. `error_if_exists` is a synonym for `create`. WRITE_EMPTY_FILE defaults
to true. If false, an empty result does not create a table. Other options are arguments of `write_dataset`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from lance_duck.arguments import unknown_value
from lance_duck.duck.changes.options import Options
from lance_duck.duck.changes.result import ChangeResult, counted
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.tables.new_place import check_place
from lance_duck.duck.changes.tables.write_options import WRITE_OPTIONS, write_arguments, write_query
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import literal
from lance_duck.errors import AlreadyExistsError, InvalidInputError, UnsupportedError

_FORMAT: Final = "lance"
_MODES: Final = {"create": "create", "error_if_exists": "create", "append": "append", "overwrite": "overwrite"}
"""Modes of `write_dataset`, by their names in COPY."""
_OPTIONS: Final = ("format", "mode", "write_empty_file", *WRITE_OPTIONS)


@dataclass(frozen=True)
class CopyStatement(TableStatement):
    """A COPY … TO a Lance table.

    Attributes:
        source: A query in parentheses, or a table with an optional column list.
        options: The options, including parentheses. May be empty.
    """

    key_remedy: ClassVar[str] = "remove the duplicates from the query, or add the rows with INSERT OR IGNORE INTO …"

    source: Clauses
    options: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> CopyStatement | None:
        """Read the clauses. Returns None for other statements."""
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
        values = self._values(session)
        mode = self._mode(values)
        path = self.target.path
        storage = session.catalog.options_for(path)
        check_place(path)
        query = self._query()
        session.explain_query(query, {})
        if not values.get("write_empty_file", True) and not _has_rows(session, query):
            return counted(0)
        before = session.exists(path, storage) if mode == "append" else None
        count = 0 if before is None else before.count_rows()
        arguments = {**write_arguments(values), "mode": mode, "storage_options": storage}
        try:
            name = self.target.name if session.checks_keys else None
            table = write_query(session, query, path, name, **arguments)
        except AlreadyExistsError as error:
            remedy = "MODE 'append' adds rows, and MODE 'overwrite', the default, replaces them"
            raise AlreadyExistsError("the table exists", where=self.target.path, remedy=remedy) from error
        session.catalog.refresh(force=True)
        return counted(table.count_rows() - count)

    def _query(self) -> str:
        if self.source.text_at(0) == "(":
            return f"SELECT * FROM {self.source.text}"  # noqa: S608
        name = TableName.at(self.source, 0)
        assert name is not None
        columns = self.source.part(name.after + 1, len(self.source) - 1).text.strip()
        return f"SELECT {columns or '*'} FROM {self.source.part(0, name.after).text}"  # noqa: S608

    def _values(self, session: ChangeSession) -> dict[str, Any]:
        """Return the values of the options."""
        if self.options.tokens and self.options.text_at(0) != "(":
            raise UnsupportedError(
                "COPY to a Lance table does not support these options",
                where=self.options.text.strip(),
                expected="(FORMAT lance, MODE …) or no options",
            )
        values = Options.of(self.options, "COPY to a Lance table").values(session, _OPTIONS)
        format_ = str(values.get("format", _FORMAT)).lower()
        if format_ != _FORMAT:
            raise InvalidInputError(
                f"FORMAT {format_} cannot be written to a path that ends in .lance",
                where=literal(str(self.target.path)),
                remedy="use FORMAT lance, or a path with another ending",
            )
        return values

    def _mode(self, values: Mapping[str, Any]) -> str:
        mode = str(values.get("mode", "overwrite")).lower()
        if mode not in _MODES:
            raise unknown_value("MODE of COPY", mode, _MODES)
        return _MODES[mode]


def _has_rows(session: ChangeSession, query: str) -> bool:
    return bool(session.relation(f"SELECT 1 FROM (\n{query}) LIMIT 1", {}).fetchall())  # noqa: S608
