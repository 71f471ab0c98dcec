"""Names of tables on pages, and in SQL."""

from __future__ import annotations

from collections.abc import Sequence

from lance_duck.duck.statement.identifiers import quoted
from lance_duck.namespaces import Namespace

TableName = tuple[str, ...]


def listed_tables(namespace: Namespace, limit: int, skip: int = 0) -> tuple[list[TableName], bool]:
    """Return the names of tables, and whether there are more. Tables of a namespace come before its children.

    Args:
        namespace: The names.
        limit: Maximum number of names.
        skip: Number of names to leave out first.
    """
    found: list[TableName] = []
    waiting: list[TableName] = [()]
    while waiting and len(found) <= skip + limit:
        inside = waiting.pop()
        found.extend((*inside, name) for name in namespace.list_tables(inside))
        waiting.extend((*inside, child) for child in reversed(namespace.list_namespaces(inside)))
    return found[skip : skip + limit], len(found) > skip + limit


def sql_name(name: Sequence[str]) -> str | None:
    """Return the name of a table in SQL, or None for tables below nested namespaces."""
    return ".".join(map(quoted, name)) if len(name) <= 2 else None
