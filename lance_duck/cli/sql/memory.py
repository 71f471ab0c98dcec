"""Tables and views that end with a connection, because DuckDB held them in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import lance_duck as ld
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.store import open_store
from lance_duck.wire.paths import TABLE_SUFFIX, VERSIONS

_LOST: Final = """
SELECT 'table' AS kind, schema_name, table_name AS name FROM duckdb_tables()
WHERE database_name = 'memory' AND NOT internal AND NOT temporary
UNION ALL
SELECT 'view', schema_name, view_name FROM duckdb_views()
WHERE database_name = 'memory' AND NOT internal AND NOT temporary
ORDER BY kind, schema_name, name
"""
"""Tables and views of the database that DuckDB makes for unqualified names."""
_NAMED: Final = 5


def lost_message(connection: ld.Connection, places: Sequence[str]) -> str | None:
    """Name the tables and views in memory, and how to keep them.

    Args:
        connection: The connection, outside of a transaction.
        places: The folder or the tables that it is connected to.

    Returns:
        One line, or None if memory holds no tables and views.
    """
    lost = connection.native.execute(_LOST).fetchall()
    if not lost:
        return None
    names = [f"{kind} {_spelled(schema, name)}" for kind, schema, name in lost[:_NAMED]]
    more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    kind, _, name = lost[0]
    target = f"lance.{_spelled('main', name)}" if _has_folder(places) else literal(name + TABLE_SUFFIX)
    kept = "a table" if kind == "table" else "its rows"
    line = f"in memory only, and gone now: {', '.join(names)}{more}; CREATE TABLE {target} AS … keeps {kept}"
    return line.replace("\n", r"\n")


def _spelled(schema: str, name: str) -> str:
    parts = [name] if schema == "main" else [schema, name]
    return ".".join(part if part.isidentifier() else quoted(part) for part in parts)


def _has_folder(places: Sequence[str]) -> bool:
    """Return whether new tables of the database `lance` have a folder."""
    return len(places) == 1 and VERSIONS not in (open_store(places[0]).folders() or ())
