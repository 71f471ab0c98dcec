"""Rows of the target joined with other tables, for UPDATE and DELETE.

    SELECT a.<address>, value, … FROM t AS a[, FROM or USING] [WHERE …]

Clauses that use a whole row are evaluated on a twin, a native copy of the table. The twin does not have `rowid`,
`_rowid` and `_rowaddr`. If the clauses also use one of these, whole rows are expanded to their columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.duck.changes.rows.mentions import asks_identifier, may_be_refused, means_row, without_address
from lance_duck.duck.changes.rows.twin import fill, twin
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import ADDRESS, SOURCE, TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.tables.row_identifier_columns import DUCKDB_ROW_ID
from lance_duck.errors import InvalidInputError


@dataclass(frozen=True)
class JoinedClauses:
    """The clauses of an UPDATE or DELETE, each with its leading keyword. Missing clauses are empty.

    Attributes:
        verb: "UPDATE" or "DELETE FROM".
        target: The table.
        alias: The table's alias.
        ctes: WITH.
        assignments: SET.
        others: FROM or USING.
        where: WHERE.
    """

    verb: str
    target: TableName
    alias: str
    ctes: Clauses
    assignments: Clauses
    others: Clauses
    where: Clauses

    @contextmanager
    def texts(
        self, session: ChangeSession, table: TargetTable, values: Sequence[Clauses] = ()
    ) -> Iterator[tuple[JoinedRows, list[str]]]:
        """Pin all mentions of the table to one version.

        Args:
            session: The statement.
            table: The table at that version.
            values: Expressions of SET.

        Yields:
            An object that finds the rows, and the text of each expression.
        """
        refuse_same_name(self.ctes, self.target)
        parts = (self.ctes, self.assignments, self.others, self.where, *values)
        with session.pinned(table, self.target, *parts) as (texts, tables):
            yield JoinedRows(session, table, self, texts[:4], tables), texts[4:]


@dataclass(frozen=True)
class JoinedRows:
    """Finds the rows of an UPDATE or a DELETE.

    Attributes:
        session: The statement.
        table: The table at one version.
        clauses: The clauses.
        texts: The clauses in evaluation order: WITH, SET, FROM or USING, WHERE.
        tables: The tables that the clauses read.
    """

    session: ChangeSession
    table: TargetTable
    clauses: JoinedClauses
    texts: Sequence[str]
    tables: dict[str, Any]

    def select(self, columns: Sequence[str]) -> pa.Table:
        """Return columns of the rows, with their addresses.

        Args:
            columns: SQL expressions to select in addition to the address.
        """
        expressions = (self.clauses.assignments, self.clauses.where)
        parts = (*expressions, self.clauses.others)
        if means_row(self.table, self.clauses.alias, parts):
            if asks_identifier(self.table, (*parts, *map(Clauses.of, columns))):
                return self._with_rows_spelled().select([self._spelled(column) for column in columns])
            with twin(self.session, self.table) as own:
                self._bind(own)
                return self._of_twin(own, columns)
        if may_be_refused(expressions, self.clauses.others):
            with twin(self.session, self.table, identified=True) as own:
                self._bind(own)
        try:
            return self.session.arrow(self._query(quoted(SOURCE), f'"{ADDRESS}"', columns), self.tables)
        except duckdb.BinderException:
            self._refuse()
            raise

    def _refuse(self) -> None:
        """Raise DuckDB's error for the original statement, if DuckDB rejects it as well."""
        with suppress(duckdb.TransactionException), twin(self.session, self.table, identified=True) as own:
            self._bind(own)

    def _bind(self, own: str) -> None:
        ctes, assignments, others, where = self.texts
        alias = quoted(self.clauses.alias)
        self.session.bind(f"{ctes}{self.clauses.verb} {own} AS {alias} {assignments}{others}{where}", self.tables)

    def _with_rows_spelled(self) -> JoinedRows:
        """Return a copy whose clauses have whole rows expanded to their columns."""
        clauses = self.clauses
        assignments, others, where = (
            Clauses.of(self._spelled(part.text)) for part in (clauses.assignments, clauses.others, clauses.where)
        )
        spelled = replace(clauses, assignments=assignments, others=others, where=where)
        return replace(self, clauses=spelled, texts=[self._spelled(text) for text in self.texts])

    def _spelled(self, text: str) -> str:
        return without_address(self.table, self.clauses.alias, text)

    def _of_twin(self, own: str, columns: Sequence[str]) -> pa.Table:
        table, number = self.table, DUCKDB_ROW_ID
        rows = self.session.arrow(f"SELECT {table.read_all(SOURCE)} FROM {SOURCE}", self.tables)  # noqa: S608
        fill(self.session, table, own, table.stored(rows))
        first = self.session.arrow(f"SELECT min({number}) FROM {own}", {}).column(0)[0].as_py()  # noqa: S608
        changed = self.session.arrow(self._query(own, number, columns), self.tables)
        places = pc.subtract(changed.column(0), first or 0)  # `rowid` does not start at 0 in a transaction
        return changed.drop_columns([number]).append_column(ADDRESS, rows.column(ADDRESS).take(places))

    def _query(self, source: str, address: str, columns: Sequence[str]) -> str:
        ctes, _, others, where = self.texts
        alias = quoted(self.clauses.alias)
        selected = ", ".join([f"{alias}.{address}", *columns])
        after = others[len(self.clauses.others.text_at(0)) :] if others else ""
        tables = f"{source} AS {alias}" + (f",\n{after}" if after else "\n")
        return f"{ctes}SELECT {selected} FROM {tables}{where}"  # noqa: S608


def refuse_same_name(ctes: Clauses, target: TableName) -> None:
    """Reject a common table expression with the target's name. DuckDB rejects it as well, because it cannot be changed.

    Raises:
        InvalidInputError: A common table expression has the target's name.
    """
    if target.path is not None or len(target.parts) > 1:
        return
    for name in names_of_ctes(ctes):
        if folded(name) == folded(target.name):
            raise InvalidInputError(
                "a common table expression cannot be changed",
                where=target.name,
                found="a common table expression with the name of the table",
                remedy="rename the common table expression",
            )


def names_of_ctes(ctes: Clauses) -> Iterator[str]:
    """Yield the names of the common table expressions."""
    start = 1 + (ctes.word(1) == "recursive")
    for part in ctes.part(start).split():
        name = part.tokens[0].name
        if name is not None:
            yield name
