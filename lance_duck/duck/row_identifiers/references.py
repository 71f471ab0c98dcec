"""Tables of which a statement asks for `rowid`, `_rowid` or `_rowaddr`. Pure.

    SELECT t.rowid, * FROM t JOIN u USING (id)
    → SELECT t.rowid, * EXCLUDE ("t"."rowid") FROM <t with rowid> AS "t" JOIN u USING (id)

A name that no table qualifies is asked of each table of the SELECT, or of the next one around that reads any: DuckDB
says where that is ambiguous. A name that means something else makes no difference, for nobody sees the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lance_duck.duck.full_text.scopes import Scope, Scopes, TableRead, is_colon
from lance_duck.duck.full_text.unseen_columns import Star, UnseenColumns
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.text import LONGEST, Statement
from lance_duck.duck.statement.tokens import Token
from lance_duck.duck.tables.row_identifier_columns import DUCKDB_ROW_ID, ROW_IDENTIFIERS
from lance_duck.scan.projection import ROW_ADDRESS


@dataclass(frozen=True, eq=False)
class IdentifiedTable:
    """A table that a SELECT reads, and of whose rows it asks which they are.

    Attributes:
        read: How the statement names it.
        start, end: Where it does.
        names: What is asked for, in lower case.
        stars: Stars that have its columns.
        may_be_value: Its name stands where it means whole rows, unless it has a column of that name.
    """

    read: TableRead
    start: int
    end: int
    names: frozenset[str]
    stars: tuple[Star, ...]
    may_be_value: bool

    def is_value(self, columns: Iterable[str]) -> bool:
        """Return whether whole rows of it are meant, which would hold more columns.

        Args:
            columns: Names of the columns that it stores.
        """
        return self.may_be_value and all(folded(name) != folded(self.read.alias) for name in columns)


def may_ask(sql: str) -> bool:
    """Return whether a text has one of the names, wherever it stands."""
    text = sql.lower()
    return DUCKDB_ROW_ID in text or ROW_ADDRESS in text


def find_identified_tables(statement: Statement) -> tuple[IdentifiedTable, ...]:
    """Find the tables of a statement of which row identifiers are asked."""
    if not may_ask(statement.text) or len(statement.text) > LONGEST or statement.nearest:
        return ()
    return tuple(_tables(statement.tokens))


def edits_of(tables: Mapping[IdentifiedTable, tuple[str, Sequence[str]]]) -> list[Edit]:
    """Return the edits of a statement that reads tables with columns.

    Args:
        tables: For each, SQL of what is read in its place, and the columns that this has more.
    """
    edits, unseen = [], dict[tuple[int, str], list[str]]()
    for table, (source, names) in tables.items():
        alias = quoted(table.read.alias)
        edits.append(Edit(table.start, table.end, source if table.read.is_called else f"{source} AS {alias}"))
        for star in table.stars:
            columns = (f"{alias}.{quoted(name)}" if star.is_of_all else quoted(name) for name in names)
            unseen.setdefault((star.place, star.text), []).extend(columns)
    return [*edits, *(Edit(place, place, text.format(", ".join(names))) for (place, text), names in unseen.items())]


def _tables(tokens: Sequence[Token]) -> Iterator[IdentifiedTable]:
    scopes = Scopes(tokens)
    columns = UnseenColumns(tokens, scopes)
    asked: dict[TableRead, tuple[Scope, set[str]]] = {}
    for at, token in enumerate(tokens):
        name = folded(token.name or "")
        if name in ROW_IDENTIFIERS and not _means_otherwise(scopes, at):
            for read, scope in _asked(scopes, at):
                asked.setdefault(read, (scope, set()))[1].add(name)
    for read, (scope, names) in asked.items():
        stars = columns.stars(read, scope)
        if read.place is None or stars is None or _is_natural(scopes, scope):
            continue
        start, end = tokens[read.place[0]].start, tokens[read.place[1] - 1].end
        is_value = columns.may_be_value(read, scope)
        yield IdentifiedTable(read, start, end, frozenset(names), tuple(stars), is_value)


def _means_otherwise(scopes: Scopes, at: int) -> bool:
    """Return whether a name is that of a function, a title, or a field of a struct."""
    return scopes.text(at + 1) in ("(", ".") or scopes.word(at - 1) == "as" or is_colon(scopes.tokens, at + 1)


def _asked(scopes: Scopes, at: int) -> Iterator[tuple[TableRead, Scope]]:
    """Yield the tables of which a name may be asked."""
    qualifier = scopes.name(at - 2) if scopes.text(at - 1) == "." else None
    scope: Scope | None = scopes.scope_of(at)
    while scope is not None:
        found = False
        for read in scope.tables:
            if qualifier is None or folded(read.alias) == folded(qualifier):
                found = True
                if read.name is not None or read.path is not None:
                    yield read, scope
        if found:
            return
        scope = scope.outer


def _is_natural(scopes: Scopes, scope: Scope) -> bool:
    """Return whether a SELECT joins tables by all columns of one name."""
    return any(scopes.word(at) == "natural" for at in range(scope.start, scope.end))
