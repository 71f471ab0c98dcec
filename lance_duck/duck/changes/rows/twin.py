"""A twin of a table: a native table with exactly the same columns.

Most changes are evaluated by a SELECT. If a SELECT may have a different meaning, DuckDB binds the statement on the twin
instead. Row values and stars then behave as in a native table.
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
    """Create an empty twin for one statement, and yield its name as SQL. DuckDB's error messages show the table's name.

    Columns that native tables do not support are omitted. Clauses must not use them (see `refuse_ambiguous`).

    Args:
        session: The statement.
        table: The table.
        identified: Whether to add `_rowid` and `_rowaddr` as columns, for statements that are only bound and not run.
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
        with suppress(duckdb.Error):  # a failed transaction drops it
            session.run(f"DROP TABLE IF EXISTS {own}")


def fill(session: ChangeSession, table: TargetTable, own: str, rows: pa.Table) -> None:
    """Insert rows into a twin. The `rowid` values are consecutive. They start at 0, except in a transaction.

    Args:
        session: The statement.
        table: The table.
        own: The twin, as SQL.
        rows: The rows, with at least the columns of the table. Durations have the form that `TargetTable.stored`
            returns.

    Raises:
        UnsupportedError: DuckDB may store the rows in a different order.
    """
    if not session.keeps_order():
        raise UnsupportedError(
            "a whole row used as a value needs preserve_insertion_order",
            where=f"table {table.name}",
            found="preserve_insertion_order = false",
            remedy="SET preserve_insertion_order = true",
        )
    columns = ", ".join(column.quoted for column in table.columns)
    session.run(f"INSERT INTO {own} ({columns}) SELECT {columns} FROM {_ROWS}", {_ROWS: rows})  # noqa: S608
