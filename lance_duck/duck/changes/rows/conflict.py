"""INSERT … ON CONFLICT, OR REPLACE and OR IGNORE, run on a shadow of the rows with the new rows' keys.

    ON CONFLICT [(c, …)] DO NOTHING | DO UPDATE SET … [WHERE …]

The keys are the columns that ON CONFLICT names, or the unenforced primary key. Lance does not enforce keys, so a key
may be repeated in a table. DO NOTHING and OR IGNORE skip new rows with a repeated key. DO UPDATE and OR REPLACE reject
such rows, because a native table would have only one row to update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.duck.changes.result import ChangeResult, counted
from lance_duck.duck.changes.rows.defaults import default_values, defaults_of
from lance_duck.duck.changes.rows.mentions import means_row, mentioned, refuse_identifiers
from lance_duck.duck.changes.rows.returning import returned_by
from lance_duck.duck.changes.rows.shadow import SHADOW, changed_shadow, shadow
from lance_duck.duck.changes.rows.update import reset_columns, set_items
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import ADDRESS, SOURCE, TargetTable
from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.errors import InvalidInputError
from lance_duck.verbs.rows.edits import RowEdits
from lance_duck.wire.schema_write import primary_key

_ROWS: Final = "__lance_source"
_BEFORE: Final = "__lance_before"


@dataclass(frozen=True)
class Upsert:
    """The clauses of an INSERT for rows whose keys already exist in the table.

    Attributes:
        target: The table.
        alias: Its alias in the statement.
        conflict: The ON CONFLICT clause. Empty without one.
        instead: "replace" or "ignore" for OR REPLACE and OR IGNORE.
        returning: RETURNING, or nothing.
        by_name: Whether it is an INSERT BY NAME. `excluded` then only has the columns of the new rows.
    """

    target: TableName
    alias: str
    conflict: Clauses
    instead: str | None
    returning: Clauses
    by_name: bool

    @property
    def does_nothing(self) -> bool:
        """Whether to skip new rows whose keys exist in the table."""
        place = self.conflict.find("do")
        return self.instead == "ignore" or (place >= 0 and self.conflict.word(place + 1) == "nothing")


def upserted(
    session: ChangeSession, table: TargetTable, upsert: Upsert, rows: pa.Table
) -> tuple[RowEdits, ChangeResult]:
    """Insert rows into the shadow of a table.

    Args:
        session: The statement.
        table: The table.
        upsert: The clauses for existing keys.
        rows: The new rows, with the types of the table columns.

    Returns:
        The edits and the statement's result.

    Raises:
        InvalidInputError: The conflict keys are missing, a row would get the key of a different row, or rows to update
            share a key.
        UnsupportedError: The statement uses row numbers.
    """
    keys = conflict_keys(table, upsert.conflict)
    refuse_identifiers(table, (upsert.conflict,))
    types = {column.name: column.type for column in table.columns}
    casts = [f"CAST({quoted(c)} AS {types[c]}) AS {quoted(c)}" for c in rows.column_names]
    source, sets_keys = f"(SELECT {', '.join(casts)} FROM {_ROWS})", _sets(upsert.conflict, keys)  # noqa: S608
    on, defaults = ", ".join(map(quoted, keys)), _defaults(session, table, upsert, rows)
    if not _means_all(table, upsert):
        required = [column.name for column in table.columns if not column.nullable or column.name in defaults]
        clauses = (upsert.conflict.text, upsert.returning.text)
        table = mentioned(table, clauses, *keys, *rows.column_names, *required)
    with session.pinned(table, upsert.target, upsert.conflict) as ((text,), tables):
        tables[_ROWS] = table.stored(rows)
        matched = f"{SOURCE} AS t SEMI JOIN {source} AS s USING ({on})"
        if any(key not in rows.column_names for key in keys):
            matched = f"{SOURCE} AS t WHERE false"
        before = table.stored(session.arrow(f"SELECT {table.read_all('t')} FROM {matched}", tables))  # noqa: S608
        before = _with_single_keys(session, upsert, before, keys)
        with shadow(session, table, before, keys, defaults):
            columns = ", ".join(map(quoted, rows.column_names))
            verb = "INSERT" if upsert.instead is None else f"INSERT OR {upsert.instead.upper()}"
            into = f"{SHADOW} AS {quoted(upsert.alias)} {'BY NAME' if upsert.by_name else f'({columns})'}"
            halves = _halves(table, source, keys) if before.num_rows and not sets_keys else [source]
            sqls = [f"{verb} INTO {into} SELECT {columns} FROM {half} {text}" for half in halves]  # noqa: S608
            if upsert.returning.tokens:
                result = returned_by(session, sqls, upsert.returning, table, upsert.alias, tables)
            else:
                result = counted(sum(session.affected(sql, tables) for sql in sqls))
            edits = changed_shadow(session, table, before, keys)
        if edits.values is not None and sets_keys:
            _refuse_other_keys(session, table, keys, edits.values, before)
        return edits, result


def _defaults(session: ChangeSession, table: TargetTable, upsert: Upsert, rows: pa.Table) -> dict[str, str]:
    """Return the DEFAULT of columns that the new rows do not contain, or that DO UPDATE sets to DEFAULT."""
    stored = defaults_of(table)
    if not stored:
        return {}
    used = stored.keys() - set(rows.column_names)
    place = upsert.conflict.find("set")
    if place >= 0:
        where = upsert.conflict.find("where", start=place)
        items = set_items(upsert.conflict.part(place + 1, None if where < 0 else where))
        used |= reset_columns(table, items)
    return default_values(session, table, used)


def _with_single_keys(session: ChangeSession, upsert: Upsert, before: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the table rows. Rows with repeated keys are dropped if the statement does not update them.

    Raises:
        InvalidInputError: A key is repeated, and its rows would be updated.
    """
    if before.num_rows < 2:
        return before
    on = ", ".join(map(quoted, keys))
    grouped = f'SELECT {on}, min("{ADDRESS}") AS "{ADDRESS}", count(*) AS number FROM {_BEFORE} GROUP BY {on}'  # noqa: S608
    single = session.arrow(f"FROM ({grouped}) ORDER BY number DESC", {_BEFORE: before})
    if single.num_rows == before.num_rows:
        return before
    if upsert.does_nothing:
        return before.filter(pc.is_in(before.column(ADDRESS), single.column(ADDRESS)))
    first = single.slice(0, 1).to_pylist()[0]
    name = ".".join(map(quoted, upsert.target.parts)) if upsert.target.path is None else literal(upsert.target.path)
    raise InvalidInputError(
        "the table contains duplicate keys, and ON CONFLICT DO UPDATE updates one row per key",
        where=f"table {upsert.target.name}",
        found=f"{first['number']} rows with {', '.join(f'{key} = {first[key]!r}' for key in keys)}",
        remedy=f"find the duplicates with SELECT {on}, count(*) FROM {name} GROUP BY {on} HAVING count(*) > 1",  # noqa: S608
    )


def _means_all(table: TargetTable, upsert: Upsert) -> bool:
    """Return whether the statement also changes columns that it does not name. OR REPLACE sets them to null."""
    has_star = any(token.text == "*" for token in upsert.returning.tokens)
    return upsert.instead == "replace" or has_star or means_row(table, upsert.alias, (upsert.returning,))


def _halves(table: TargetTable, source: str, keys: Sequence[str]) -> Sequence[str]:
    """Split rows into those with and without a match in the shadow, if DuckDB's outer join would lose arrays."""
    if not any(column.is_lost_by_joins for column in table.columns):
        return [source]
    on = f"{SHADOW} AS b USING ({', '.join(map(quoted, keys))})"
    return [f"(SELECT s.* FROM {source} AS s {kind} JOIN {on})" for kind in ("SEMI", "ANTI")]  # noqa: S608


def _refuse_other_keys(
    session: ChangeSession, table: TargetTable, keys: Sequence[str], values: pa.Table, before: pa.Table
) -> None:
    """Reject new keys for shadow rows if a row outside the shadow has them."""
    on = ", ".join(map(quoted, keys))
    others = f'FROM {SOURCE} AS t ANTI JOIN {_BEFORE} AS b USING ("{ADDRESS}")'
    sql = f"SELECT {on} FROM (SELECT t.* {others}) SEMI JOIN {_ROWS} USING ({on}) LIMIT 1"  # noqa: S608
    taken = session.arrow(sql, {**table.sources, _ROWS: values, _BEFORE: before.select([ADDRESS])}).to_pylist()
    if taken:
        raise InvalidInputError(
            "DO UPDATE would give a row the key of another row",
            where=f"table {table.name}",
            found=", ".join(f"{key} = {value!r}" for key, value in taken[0].items()),
        )


def _sets(conflict: Clauses, keys: Sequence[str]) -> bool:
    """Return whether DO UPDATE may change the keys of a row."""
    names = {folded(key) for key in keys}
    after = conflict.part(max(conflict.find("set"), 0))
    return any(token.name is not None and folded(token.name) in names for token in after.tokens)


def conflict_keys(table: TargetTable, conflict: Clauses) -> Sequence[str]:
    """Return the columns that determine conflicts.

    Raises:
        InvalidInputError: The statement does not name keys, and the table does not have a primary key.
    """
    if conflict.text_at(2) == "(":
        parts = conflict.part(3, conflict.closer(2)).split()
        return [column.name for column in table.named([part.tokens[0].name or "" for part in parts])]
    keys = [field.name for field in primary_key(table.dataset.handle.snapshot.schema)]
    if not keys:
        raise InvalidInputError(
            "ON CONFLICT needs key columns",
            where=f"table {table.name}",
            remedy="name them: ON CONFLICT (column) …, or create the table with a PRIMARY KEY",
        )
    return keys
