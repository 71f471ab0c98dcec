"""SELECTs that changes of tables are made of, with tables that have `rowid`, `_rowid` and `_rowaddr`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lance_duck.duck.row_identifiers.references import IdentifiedTable, edits_of, find_identified_tables
from lance_duck.duck.statement.edits import apply
from lance_duck.duck.statement.scope import TableRead
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.tables.computed_columns import TableWithColumns, with_columns
from lance_duck.duck.tables.row_identifier_columns import row_identifiers
from lance_duck.duck.tables.table import DuckTable


def with_row_identifiers(
    sql: str, table_of: Callable[[TableRead], DuckTable | None]
) -> tuple[str, Mapping[str, TableWithColumns]]:
    """Return a query that reads its tables with the row identifiers that it asks for, and these tables by name.

    Args:
        sql: The query.
        table_of: Returns a table that it reads, at the version at which it does; None for what is not a Lance table.
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
    return (apply(sql, edits_of(sources)), tables) if sources else (sql, {})
