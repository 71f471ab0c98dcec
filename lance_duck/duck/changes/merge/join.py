"""A MERGE that sets columns only to values from the source and the matching row.

    MERGE INTO t USING s ON … | USING (c, …)
        [WHEN MATCHED THEN UPDATE SET c = value, …] [WHEN NOT MATCHED THEN INSERT (c, …) VALUES (value, …)]

If keys determine the matches, the values are evaluated for pairs of rows. Otherwise, one join computes them:

    SELECT t.<address>, CAST(value AS type of c) AS u0, …, CAST(value AS type of c) AS i0, … FROM s [LEFT] JOIN t …

Result rows with an address are updates. Rows without one are inserted. They lack the columns that INSERT leaves out or
sets to DEFAULT. `statement` handles all other forms of MERGE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.duck.changes.merge.expressions import MergeValue, Side, columns_read
from lance_duck.duck.changes.merge.source import MergeSourceRows, SourceColumn
from lance_duck.duck.changes.rows.defaults import is_default
from lance_duck.duck.changes.rows.precision import is_coarser
from lance_duck.duck.changes.rows.update import set_items
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import ADDRESS, TargetColumn, TargetTable
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.verbs.merge.match import MergeMatches
from lance_duck.verbs.rows.find import rows_at

Pair = tuple[TargetColumn, MergeValue]
"""A table column and its new value."""

Rows = tuple[NDArray[np.uint64], pa.Table, pa.Table, pa.Table | None]
"""Ascending addresses, their new values, the rows to insert, and the known unchanged values at the addresses, if
any."""

_FORMS: Final = (("matched",), ("not", "matched"), ("not", "matched", "by", "target"))
_PAIRS: Final = "__lance_merge_pairs"
_PLACE: Final = "__lance_place"
_PLAIN: Final = (
    *(pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_boolean, pa.types.is_date32),
    *(pa.types.is_string, pa.types.is_large_string),
)
"""Types whose values are the same in Lance and in DuckDB."""


@dataclass(frozen=True)
class MergeJoin:
    """Actions of a MERGE for source rows with and without a match.

    Attributes:
        source: Name of the source in the statement.
        target: Name of the table in the statement.
        types: DuckDB types of the source columns, by name.
        updated: Values of updated columns, or None without an UPDATE.
        inserted: Values of new rows, or None without an INSERT.
    """

    source: str
    target: str
    types: Mapping[str, str]
    updated: Sequence[Pair] | None
    inserted: Sequence[Pair] | None

    @classmethod
    def of(
        cls, table: TargetTable, target: str, source: str, columns: Sequence[SourceColumn], actions: Sequence[str]
    ) -> MergeJoin | None:
        """Read the clauses of a MERGE. Returns None if a join cannot express them.

        Args:
            table: The table.
            target: Name of the table in the statement.
            source: Name of the source in the statement.
            columns: Columns of the source.
            actions: The text of each WHEN clause, with column lists.
        """
        if any(not column.nullable or is_coarser(column) or column.is_duration for column in table.columns):
            return None
        sides = (
            Side(source, {folded(column.name): column.name for column in columns}),
            Side(target, {folded(column.name): column.name for column in table.columns}),
        )
        updated, inserted = None, None
        for text in actions:
            action = Clauses.of(text)
            then = action.find("then")
            words = tuple(action.word(place) for place in range(1, then))
            is_matched = words == _FORMS[0]
            if words not in _FORMS or (updated if is_matched else inserted) is not None:
                return None
            read = _updated if is_matched else _inserted
            pairs = read(table, action.part(then + 1), *sides)
            if pairs is None:
                return None
            updated, inserted = (pairs, inserted) if is_matched else (updated, pairs)
        return cls(source, target, {column.name: column.type for column in columns}, updated, inserted)

    @property
    def read(self) -> Sequence[str]:
        """The columns of the table that values depend on."""
        return list(dict.fromkeys(name for _, value in self.updated or () for name in sorted(value.of_target)))

    # By keys.

    def paired(
        self, session: ChangeSession, table: TargetTable, source: MergeSourceRows, matches: MergeMatches, keys: pa.Table
    ) -> Rows | None:
        """Return the result of `rows` for known matches. Returns None if table values may differ in DuckDB.

        Args:
            session: The statement.
            table: The table.
            source: The source.
            matches: The matching rows, in ascending order of address.
            keys: Key columns, which do not change.
        """
        if not all(any(is_kind(table.column(name).arrow) for is_kind in _PLAIN) for name in self.read):
            return None
        own = None
        if self.read:
            batches = list(rows_at(table.dataset.handle.snapshot, matches.updated, self.read))
            own = pa.Table.from_batches(batches) if batches else table.dataset.schema.empty_table()
        values = self._evaluated(session, self.updated or (), source, matches.sources, own)
        inserted = self._evaluated(session, self.inserted or (), source, matches.inserted, None)
        return matches.updated, values, inserted, keys

    def _evaluated(
        self,
        session: ChangeSession,
        pairs: Sequence[Pair],
        source: MergeSourceRows,
        places: NDArray[np.int64],
        own: pa.Table | None,
    ) -> pa.Table:
        """Compute new values from source rows at these positions, joined with the table's rows."""
        direct = {pair: name for pair in pairs if (name := self._as_it_is(pair)) is not None}
        known = {pair: sql for pair in pairs if (sql := pair[0].value(pair[1].text)) in source.values}
        computed = [pair for pair in pairs if pair not in direct and pair not in known]
        names = set(direct.values()).union(*(value.of_source for _, value in computed))
        assert source.rows is not None
        rows = source.rows.select([name for name in source.rows.column_names if name in names]).take(pa.array(places))
        columns = {column.name: rows.column(name) for (column, _), name in direct.items()}
        columns |= {column.name: source.values[sql].take(pa.array(places)) for (column, _), sql in known.items()}
        if computed:
            sides = {self.source: rows, **({} if own is None else {self.target: own.select(self.read)})}
            paired = {name: _struct(side) for name, side in sides.items() if side.num_columns}
            numbers = np.arange(len(places))
            selected = ", ".join([f'"{_PLACE}"', *(column.cast(value.text) for column, value in computed)])
            answer = session.arrow(
                f"SELECT {selected} FROM {_PAIRS}",  # noqa: S608
                {_PAIRS: pa.table({**paired, _PLACE: numbers})},
            )
            matched = answer.column(_PLACE).to_numpy()
            if not bool(np.all(matched == numbers)):
                answer = answer.take(pa.array(np.argsort(matched)))
            columns |= {column.name: answer.column(column.name) for column, _ in computed}
        return pa.table({column.name: columns[column.name] for column, _ in pairs})

    def _as_it_is(self, pair: Pair) -> str | None:
        """Return the source column to copy unchanged. Returns None if the value is computed or cast."""
        column, value = pair
        return value.column if value.column is not None and self.types[value.column] == column.type else None

    # By a join.

    def query(self, source: str, table: str, join: str, read: Sequence[TargetColumn]) -> str:
        """Return the join as SQL.

        Args:
            source: The source.
            table: The table with its addresses.
            join: ON or USING.
            read: The columns in `MergeJoin.read`.
        """
        address, name = f'{quoted(self.target)}."{ADDRESS}"', f'"{ADDRESS}"'
        values, new = [], []
        for title, (column, value) in self._titles.items():
            text = column.value(value.text)
            new.append(f"{column.value('NULL') if title[0] == 'u' else text} AS {title}")
            if title[0] != "v":  # casts could fail for rows of the other kind
                text = f"CASE WHEN {address} IS {'NOT ' if title[0] == 'u' else ''}NULL THEN {text} END"
            values.append(f"{text} AS {title}")
        left, right = f"{source} AS {quoted(self.source)}", f"{table} AS {quoted(self.target)} {join}"
        selected = ", ".join([f"{address} AS {name}", *values])
        if self.inserted is None:
            return f"SELECT {selected} FROM {left} JOIN {right}"  # noqa: S608
        if not any(column.is_lost_by_joins for column in read):
            return f"SELECT {selected} FROM {left} LEFT JOIN {right}"  # noqa: S608
        added = ", ".join([f"NULL AS {name}", *new])
        matched = f"SELECT {selected} FROM {left} JOIN {right}"  # noqa: S608
        return f"{matched}\nUNION ALL SELECT {added} FROM {left} ANTI JOIN {right}"  # noqa: S608

    @property
    def _titles(self) -> dict[str, Pair]:
        """Selected expressions by title: v… for all rows, u… for matching rows only, i… for new rows only."""
        updated, inserted = self.updated or (), self.inserted or ()
        titles = {f"v{place}": pair for place, pair in enumerate(updated) if pair in inserted}
        titles |= {f"u{place}": pair for place, pair in enumerate(updated) if pair not in inserted}
        return titles | {f"i{place}": pair for place, pair in enumerate(inserted) if pair not in updated}

    def rows(self, joined: pa.Table) -> Rows | None:
        """Return the rows of the join. Returns None if an address occurs twice."""
        addresses = joined.column(ADDRESS)
        inserted = self._values(joined.filter(addresses.is_null()), self.inserted or ())
        matched = joined.filter(addresses.is_valid()) if self.updated is not None else joined.slice(0, 0)
        places = matched.column(ADDRESS).to_numpy()
        order = np.argsort(places)
        places = places[order]
        if bool(np.any(places[1:] == places[:-1])):
            return None
        return places, self._values(matched, self.updated or ()).take(pa.array(order)), inserted, None

    def _values(self, rows: pa.Table, pairs: Sequence[Pair]) -> pa.Table:
        titles = {pair: title for title, pair in self._titles.items()}
        return rows.select([titles[pair] for pair in pairs]).rename_columns([column.name for column, _ in pairs])


def values_of_source(table: TargetTable, source: str, actions: Sequence[str]) -> list[str]:
    """Return the distinct SQL expressions of a MERGE that only read the source.

    Args:
        table: The table.
        source: Name of the source in the statement.
        actions: The text of each WHEN.
    """
    types = {folded(column.name): column for column in table.columns if not column.is_duration}
    values: dict[str, None] = {}
    for text in actions:
        action = Clauses.of(text)
        action = action.part(action.find("then") + 1)
        if action.says(0, "update", "set"):
            items = [(item.column, item.value) for item in set_items(action.part(2)) or () if item.value is not None]
        else:
            items = list(zip(*(insert_lists(action) or ((), ())), strict=False))
        for name, part in items:
            pairs = columns_read(part)
            if pairs is None or any(side != folded(source) for side, _ in pairs) or folded(name) not in types:
                continue
            if len(part) != 3 or not pairs:  # the expression is more than a column name
                values[types[folded(name)].value(part.text)] = None
    return list(values)


def _updated(table: TargetTable, action: Clauses, source: Side, target: Side) -> Sequence[Pair] | None:
    items = set_items(action.part(2)) if action.says(0, "update", "set") else None
    if items is None or not {folded(item.column) for item in items} <= target.columns.keys():
        return None
    values = [None if item.value is None else MergeValue.of(item.value, source, target) for item in items]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    return list(zip(table.named([item.column for item in items]), known, strict=True))


def _inserted(table: TargetTable, action: Clauses, source: Side, target: Side) -> Sequence[Pair] | None:
    lists = insert_lists(action)
    if lists is None:
        return None
    names, parts = lists
    if len(names) != len(parts) or any(folded(name) not in target.columns for name in names):
        return None
    given = [(name, part) for name, part in zip(names, parts, strict=True) if not is_default(part)]
    named, values = [name for name, _ in given], [MergeValue.of(part, source, target) for _, part in given]
    known = [value for value in values if value is not None and not value.of_target]
    if not given or len(known) < len(values) or len(set(map(folded, names))) < len(names):
        return None
    return list(zip(table.named(named), known, strict=True))


def insert_lists(action: Clauses) -> tuple[list[str], list[Clauses]] | None:
    """Return the columns and values of `INSERT (…) VALUES (…)`. Returns None for other actions."""
    if action.word(0) != "insert" or action.text_at(1) != "(":
        return None
    end = action.closer(1)
    names = [part.tokens[0].name or "" for part in action.part(2, end).split() if len(part) == 1]
    if action.word(end + 1) != "values" or action.text_at(end + 2) != "(" or action.closer(end + 2) + 1 < len(action):
        return None
    return names, action.part(end + 3, len(action) - 1).split()


def _struct(table: pa.Table) -> Any:
    columns = [column.chunk(0) if column.num_chunks == 1 else column.combine_chunks() for column in table.columns]
    return pa.StructArray.from_arrays(columns, names=table.column_names)
