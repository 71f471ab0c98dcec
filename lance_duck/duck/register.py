"""Registers `lance_scan` and other functions on a plain DuckDB connection."""

from __future__ import annotations

import duckdb

from lance_duck.arguments import checked_call
from lance_duck.duck.binder import binder_of
from lance_duck.duck.macros import load_history, load_macros


@checked_call
def register(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Register `lance_scan`, the search functions and the history functions on a connection, and return it.

    For an in-memory database, all cursors can use the functions. A database file is not changed, so only this
    connection can use them. Register its cursors as well.
    """
    binder_of(connection)
    in_memory = connection.execute(
        "SELECT path IS NULL FROM system.main.duckdb_databases() WHERE database_name = system.main.current_database()"
    ).fetchall()
    load_macros(connection, for_all_cursors=in_memory == [(True,)])
    load_history(connection.execute, for_all_cursors=in_memory == [(True,)])
    return connection
