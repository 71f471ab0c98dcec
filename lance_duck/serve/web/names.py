"""Names of tables on pages, and in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from lance_duck.duck.statement.identifiers import quoted
from lance_duck.serve.gate.served_names import ServedNamespace

TableName = tuple[str, ...]


def listed_tables(namespace: ServedNamespace, limit: int, skip: int = 0) -> tuple[list[TableName], bool]:
    """Return the names of tables, and whether there are more.

    Args:
        namespace: The names.
        limit: Maximum number of names.
        skip: Number of names to leave out first.
    """
    found = list(islice(namespace.tables(), skip, skip + limit + 1))
    return found[:limit], len(found) > limit


def sql_name(name: Sequence[str]) -> str | None:
    """Return the name of a table in SQL, or None for tables below nested namespaces."""
    return ".".join(map(quoted, name)) if len(name) <= 2 else None
