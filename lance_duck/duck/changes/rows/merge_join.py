"""MERGE that sets columns to those of the source: one join finds the rows and their new values.

    MERGE INTO t USING s ON … | USING (c, …)
        [WHEN MATCHED THEN UPDATE SET c = s.d, …] [WHEN NOT MATCHED THEN INSERT (c, …) VALUES (s.d, …)]

    →  SELECT t.<address>, CAST(s.d AS type of c) AS u0, …, CAST(s.d AS type of c) AS i0, … FROM s [LEFT] JOIN t …

Rows of the source with an address are updates, the others are inserted. Whatever else a MERGE may say goes the way of
`merge`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from lance_duck.duck.changes.rows.precision import is_coarser
from lance_duck.duck.changes.rows.update import set_items
from lance_duck.duck.changes.target import ADDRESS, TargetColumn, TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import folded, quoted

Pair = tuple[TargetColumn, str]
"""A column of the table, and the column of the source that it is set to."""

_FORMS: Final = (("matched",), ("not", "matched"), ("not", "matched", "by", "target"))


@dataclass(frozen=True)
class MergeJoin:
    """What becomes of rows that match, and of those that do not.

    Attributes:
        source: What the statement calls the source.
        updated: The columns that rows of the table get, with the column of the source for each; None: they stay.
        inserted: Those that new rows have; None: none are inserted.
    """

    source: str
    updated: Sequence[Pair] | None
    inserted: Sequence[Pair] | None

    @classmethod
    def of(cls, table: TargetTable, source: str, columns: Sequence[str], actions: Sequence[str]) -> MergeJoin | None:
        """Return what the clauses of a MERGE say, where they say no more than that.

        Args:
            table: The table.
            source: What the statement calls the source.
            columns: Those of the source.
            actions: The text of each WHEN, with lists of columns.
        """
        if any(not column.nullable or is_coarser(column) or column.is_duration for column in table.columns):
            return None
        updated, inserted = None, None
        for text in actions:
            action = Clauses.of(text)
            then = action.find("then")
            words = tuple(action.word(place) for place in range(1, then))
            is_matched = words == _FORMS[0]
            if words not in _FORMS or (updated if is_matched else inserted) is not None:
                return None
            read = _updated if is_matched else _inserted
            pairs = read(table, action.part(then + 1), source, columns)
            if pairs is None:
                return None
            updated, inserted = (pairs, inserted) if is_matched else (updated, pairs)
        return cls(source, updated, inserted)

    def query(self, source: str, target: str, alias: str, join: str) -> str:
        """Return the join as SQL.

        Args:
            source: The source.
            target: The table with its addresses.
            alias: What the statement calls it.
            join: ON or USING.
        """
        name, address = quoted(self.source), f'{quoted(alias)}."{ADDRESS}"'
        values = []
        for title, (column, of) in self._titles.items():
            value = column.value(f"{name}.{quoted(of)}")
            if title[0] != "v":  # what is only for rows of the other kind need not fit its column
                value = f"CASE WHEN {address} IS {'NOT ' if title[0] == 'u' else ''}NULL THEN {value} END"
            values.append(f"{value} AS {title}")
        selected = ", ".join([f'{address} AS "{ADDRESS}"', *values])
        kind = "JOIN" if self.inserted is None else "LEFT JOIN"
        return f"SELECT {selected} FROM {source} AS {name} {kind} {target} AS {quoted(alias)} {join}"  # noqa: S608

    @property
    def _titles(self) -> dict[str, Pair]:
        """What is selected, by title: v… for both kinds of rows, u… for those that match, i… for new ones."""
        updated, inserted = self.updated or (), self.inserted or ()
        titles = {f"v{place}": pair for place, pair in enumerate(updated) if pair in inserted}
        titles |= {f"u{place}": pair for place, pair in enumerate(updated) if pair not in inserted}
        return titles | {f"i{place}": pair for place, pair in enumerate(inserted) if pair not in updated}

    def rows(self, joined: pa.Table) -> tuple[np.ndarray, pa.Table, pa.Table] | None:
        """Return addresses, ascending, the new values there, and new rows; None where an address comes twice."""
        addresses = joined.column(ADDRESS)
        inserted = self._values(joined.filter(addresses.is_null()), self.inserted or ())
        matched = joined.filter(addresses.is_valid()) if self.updated is not None else joined.slice(0, 0)
        places = matched.column(ADDRESS).to_numpy()
        order = np.argsort(places)
        places = places[order]
        if bool(np.any(places[1:] == places[:-1])):
            return None
        return places, self._values(matched, self.updated or ()).take(pa.array(order)), inserted

    def _values(self, rows: pa.Table, pairs: Sequence[Pair]) -> pa.Table:
        titles = {pair: title for title, pair in self._titles.items()}
        return rows.select([titles[pair] for pair in pairs]).rename_columns([column.name for column, _ in pairs])


def _updated(table: TargetTable, action: Clauses, source: str, columns: Sequence[str]) -> Sequence[Pair] | None:
    items = set_items(action.part(2)) if action.says(0, "update", "set") else None
    if items is None or not {folded(item.column) for item in items} <= {folded(c.name) for c in table.columns}:
        return None
    values = [None if item.value is None else _column_of(item.value, source, columns) for item in items]
    named = [value for value in values if value is not None]
    if len(named) < len(values):
        return None
    return list(zip(table.named([item.column for item in items]), named, strict=True))


def _inserted(table: TargetTable, action: Clauses, source: str, columns: Sequence[str]) -> Sequence[Pair] | None:
    if action.word(0) != "insert" or action.text_at(1) != "(":
        return None
    end = action.closer(1)
    names = [part.tokens[0].name for part in action.part(2, end).split() if len(part) == 1]
    if action.word(end + 1) != "values" or action.text_at(end + 2) != "(" or action.closer(end + 2) + 1 < len(action):
        return None
    values = [_column_of(part, source, columns) for part in action.part(end + 3, len(action) - 1).split()]
    known = {folded(column.name) for column in table.columns}
    if len(values) != len(names) or None in values or any(n is None or folded(n) not in known for n in names):
        return None
    named = [(str(name), str(value)) for name, value in zip(names, values, strict=True)]
    return list(zip(table.named([name for name, _ in named]), [value for _, value in named], strict=True))


def _column_of(value: Clauses, source: str, columns: Sequence[str]) -> str | None:
    """Return the column of the source that an expression is, `source.column`; None for another one."""
    name = TableName.at(value, 0)
    if name is None or name.after < len(value) or len(name.parts) != 2 or folded(name.parts[0]) != folded(source):
        return None
    return next((column for column in columns if folded(column) == folded(name.parts[1])), None)
