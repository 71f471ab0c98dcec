"""A shadow of a table: a native table with some of its rows, and their addresses.

A SELECT cannot express MERGE and ON CONFLICT. DuckDB runs the user's statement on the shadow instead. Row addresses
then map the changed rows to edits of the Lance table. New rows do not have an address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of
from lance_duck.duck.changes.rows.precision import is_coarser, kept_exact
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import ADDRESS, TargetTable
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import LanceDuckError
from lance_duck.verbs.merge.guard import InsertGuard
from lance_duck.verbs.rows.edits import RowEdits
from lance_duck.verbs.rows.keys import KeyIndex

SHADOW: Final = "__lance_shadow"
_ROWS: Final = "__lance_rows"
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


@contextmanager
def shadow(
    session: ChangeSession,
    table: TargetTable,
    rows: pa.Table,
    unique: Sequence[str] = (),
    defaults: Mapping[str, str] = _NONE,
) -> Iterator[None]:
    """Create a shadow of a table for one statement. DuckDB's error messages show the table's name.

    Args:
        session: The statement.
        table: The table.
        rows: The rows for the shadow, with their addresses, as returned by `TargetTable.stored`.
        unique: Columns whose combined values must be unique.
        defaults: See `columns_as_sql`.
    """
    more = [f'"{ADDRESS}" UBIGINT', *([f"UNIQUE ({', '.join(map(quoted, unique))})"] if unique else [])]
    with temporary_table(session, columns_as_sql(table, *more, defaults=defaults), table.name):
        session.run(f"INSERT INTO {SHADOW} BY NAME SELECT * FROM {_ROWS}", {_ROWS: rows})  # noqa: S608
        yield


@contextmanager
def temporary_table(session: ChangeSession, columns: str, name: str) -> Iterator[None]:
    """Create the temporary table `SHADOW`, and drop it after the statement.

    Args:
        session: The statement.
        columns: SQL of the columns and constraints, in parentheses.
        name: The name that replaces `SHADOW` in DuckDB's errors.
    """
    try:
        session.run(f"CREATE OR REPLACE TEMP TABLE {SHADOW} {columns}")
        yield
    except duckdb.Error as error:
        raise type(error)(str(error).replace(SHADOW, name)) from error
    finally:
        with suppress(duckdb.Error):  # a failed transaction drops it
            session.run(f"DROP TABLE IF EXISTS temp.main.{SHADOW}")


def columns_as_sql(table: TargetTable, *more: str, defaults: Mapping[str, str] = _NONE) -> str:
    """Return the column definitions of a table in parentheses.

    Args:
        table: The table.
        more: More columns and constraints.
        defaults: SQL of the DEFAULT of columns, by column name.

    Raises:
        InvalidInputError: Column names differ only by case.
    """
    table.refuse_ambiguous()
    columns = []
    for column in table.columns:
        default = f" DEFAULT ({defaults[column.name]})" if column.name in defaults else ""
        columns.append(f"{column.quoted} {column.type}{'' if column.nullable else ' NOT NULL'}{default}")
    return f"({', '.join([*columns, *more])})"


def changed_shadow(
    session: ChangeSession, table: TargetTable, before: pa.Table, keys: Sequence[str] | None
) -> RowEdits:
    """Return the changes of a shadow as edits of its table.

    RETURNING is not used. For UPDATE in WHEN NOT MATCHED BY SOURCE, DuckDB 1.5 returns values that differ from the
    stored values.

    Args:
        session: The statement.
        table: The table.
        before: The original rows of the shadow.
        keys: Columns that determine which rows are new, if known.
    """
    casts = ", ".join(f"CAST({c.quoted} AS {c.type})::{c.joined_type} AS {c.quoted}" for c in table.columns)
    lists = ", ".join(f"{c.quoted}::{c.joined_type} AS {c.quoted}" for c in table.columns)
    read = ", ".join(column.read(f"CAST(a.{column.quoted} AS {column.type})") for column in table.columns)
    now, then = (", ".join(f"{side}.{column.quoted}" for column in table.columns) for side in ("a", "b"))
    known = f'SELECT {casts}, "{ADDRESS}" FROM {_ROWS}'  # noqa: S608
    is_changed = f'a."{ADDRESS}" IS NULL OR ROW({now}) IS DISTINCT FROM ROW({then})'
    joined = f'(SELECT {lists}, "{ADDRESS}" FROM {SHADOW}) AS a LEFT JOIN ({known}) AS b USING ("{ADDRESS}")'  # noqa: S608
    sql = f'SELECT {read}, a."{ADDRESS}" FROM {joined} WHERE {is_changed}'  # noqa: S608
    rows = session.arrow(sql, {_ROWS: before})
    present = session.arrow(f'SELECT "{ADDRESS}" FROM {SHADOW}', {}).column(ADDRESS).drop_null()  # noqa: S608
    addresses = rows.column(ADDRESS)
    values = table.stored(rows.select([column.name for column in table.columns]))
    inserted = values.filter(addresses.is_null())
    updated = addresses.drop_null().to_numpy()
    return RowEdits(
        deleted=difference_of(before.column(ADDRESS).to_numpy(), present.to_numpy()),
        updated=updated,
        values=_exact(table, updated, values.filter(addresses.is_valid()), before),
        inserted=inserted if inserted.num_rows else None,
        guard=insert_guard(table, inserted, keys) if inserted.num_rows else None,
    )


def _exact(table: TargetTable, addresses: NDArray[np.uint64], values: pa.Table, before: pa.Table) -> pa.Table:
    names = [column.name for column in table.columns if is_coarser(column)]
    if not names:
        return values
    known = before.column(ADDRESS).to_numpy()
    order = np.argsort(known)
    places = order[np.searchsorted(known, addresses, sorter=order)]
    return kept_exact(table, addresses, values, {name: before.column(name).take(pa.array(places)) for name in names})


def insert_guard(table: TargetTable, inserted: pa.Table, keys: Sequence[str] | None) -> partial[InsertGuard]:
    """Return a guard that raises a conflict if newer versions contain keys of the new rows.

    Args:
        table: The table.
        inserted: The new rows.
        keys: Columns that determine which rows are new, if known.
    """
    index: KeyIndex | None = None
    if keys:
        with suppress(LanceDuckError, pa.ArrowException):  # keys that cannot be compared: every added row conflicts
            index = KeyIndex([inserted.column(k).cast(table.column(k).arrow) for k in keys], keys)
    return partial(InsertGuard, keys=index, on=list(keys or ()))
