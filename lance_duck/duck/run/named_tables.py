"""Registers tables under names that a statement can read.

DuckDB 2.0 registers an object under a generated name while its handle lives. A running query no longer needs the
handle. DuckDB 1.x can only create a view, which starts a transaction and cannot refer to relations. On 1.x, the table
is therefore passed as a Python variable. DuckDB keeps a reference while it reads the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import duckdb

_NUMBERS: Final = count()


@dataclass(frozen=True, eq=False)
class NamedTable:
    """A table that SQL can read.

    Attributes:
        name: The name in SQL.
        variable: The table, if DuckDB finds it as a Python variable. None for registered tables.
        handle: Handle that keeps the table registered.
    """

    name: str
    variable: Any = None
    handle: Any = None


def named(native: duckdb.DuckDBPyConnection, table: Any) -> NamedTable:
    """Register a table under an SQL name. The name is valid while the returned object is alive."""
    if _REGISTERS:
        handle = native._register_source(table)
        return NamedTable(str(handle.name), handle=handle)
    return NamedTable(f"__lance_named_{next(_NUMBERS)}", table)  # names in the binder begin with __lance_table_


def keep_for(result: Any, tables: Sequence[NamedTable]) -> None:
    """Keep the tables of a relation alive while it, or a relation derived from it, exists."""
    if _REGISTERS and tables and isinstance(result, duckdb.DuckDBPyRelation):
        result._handles = (*result._handles, *(table.handle for table in tables))


def variables(tables: Sequence[NamedTable]) -> Mapping[str, Any]:
    """Return the tables that DuckDB finds as variables, by name."""
    return {table.name: table.variable for table in tables if table.handle is None}


_REGISTERS: Final = hasattr(duckdb.DuckDBPyConnection, "_register_source") and hasattr(
    duckdb.DuckDBPyRelation, "_handles"
)
"""Whether this DuckDB version can register tables, and relations can keep them alive."""
