"""Replaces all mentions of a table in a statement with one source object.

DuckDB 2.0 resolves the version of a source when it binds a statement, and reads the rows later, on its worker threads.
All cursors share the source of a name. If another cursor binds a newer version in between, the statement would read
rows of that version.
"""

from __future__ import annotations

from lance_duck.duck.rules.repeated_tables import RepeatedTables
from lance_duck.duck.rules.table_read import TablePlace
from lance_duck.duck.run.named_tables import NamedTable, named
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.tables.handle import TableHandle, VersionChoice, pinned_versions
from lance_duck.duck.tables.table import DuckTable, select_all
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE


def run(proposal: RepeatedTables, request: Request, database: Database) -> Rewriting | None:
    """Read each repeated table from one object. Returns None if that is not necessary."""
    if not SPEAKS_SOURCE or request.later or pinned_versions() is not None:
        return None
    mentions: dict[tuple[str, VersionChoice], list[tuple[TableHandle, TablePlace]]] = {}
    for place in proposal.places:
        handle = database.names.table(place.name, later=False)
        if handle is not None and handle.given is None:
            mentions.setdefault(handle.identity, []).append((handle, place))
    edits: list[Edit] = []
    tables: list[NamedTable] = []
    for group in mentions.values():
        free = [place for _, place in group if request.is_free(place.start, place.end)]
        if len(group) > 1 and free:
            table = named(database.native, DuckTable(group[0][0].current, pinned=True))
            edits += [place.reading(f"({select_all(quoted(table.name))})") for place in free]
            tables.append(table)
    return Rewriting(tuple(edits), tuple(tables)) if tables else None
