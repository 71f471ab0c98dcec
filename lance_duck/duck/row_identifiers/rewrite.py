"""Rewrite statements, and SELECTs of changes, to add `rowid`, `_rowid` and `_rowaddr` to tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.names import Names, handle_of, version_texts
from lance_duck.duck.row_identifiers.references import IdentifiedTable, edits_of, find_identified_tables
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.duck.statement.scope import TableRead
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import edited
from lance_duck.duck.tables.computed_columns import AskedColumns, TableWithColumns, with_columns
from lance_duck.duck.tables.row_identifier_columns import row_identifiers
from lance_duck.duck.tables.table import DuckTable


class RowIdentifierRewriter:
    """Rewrites the statements of one connection.

    Args:
        catalog: Its Lance tables.
        names: Name resolver of the connection.
    """

    def __init__(self, catalog: TableCatalog, names: Names) -> None:
        self._catalog = catalog
        self._names = names

    def edits(self, statement: Statement, *, later: bool) -> list[Edit]:
        """Return edits that add the requested row identifiers to the tables of a statement.

        Args:
            statement: One or more statements.
            later: Whether an unfetched result is kept while names are looked up.
        """
        tables: tuple[IdentifiedTable, ...] = statement.result("row identifiers", find_identified_tables)
        calls = {table: call for table in tables if (call := self._call(table, later=later)) is not None}
        return edits_of(calls)

    def _call(self, table: IdentifiedTable, *, later: bool) -> tuple[str, list[str]] | None:
        """Return a call that reads a Lance table with added columns, and the names of these columns.

        Returns None for other tables, or if columns cannot be added.
        """
        handle = handle_of(table.read, self._catalog, self._names, later=later)
        if handle is None:
            return None
        dataset = handle.current()
        names = [column.field.name for column in row_identifiers(table.names, dataset)]
        if not names or table.is_value(dataset.schema.names):
            return None
        asked = AskedColumns([], version_texts(table.read), names)
        return f"__lance_matching({literal(self._qualified(table.read, later))}, {literal(asked.text)})", names

    def _qualified(self, table_read: TableRead, later: bool) -> str:
        """Return the name or path of a table, as a function argument."""
        if table_read.name is None:
            return str(table_read.path)
        schema = self._names.schema_of(table_read.name, later=later)
        name = table_read.name
        return ".".join(map(quoted, name)) if schema is None else schema.table_sql(name[-1])


def with_row_identifiers(
    sql: str, table_of: Callable[[TableRead], DuckTable | None]
) -> tuple[str, Mapping[str, TableWithColumns]]:
    """Return a query whose tables have row identifiers, and these tables by name.

    Args:
        sql: The query.
        table_of: Returns a Lance table of the query at the requested version, or None for other tables.
    """
    tables: dict[str, TableWithColumns] = {}
    sources = {}
    asked: tuple[IdentifiedTable, ...] = Statement.of(sql).result("row identifiers", find_identified_tables)
    for each in asked:
        table = table_of(each.read)
        if table is None or each.is_value(table.dataset.schema.names):
            continue
        columns = row_identifiers(each.names, table.dataset)
        if columns:
            name = f"__lance_identified_{each.start}"
            is_wide = isinstance(table, TableWithColumns)
            tables[name] = table.widened(columns) if is_wide else with_columns(table.dataset, columns)
            sources[each] = name, [column.field.name for column in columns]
    return (edited(sql, edits_of(sources)), tables) if sources else (sql, {})
