"""A twin of a table: a table of DuckDB's own with the same columns, and no more.

Most changes are evaluated by a SELECT. DuckDB's own binder decides, on the twin, about those that a SELECT may read
otherwise; and a row of the twin as a value, and its stars, are those that a native table has.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import duckdb
import pyarrow as pa

from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import TargetTable
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.tables.row_identifier_columns import row_identifiers
from lance_duck.errors import UnsupportedError
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID

TWIN: Final = "__lance_twin"
_ROWS: Final = "__lance_rows"


@contextmanager
def twin(session: ChangeSession, table: TargetTable, *, identified: bool = False) -> Iterator[str]:
    """Make an empty twin for one statement, and yield its name as SQL. Errors of DuckDB's about it speak of the table.

    It lacks columns that no native table can have, which no clause may name: see `refuse_ambiguous`.

    Args:
        session: The statement.
        table: The table.
        identified: It has `_rowid` and `_rowaddr` as columns, too: statements are bound on it, and not run.
    """
    columns = [f"{column.quoted} {column.type}" for column in table.unambiguous.columns]
    if identified:
        more = row_identifiers((ROW_ID, ROW_ADDRESS), table.dataset)
        columns += [f"{quoted(column.field.name)} UBIGINT" for column in more]
    own = f"temp.main.{quoted(TWIN)}"
    try:
        session.run(f"CREATE TEMP TABLE {quoted(TWIN)} ({', '.join(columns)})")
        yield own
    except duckdb.Error as error:
        if TWIN not in str(error):
            raise
        raise type(error)(str(error).replace(TWIN, table.name)) from error
    finally:
        with suppress(duckdb.Error):  # a transaction that failed takes it along
            session.run(f"DROP TABLE IF EXISTS {own}")


def fill(session: ChangeSession, table: TargetTable, own: str, rows: pa.Table) -> None:
    """Give a twin rows, whose `rowid` is then their place, or in a transaction counts on from another number.

    Args:
        session: The statement.
        table: The table.
        own: The twin, as SQL.
        rows: The rows, with the columns of the table among others; durations as `TargetTable.stored` gives them.

    Raises:
        UnsupportedError: DuckDB may store them in another order.
    """
    if not session.keeps_order():
        raise UnsupportedError(
            "a whole row as a value",
            where=f"table {table.name}",
            found="preserve_insertion_order is off",
            remedy="SET preserve_insertion_order = true",
        )
    columns = ", ".join(column.quoted for column in table.columns)
    session.run(f"INSERT INTO {own} ({columns}) SELECT {columns} FROM {_ROWS}", {_ROWS: rows})  # noqa: S608
