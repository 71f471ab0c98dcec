"""Inline views into a statement without changing the meaning of their names."""

from __future__ import annotations

from typing import Final

from lance_duck.duck.full_text.origins import QueryText
from lance_duck.duck.names import Names
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.scope import TableRead

_OURS: Final = ("lance_", "__lance_")
"""Name prefixes of lance_duck functions, which have the same meaning in every schema."""
_OF_SEQUENCES: Final = frozenset({"nextval", "currval"})


class ViewInliner:
    """Edits that inline views into one statement.

    Args:
        names: Name resolver of the connection.
        later: Whether an unfetched result is kept while names are looked up.
    """

    def __init__(self, names: Names, *, later: bool) -> None:
        self._names = names
        self._later = later
        self._edits: dict[QueryText, list[Edit] | None] = {}

    def edits(self, text: QueryText) -> list[Edit] | None:
        """Return the edits that qualify all table names of a view, or None if the meaning of a name is uncertain."""
        if text not in self._edits:
            self._edits[text] = self._qualified(text) if self._calls_duckdb_alone(text) else None
        return self._edits[text]

    def _calls_duckdb_alone(self, text: QueryText) -> bool:
        """Return whether a view uses only built-in functions and types, and lance_duck functions."""
        scopes = text.scopes
        names = {folded(token.name): at for at, token in enumerate(scopes.tokens) if token.name is not None}
        called = {
            folded(token.name)
            for at, token in enumerate(scopes.tokens)
            if token.name is not None and scopes.text(at + 1) == "(" and not folded(token.name).startswith(_OURS)
        }
        if not called.isdisjoint(_OF_SEQUENCES) or self._names.own_functions(tuple(sorted(called)), later=self._later):
            return False
        return not self._names.own_types(tuple(sorted(names)), later=self._later)

    def _qualified(self, text: QueryText) -> list[Edit] | None:
        tables = [table_read for table_read in text.scopes.tables if table_read.query is None]
        edits = [self._edit(text, table_read) for table_read in tables if not _is_call(text, table_read)]
        return None if None in edits else [edit for edit in edits if edit is not None]

    def _edit(self, text: QueryText, table_read: TableRead) -> Edit | None:
        """Return the edit that qualifies a table name with database and schema, or None if they are unknown."""
        if table_read.name is None or table_read.place is None or table_read.version:
            return None
        place = self._names.place(table_read.name, later=self._later, within=text.within)
        if place is None:
            return None
        tokens, (start, end) = text.scopes.tokens, table_read.place
        name = ".".join(map(quoted, (*place, table_read.name[-1])))
        return Edit(tokens[start].start, tokens[end - 1].end, name)


def _is_call(text: QueryText, table_read: TableRead) -> bool:
    """Return whether a source is a path, a call or a list of values."""
    if table_read.place is None:
        return False
    tokens = text.scopes.tokens[slice(*table_read.place)]
    return table_read.path is not None or any(token.text == "(" for token in tokens)
