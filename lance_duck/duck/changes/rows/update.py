"""UPDATE, committed by `verbs.rows.edits`.

    UPDATE [ONLY] t [[AS] a] SET c = e | (c, …) = (e, …) | (c, …) = e, … [FROM …] [WHERE …] [RETURNING …]

    →  SELECT a.<address>, CAST((e) AS type of c) AS c, … FROM t AS a[, …] [WHERE …]

DEFAULT is the column's stored DEFAULT, or NULL without one. If several FROM rows match a table row, the first one in
DuckDB's join order wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa

from lance_duck.duck.changes.result import ChangeResult
from lance_duck.duck.changes.rows.ambiguous import refuse_ambiguous
from lance_duck.duck.changes.rows.defaults import defaults_of, is_default, with_defaults
from lance_duck.duck.changes.rows.joined import JoinedClauses
from lance_duck.duck.changes.rows.precision import is_coarser, kept_exact
from lance_duck.duck.changes.rows.returning import result_of, returned_identifiers, returned_table
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.table_statement import TableStatement
from lance_duck.duck.changes.target import ADDRESS, TargetColumn, TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.errors import InvalidInputError
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.verbs.rows.edits import RowEdits

_CLAUSES: Final = ("set", "from", "where", "returning")
_BEFORE: Final = "__lance_before_"


@dataclass(frozen=True)
class SetItem:
    """A column and its new value.

    Attributes:
        column: Name of the column.
        value: The expression, or None for DEFAULT.
    """

    column: str
    value: Clauses | None


@dataclass(frozen=True)
class UpdateStatement(TableStatement):
    """An UPDATE. Clauses include their keyword. Missing clauses are empty.

    Attributes:
        ctes: WITH.
        alias: The table's alias.
        assignments: SET.
        items: The columns in SET, with their new values.
        others: FROM.
        where: WHERE.
        returning: RETURNING.
    """

    key_remedy: ClassVar[str] = "give each row another key, or DELETE the rows that have the keys first"

    ctes: Clauses
    alias: str
    assignments: Clauses
    items: tuple[SetItem, ...]
    others: Clauses
    where: Clauses
    returning: Clauses

    @classmethod
    def read(cls, head: StatementHead) -> UpdateStatement | None:
        """Read the clauses. Returns None for other statements."""
        target = TableName.at(head.body, 1 + head.body.says(1, "only"))  # ONLY has no effect
        if target is None:
            return None
        alias, after = target.alias(head.body, "set")
        clauses = head.body.cut(*_CLAUSES, start=after)
        if clauses is None:
            return None
        items = set_items(clauses[0].part(1))
        return None if items is None else cls(target, head.ctes, alias, clauses[0], items, *clauses[1:])

    def run(self, session: ChangeSession) -> ChangeResult:
        """Update the rows."""
        return session.change(self.target, lambda table: self.edits(session, table))

    def edits(self, session: ChangeSession, table: TargetTable) -> tuple[RowEdits, ChangeResult]:
        """Compute the new values of a version's rows."""
        parts = (self.assignments, self.others, self.where, self.returning)
        refuse_ambiguous(table, self.alias, parts)
        assigned = table.named([item.column for item in self.items])
        expressions_of = [item.value for item in self.items if item.value is not None]
        stored = defaults_of(table)
        reset = [c for item, c in zip(self.items, assigned, strict=True) if item.value is None and c.name in stored]
        clauses = JoinedClauses("UPDATE", self.target, self.alias, self.ctes, self.assignments, self.others, self.where)
        coarse = [column for column in assigned if is_coarser(column)]
        with clauses.texts(session, table, expressions_of) as (joined, expressions):
            remaining = iter(expressions)
            columns = [
                column.cast("NULL" if item.value is None else next(remaining))
                for item, column in zip(self.items, assigned, strict=True)
                if column not in reset
            ]
            shown = returned_table(table.unambiguous, self.returning, self.alias)
            if self.returning.tokens:
                rest = [column for column in shown.columns if column not in assigned]
                columns += [column.read(self._qualified(column.name)) for column in (*rest, *self._identifiers(table))]
            columns += [replace(c, name=_BEFORE + c.name).read(self._qualified(c.name)) for c in coarse]
            rows = joined.select(columns)
        addresses, rows = _first_of_each(rows)
        before = {column.name: rows.column(_BEFORE + column.name) for column in coarse}
        rows = rows.drop_columns([_BEFORE + name for name in before])
        rows = with_defaults(session, table, rows, len(addresses), reset)
        result = result_of(session, self.returning, shown, self.alias, rows, len(addresses))
        values = table.stored(rows.select([column.name for column in assigned]))
        return RowEdits(updated=addresses, values=kept_exact(table, addresses, values, before)), result

    def _identifiers(self, table: TargetTable) -> list[TargetColumn]:
        """Return the row identifiers in RETURNING that an update does not change."""
        if not table.dataset.handle.snapshot.has_stable_row_ids:
            return []
        return [column for column in returned_identifiers(table, self.returning) if column.name != ROW_ADDRESS]

    def _qualified(self, column: str) -> str:
        return f"{quoted(self.alias)}.{quoted(column)}"


def set_items(clause: Clauses) -> tuple[SetItem, ...] | None:
    """Read the assignments after SET. Returns None if the syntax is not supported.

    Raises:
        InvalidInputError: The number of columns in a tuple differs from the number of values.
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


def reset_columns(table: TargetTable, items: Sequence[SetItem] | None) -> set[str]:
    """Return the columns that SET assigns DEFAULT to. Without items that can be read, these are all columns."""
    if items is None:
        return {column.name for column in table.columns}
    names = {folded(item.column) for item in items if item.value is None}
    return {column.name for column in table.columns if folded(column.name) in names}


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
        parts = parts * count  # as in DuckDB, all columns get the single value
    if len(parts) != count:
        raise InvalidInputError(
            "the number of values in SET does not match the number of columns",
            expected=f"{count} values",
            found=len(parts),
        )
    for part in parts:
        yield None if is_default(part) else part


def _inside(clause: Clauses) -> Clauses:
    """Return a clause without its enclosing parentheses."""
    return clause.part(1, len(clause) - 1)


def _first_of_each(rows: pa.Table) -> tuple[np.ndarray, pa.Table]:
    """Return the distinct addresses in ascending order, and the first row with each address."""
    addresses = rows.column(ADDRESS).to_numpy()
    rows = rows.drop_columns([ADDRESS])
    if bool(np.all(addresses[1:] > addresses[:-1])):
        return addresses, rows
    kept, places = np.unique(addresses, return_index=True)
    return kept, rows.take(pa.array(places))
