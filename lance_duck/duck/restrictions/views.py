"""Replaces a view by its query, so that the tables inside are restricted by the conditions on the view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lance_duck.duck.full_text.inlined_views import ViewInliner
from lance_duck.duck.full_text.origins import QueryText, query_of_view
from lance_duck.duck.names import View
from lance_duck.duck.restrictions.tables import restricted_source
from lance_duck.duck.restrictions.tables import run as run_table
from lance_duck.duck.rules.indexed_condition import IndexedCondition, find_within
from lance_duck.duck.run.named_tables import NamedTable
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.statement.deterministic_sql import Node
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.errors import LanceDuckError

_DEEPEST: Final = 8
"""Maximum number of nested views."""


def run(proposal: IndexedCondition, request: Request, database: Database) -> Rewriting | None:
    """Restrict a table or the tables of a view. Returns None if no index excludes rows.

    A view is replaced by its query.
    """
    restricted_table = run_table(proposal, request, database)
    return _run_view(proposal, request, database) if restricted_table is None else restricted_table


def _run_view(proposal: IndexedCondition, request: Request, database: Database) -> Rewriting | None:
    name = proposal.read.name
    if name is None or proposal.read.version or not request.is_free(proposal.start, proposal.end):
        return None
    view = database.names.view(name, later=request.later)
    if view is None or proposal.qualifiers:
        return None
    try:
        query = _Views(request, database).query(view, proposal.nodes, 1)
    except LanceDuckError:
        return None  # the error is raised when the statement runs
    return None if query is None else Rewriting(tuple(proposal.reading(f"({query[0]}\n)")), tuple(query[1]))


class _Views:
    """Reads the views of one statement.

    Args:
        request: The run of the statement.
        database: The connection.
    """

    def __init__(self, request: Request, database: Database) -> None:
        self._request = request
        self._database = database
        self._inliner = ViewInliner(database.names, later=request.later)

    def query(self, view: View, conditions: Sequence[Node], depth: int) -> tuple[str, list[NamedTable]] | None:
        """Return the query of a view with restricted tables, and these tables. Returns None without any.

        Args:
            view: The view.
            conditions: Conditions on its rows.
            depth: Number of views around the query, including this one.
        """
        statement = query_of_view(view.sql)
        opening = self._request.statement.opening
        if statement is None or depth > _DEEPEST:
            return None
        edits: list[Edit] = []
        tables: list[NamedTable] = []
        is_explained = opening is not None and opening.explained
        for each in find_within(statement, conditions, is_explained=is_explained):
            source = self._source(each, view, depth)
            if source is not None:
                edits += each.reading(source[0])
                tables += source[1]
        qualified = self._inliner.edits(QueryText(statement.scopes, view)) if tables else None
        if qualified is None:
            return None
        rest = (edit for edit in qualified if not any(each.overlaps(edit.start, edit.end) for each in edits))
        return apply(statement.text, (*rest, *edits)), tables

    def _source(self, table: IndexedCondition, view: View, depth: int) -> tuple[str, list[NamedTable]] | None:
        """Return SQL that reads a table or view inside a view, and its restricted tables."""
        names, later, name = self._database.names, self._request.later, table.read.name
        if name is None or table.read.version or table.qualifiers:
            return None
        inner = names.schema_of(name, later=later, within=view.within)
        if inner is None:
            deeper = names.view(name, later=later, within=view.within)
            query = None if deeper is None else self.query(deeper, table.nodes, depth + 1)
            return None if query is None else (f"({query[0]}\n)", query[1])
        handle = inner.find(name[-1])
        source = None if handle is None else restricted_source(table, handle, self._request, self._database)
        return None if source is None else (source[0], [source[1]])
