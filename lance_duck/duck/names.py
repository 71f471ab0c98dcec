"""Whether a name means a Lance table, and rows are sorted as usual: asked of DuckDB, and remembered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import duckdb

from lance_duck.duck.catalog import Catalog, literal
from lance_duck.duck.scope import call_as_user

_KEPT: Final = 256
_READS: Final = re.compile(r"\s*(select|from)\b[^;]*;?\s*", re.IGNORECASE)
_USUAL: Final = (
    "lower(current_setting('default_order')) LIKE 'asc%' AND lower(current_setting('default_null_order')) IN "
    "('nulls_last', 'last', 'nullslast', 'nulls last')"
)


class Names:
    """What names mean on one connection.

    Args:
        native: DuckDB's connection.
        catalog: Its Lance tables.
        changes: What is counted of all connections to its database.
    """

    def __init__(self, native: duckdb.DuckDBPyConnection, catalog: Catalog, changes: Changes) -> None:
        self._native = native
        self._catalog = catalog
        self._counted = changes
        self._changes: object = None
        self._known: dict[str, bool] = {}

    def are_plain(self, name: tuple[str, ...], *, later: bool) -> bool:
        """Whether a (qualified) name is that of a Lance table which nothing of DuckDB's hides, and NULL is sorted last.

        Args:
            name: Its parts.
            later: A result that was not fetched yet has to stay.
        """
        if not self._catalog.is_table(name):
            return False
        key = name[-1].lower()
        changes = _changes(self._native, self._counted)
        if changes is None or changes != self._changes or len(self._known) > _KEPT:
            self._known.clear()
            self._changes = changes
        if key not in self._known:
            self._known[key] = self._ask(key, later)
        return self._known[key]

    def _ask(self, name: str, later: bool) -> bool:
        named = literal(name)
        text = (
            f"SELECT {_USUAL} AND NOT EXISTS (FROM duckdb_tables() WHERE lower(table_name) = {named}) AND NOT EXISTS "
            f"(FROM duckdb_views() WHERE lower(view_name) = {named} AND database_name <> {literal(self._catalog.name)})"
        )
        method: Any = self._native.sql if later else self._native.execute
        try:
            return bool(call_as_user(partial(method, text), {}).fetchall()[0][0])
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            return False


@dataclass
class Changes:
    """Counts what may change the meaning of names, where DuckDB itself does not: before 2.0.

    Attributes:
        count: Statements and calls that may have.
        is_sure: No other way leads to the database.
    """

    count: int = 0
    is_sure: bool = False

    @contextmanager
    def during(self, statement: object) -> Iterator[None]:
        """Count a statement, when it begins and when it ends, unless it only reads."""
        reads = isinstance(statement, str) and _READS.fullmatch(statement) is not None
        self.count += not reads
        try:
            yield
        finally:
            self.count += not reads


def _changes(native: Any, ours: Changes) -> object:
    """What is another thing after each statement that may change what names mean; None where nobody tells."""
    count = getattr(native, "_catalog_version", None)
    if count is not None:
        return count()
    return ours.count if ours.is_sure else None
