"""Gives tables names that a statement can read.

DuckDB 2.0 registers an object under a name of its own, for as long as a handle lives; a query that has begun needs the
handle no more. DuckDB 1.x can only create a view, which is a transaction of its own and knows nothing of relations;
there the table is one more variable of the call, which DuckDB itself keeps for as long as it is read.
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
        name: Under which it is registered, or is known to the call of DuckDB.
        variable: The table, if DuckDB has to find it among variables; None if it is registered.
        handle: Keeps it registered.
    """

    name: str
    variable: Any = None
    handle: Any = None


def named(native: duckdb.DuckDBPyConnection, table: Any) -> NamedTable:
    """Give a table a name that statements of a connection can read, for as long as what this returns is held."""
    if _REGISTERS:
        handle = native._register_source(table)
        return NamedTable(str(handle.name), handle=handle)
    return NamedTable(f"__lance_named_{next(_NUMBERS)}", table)  # the binder names others __lance_table_…


def keep_for(result: Any, tables: Sequence[NamedTable]) -> None:
    """Keep the tables that a relation reads, for as long as it or a relation made of it is there."""
    if _REGISTERS and tables and isinstance(result, duckdb.DuckDBPyRelation):
        result._handles = (*result._handles, *(table.handle for table in tables))


def variables(tables: Sequence[NamedTable]) -> Mapping[str, Any]:
    """Return those tables that DuckDB has to find among variables, by their names."""
    return {table.name: table.variable for table in tables if table.handle is None}


_REGISTERS: Final = hasattr(duckdb.DuckDBPyConnection, "_register_source") and hasattr(
    duckdb.DuckDBPyRelation, "_handles"
)
"""Whether this DuckDB registers tables, and lets relations keep them."""
