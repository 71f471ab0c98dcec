"""UPDATE, which ends in `verbs.rows.edits`.

    UPDATE t [[AS] a] SET c = e | (c, …) = (e, …) | (c, …) = e, … [FROM …] [WHERE …] [RETURNING …]

    →  SELECT a._rowaddr, CAST((e) AS type of c) AS c, … FROM t AS a[, …] [WHERE …]

DEFAULT is a null. Of several rows of FROM that one row of the table matches, the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from lance_duck.duck.changes.head import StatementHead
from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.returning import result_of
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import TargetTable, joined_query
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import InvalidInputError
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.verbs.rows.edits import RowEdits

_CLAUSES: Final = ("set", "from", "where", "returning")


@dataclass(frozen=True)
class SetItem:
    """A column and its new value.

    Attributes:
        column: Name of the column.
        value: The expression; None for DEFAULT.
    """

    column: str
    value: Clauses | None


@dataclass(frozen=True)
class UpdateStatement:
    """An UPDATE; each clause begins with its word, and is empty where there is none.

    Attributes:
        ctes: WITH.
        target: The table.
        alias: What the statement calls it.
        items: What SET says.
        others: FROM.
        where: WHERE.
        returning: RETURNING.
    """

    ctes: Clauses
    target: TableName
    alias: str
    items: tuple[SetItem, ...]
    others: Clauses
    where: Clauses
    returning: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> UpdateStatement | None:
        """Read the clauses; None if they are not those of an UPDATE."""
        target = TableName.at(head.body, 1)
        if target is None:
            return None
        alias, after = target.alias(head.body, "set")
        clauses = head.body.cut(*_CLAUSES, start=after)
        if clauses is None:
            return None
        items = set_items(clauses[0].part(1))
        return None if items is None else cls(head.ctes, target, alias, items, *clauses[1:])

    def run(self, session: ChangeSession) -> ChangeResult:
        """Give the rows their new values."""
        return session.change(self.target, lambda table: self.edits(session, table))

    def edits(self, session: ChangeSession, table: TargetTable) -> tuple[RowEdits, ChangeResult]:
        """Compute the new values of rows of a version."""
        assigned = table.named([item.column for item in self.items])
        values = [item.value for item in self.items if item.value is not None]
        with session.pinned(table, self.target, self.ctes, self.others.part(1), self.where, *values) as (texts, tables):
            ctes, others, where, *expressions = texts
            given = iter(expressions)
            columns = [
                column.cast("NULL" if item.value is None else next(given))
                for item, column in zip(self.items, assigned, strict=True)
            ]
            if self.returning.tokens:
                rest = [column for column in table.columns if column not in assigned]
                columns += [f"{quoted(self.alias)}.{column.quoted}" for column in rest]
            rows = session.arrow(joined_query(ctes, columns, self.alias, others, where), tables)
        addresses, rows = _last_of_each(rows)
        result = result_of(session, self.returning, table, self.alias, rows, len(addresses))
        names = [column.name for column in assigned]
        return RowEdits(updated=addresses, values=table.stored(rows.select(names))), result


def set_items(clause: Clauses) -> tuple[SetItem, ...] | None:
    """Read what follows SET; None if it cannot be read.

    Raises:
        InvalidInputError: A tuple has more or fewer columns than values.
    """
    items: list[SetItem] = []
    for part in clause.split():
        equals = next((i for i, token in enumerate(part.tokens) if token.text == "=" and part.depths[i] == 0), -1)
        if equals <= 0 or equals + 1 >= len(part):
            return None
        left, right = part.part(0, equals), part.part(equals + 1)
        names = _columns(left)
        if names is None:
            return None
        items += [SetItem(*pair) for pair in zip(names, _values(left, right, len(names)), strict=True)]
    return tuple(items) or None


def _columns(left: Clauses) -> list[str] | None:
    """Return the columns on the left of `=`."""
    tokens = left.tokens
    if left.text_at(0) != "(":
        name = tokens[0].name
        return [name] if name is not None and len(left) == 1 else None
    names = [part.tokens[0].name for part in _inside(left).split() if len(part) == 1]
    known = [name for name in names if name is not None]
    return known if len(known) == len(_inside(left).split()) else None


def _values(left: Clauses, right: Clauses, count: int) -> Iterator[Clauses | None]:
    """Yield the values on the right of `=`, one for each column."""
    row = right.part(1) if right.word(0) == "row" and right.text_at(1) == "(" else right
    is_tuple = left.text_at(0) == "(" and row.text_at(0) == "(" and row.closer(0) == len(row) - 1
    parts = _inside(row).split() if is_tuple and _inside(row).word(0) not in ("select", "from", "with") else [right]
    if len(parts) == 1 and count > 1:
        parts = parts * count  # one value for all, as DuckDB has it
    if len(parts) != count:
        raise InvalidInputError("columns and values of SET", expected=f"{count} values", found=len(parts))
    for part in parts:
        yield None if len(part) == 1 and part.word(0) == "default" else part


def _inside(clause: Clauses) -> Clauses:
    """Return what stands between the parentheses that a clause begins and ends with."""
    return clause.part(1, len(clause) - 1)


def _last_of_each(rows: pa.Table) -> tuple[np.ndarray, pa.Table]:
    """Return addresses, ascending, and the last row that has each."""
    addresses = rows.column(ROW_ADDRESS).to_numpy()
    rows = rows.drop_columns([ROW_ADDRESS])
    if bool(np.all(addresses[1:] > addresses[:-1])):
        return addresses, rows
    kept, places = np.unique(addresses[::-1], return_index=True)
    return kept, rows.take(pa.array(len(addresses) - 1 - places))
