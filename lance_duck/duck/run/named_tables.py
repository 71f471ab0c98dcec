"""Tables under names that the statements of one connection can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import duckdb

_NUMBERS: Final = count()


@dataclass(frozen=True, eq=False)
class NamedTable:
    """A table that SQL can read.

    Attributes:
        name: Under which it is registered, or is known to the call of DuckDB.
        variable: The table itself where DuckDB has to find it among variables; None where it is registered.
        handle: Keeps it registered.
    """

    name: str
    variable: Any = None
    handle: Any = None


@dataclass(eq=False)
class NamedTables:
    """Registers tables for the statements of one connection.

    DuckDB 2.0 registers an object under a name of its own, for as long as a handle lives: that of a relation lives as
    long as the relation and what is derived from it. DuckDB 1.x can only create a view, which is a transaction of its
    own and knows nothing of relations; there the table is one more variable of the call, which DuckDB keeps itself.

    Attributes:
        native: DuckDB's connection.
    """

    native: duckdb.DuckDBPyConnection
    _last: tuple[NamedTable, ...] = field(default=())

    def add(self, table: Any) -> NamedTable:
        """Give a table a name, for as long as what this returns is held."""
        if _REGISTERS:
            handle = self.native._register_source(table)
            return NamedTable(str(handle.name), handle=handle)
        return NamedTable(f"__lance_table_{next(_NUMBERS)}", table)

    def hold(self, tables: tuple[NamedTable, ...], result: Any) -> None:
        """Hold tables: for a relation as long as there is one that reads it, else up to the next statement."""
        if tables and isinstance(result, duckdb.DuckDBPyRelation):
            if _REGISTERS:
                result._handles = (*result._handles, *(table.handle for table in tables))
        elif tables or self._last:
            self._last = tables


def variables(tables: tuple[NamedTable, ...]) -> Mapping[str, Any]:
    """Return those tables that DuckDB has to find among variables, by their names."""
    return {table.name: table.variable for table in tables if table.handle is None}


_REGISTERS: Final = hasattr(duckdb.DuckDBPyConnection, "_register_source") and hasattr(
    duckdb.DuckDBPyRelation, "_handles"
)
"""Whether this DuckDB registers tables, and lets relations keep them."""
