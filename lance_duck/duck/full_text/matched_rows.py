"""Run `WHERE match(…) ORDER BY score(t) DESC LIMIT k` with a search, and read only the best rows.

The match conditions are then true and are dropped, unless the result is read later. The search also returns the scores.
The `score` calls are kept if the result is read later, or if several conditions have a score.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_duck.duck.full_text.asked_tables import AskedTable, find_asked_tables
from lance_duck.duck.full_text.match_columns import MatchColumns
from lance_duck.duck.rules.text_match import MatchCall, MatchSelect
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.named_tables import named
from lance_duck.duck.run.parameters import ParameterValues
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import About, about_condition
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.tables.computed_columns import MatchColumn
from lance_duck.duck.tables.handle import TableHandle, pinned_versions
from lance_duck.duck.tables.matched_table import BestMatches, MatchAsk, MatchedTable
from lance_duck.duck.tables.table import select_all
from lance_duck.duck.tables.text_request import TextRequest
from lance_duck.errors import LanceDuckError
from lance_duck.scan.text.query.tree import MatchQuery, PhraseQuery


def run(proposal: MatchSelect, request: Request, database: Database) -> Rewriting | None:
    """Replace a table with its best rows. Returns None if a search cannot find them."""
    if not request.is_free(proposal.table.start, proposal.table.end):
        return None
    handle = database.names.table(proposal.table.name, later=request.later)
    if handle is None or (request.later and pinned_versions() is not None):
        return None
    try:
        ask = _ask(proposal, request, database, handle)
        if ask is None:
            return None
        matches = BestMatches(ask, database.names.constancy() if request.later else _always)
        columns, scores = _scores(proposal, request, handle, matches)
        matched = MatchedTable(handle.reader(), matches, columns)
        matched.rows()  # the error is raised when the statement runs
    except (NotFoundHere, LanceDuckError):
        return None
    table = named(database.native, matched)
    edits = [proposal.table.reading(f"({select_all(quoted(table.name))})"), *scores]
    if not request.later:
        edits += [Edit(call.start, call.end, _known(call)) for call in proposal.calls]
    return Rewriting(tuple(edits), (table,))


def _scores(
    proposal: MatchSelect, request: Request, handle: TableHandle, matches: BestMatches
) -> tuple[Sequence[MatchColumn], Sequence[Edit]]:
    """Return columns for the scores of a search, and the edits that read them."""
    tables: tuple[AskedTable, ...] = request.statement.result("asked tables", find_asked_tables)
    asked_table = next((each for each in tables if each.start == proposal.table.start), None)
    if request.later or asked_table is None or len(proposal.calls) > 1:
        return (), ()
    match_columns = MatchColumns.of_scores(asked_table, request.values, handle.current(), matches)
    if not all(request.is_free(edit.start, edit.end) for edit in match_columns.edits):
        return (), ()
    return match_columns.columns, match_columns.beside(asked_table)


def _query(call: MatchCall, parameters: ParameterValues) -> MatchQuery | PhraseQuery:
    words = parameters.value(call.key) if call.words is None else call.words
    if not isinstance(words, str):
        raise NotFoundHere("the words are not text")
    return TextRequest.of(call.request).query(words, "")


def _known(call: MatchCall) -> str:
    """Return the replacement for a condition that is always true.

    It keeps the parameter, because DuckDB rejects unused values.
    """
    return f"(typeof({call.mark}) IS NOT NULL)" if call.mark else "true"


def _ask(proposal: MatchSelect, request: Request, database: Database, handle: TableHandle) -> MatchAsk | None:
    """Return the search, or None if the other conditions are not equivalent to a filter."""
    best = proposal.best
    condition, where = best.condition, None
    about = About.SYNTAX
    if condition is not None:
        values = request.values.values(condition.keys)
        about = about_condition(condition, handle.current().schema, values)
        where = (condition.where, values) if values else condition.where
    if not database.names.dialect(proposal.table.name, later=request.later).is_usual(about):
        return None
    limit = request.values.number(best.limit) + request.values.number(best.offset)
    return MatchAsk(tuple(_query(call, request.values) for call in proposal.calls), limit, where) if limit else None


def _always() -> bool:
    return True
