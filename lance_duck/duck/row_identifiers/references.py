"""Find the tables whose `rowid`, `_rowid` or `_rowaddr` a statement uses. Pure.

    SELECT t.rowid, * FROM t JOIN u USING (id)
    → SELECT t.rowid, * EXCLUDE ("t"."rowid") FROM <t with rowid> AS "t" JOIN u USING (id)

An unqualified name is looked up in each table of the SELECT, or of the nearest enclosing SELECT with tables. DuckDB
reports ambiguous names. If a name has a different meaning, the added column does not matter, because it is not visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lance_duck.duck.full_text.unseen_columns import Star, UnseenColumns
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.scope import Scope, Scopes, TableRead, is_colon
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST
from lance_duck.duck.tables.row_identifier_columns import DUCKDB_ROW_ID, ROW_IDENTIFIERS
from lance_duck.scan.projection import ROW_ADDRESS


@dataclass(frozen=True, eq=False)
class IdentifiedTable:
    """A table of a SELECT whose row identifiers are used.

    Attributes:
        read: The table's mention in the statement.
        start, end: Range of the name in the text, in characters.
        names: Row identifiers that the statement uses, in lower case.
        stars: Stars that include its columns.
        may_be_value: Whether the table name may refer to whole rows, unless a column has the same name.
    """

    read: TableRead
    start: int
    end: int
    names: frozenset[str]
    stars: tuple[Star, ...]
    may_be_value: bool

    def is_value(self, columns: Iterable[str]) -> bool:
        """Return whether the table name is used as a row value, which would include the added columns.

        Args:
            columns: Names of its stored columns.
        """
        return self.may_be_value and all(folded(name) != folded(self.read.alias) for name in columns)


def may_ask(sql: str) -> bool:
    """Return whether a text may use a row identifier. Strings and comments also count."""
    text = sql.lower()
    return DUCKDB_ROW_ID in text or ROW_ADDRESS in text


def find_identified_tables(statement: Statement) -> tuple[IdentifiedTable, ...]:
    """Find the tables of a statement whose row identifiers are used."""
    if not may_ask(statement.text) or len(statement.text) > LONGEST or statement.nearest:
        return ()
    return tuple(_tables(statement.scopes))


def edits_of(tables: Mapping[IdentifiedTable, tuple[str, Sequence[str]]]) -> list[Edit]:
    """Return the edits that replace tables with sources that have the added columns.

    Args:
        tables: SQL of the source and names of the added columns, by table.
    """
    edits, unseen = [], dict[tuple[int, str], list[str]]()
    for table, (source, names) in tables.items():
        alias = quoted(table.read.alias or "lance_scan")
        edits.append(Edit(table.start, table.end, source if table.read.is_called else f"{source} AS {alias}"))
        for star in table.stars:
            columns = (f"{alias}.{quoted(name)}" if star.is_of_all else quoted(name) for name in names)
            unseen.setdefault((star.place, star.text), []).extend(columns)
    return [*edits, *(Edit(place, place, text.format(", ".join(names))) for (place, text), names in unseen.items())]


def _tables(scopes: Scopes) -> Iterator[IdentifiedTable]:
    tokens = scopes.tokens
    columns = UnseenColumns(tokens, scopes)
    asked: dict[TableRead, tuple[Scope, set[str]]] = {}
    for at, token in enumerate(tokens):
        name = folded(token.name or "")
        if name in ROW_IDENTIFIERS and not _means_otherwise(scopes, at):
            for table_read, scope in _asked(scopes, at):
                asked.setdefault(table_read, (scope, set()))[1].add(name)
    for table_read, (scope, names) in asked.items():
        stars = columns.stars(table_read, scope)
        if table_read.place is None or stars is None or table_read.columns or _is_natural(scopes, scope):
            continue
        start, end = tokens[table_read.place[0]].start, tokens[table_read.place[1] - 1].end
        is_value = columns.may_be_value(table_read, scope)
        yield IdentifiedTable(table_read, start, end, frozenset(names), tuple(stars), is_value)


def _means_otherwise(scopes: Scopes, at: int) -> bool:
    """Return whether a name is a function, a qualifier or an alias."""
    return scopes.text(at + 1) in ("(", ".") or scopes.word(at - 1) == "as" or is_colon(scopes.tokens, at + 1)


def _asked(scopes: Scopes, at: int) -> Iterator[tuple[TableRead, Scope]]:
    """Yield the tables to which a column name may belong."""
    qualifier = scopes.name(at - 2) if scopes.text(at - 1) == "." else None
    scope: Scope | None = scopes.scope_of(at)
    while scope is not None:
        found = False
        for table_read in scope.tables:
            if qualifier is None or folded(table_read.alias) == folded(qualifier):
                found = True
                if table_read.name is not None or table_read.path is not None:
                    yield table_read, scope
        if found:
            return
        scope = scope.outer


def _is_natural(scopes: Scopes, scope: Scope) -> bool:
    """Return whether a SELECT has a NATURAL JOIN."""
    return any(scopes.word(at) == "natural" for at in range(scope.start, scope.end))
