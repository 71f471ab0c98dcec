"""`WHERE match(…)` carried out: a search finds the rows, and the statement reads these alone.

The conditions are then known to hold, and are left out, unless the statement is read at some later time. Scores stay
calls: of the rows that are left.
"""

from __future__ import annotations

from lance_duck.duck.rules.text_match import Best, MatchCall, MatchSelect
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.named_tables import named
from lance_duck.duck.run.parameters import Given
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import about_condition
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.tables.handle import TableHandle, pinned_versions
from lance_duck.duck.tables.matched_table import MatchAsk, MatchedTable
from lance_duck.duck.tables.table import select_all
from lance_duck.duck.tables.text_request import TextRequest
from lance_duck.errors import LanceDuckError
from lance_duck.scan.text.query.tree import MatchQuery, PhraseQuery


def run(asked: MatchSelect, request: Request, database: Database) -> Rewriting | None:
    """Put the rows that match in the place of a table; None where the table is not ours, or words are missing."""
    if not request.is_free(asked.start, asked.end):
        return None
    handle = database.names.table(asked.name, later=request.later)
    if handle is None or (request.later and pinned_versions() is not None):
        return None
    try:
        ask = MatchAsk(tuple(_query(call, request.given) for call in asked.calls))
        if asked.best is not None:
            ask = _best(ask, asked, asked.best, request, database, handle)
        holds = database.names.constancy() if request.later and ask.wanted is not None else _always
        found = MatchedTable(handle.reader(), ask, holds)
        found.rows()  # what makes no sense is for the statement itself to say
    except (NotFoundHere, LanceDuckError):
        return None
    table = named(database.native, found)
    alias = "" if asked.alias is None else f" AS {quoted(asked.alias)}"
    edits = [Edit(asked.start, asked.end, f"({select_all(quoted(table.name))}){alias}")]
    if not request.later:
        edits += [Edit(call.start, call.end, _known(call)) for call in asked.calls]
    return Rewriting(tuple(edits), (table,))


def _query(call: MatchCall, given: Given) -> MatchQuery | PhraseQuery:
    words = given.value(call.key) if call.words is None else call.words
    if not isinstance(words, str):
        raise NotFoundHere("the words are no text")
    return TextRequest.of(call.request).query(words, "")


def _known(call: MatchCall) -> str:
    """Return what stands for a condition that holds; its parameter stays, for DuckDB refuses values without a use."""
    return f"(typeof({call.mark}) IS NOT NULL)" if call.mark else "true"


def _best(
    ask: MatchAsk, asked: MatchSelect, best: Best, request: Request, database: Database, handle: TableHandle
) -> MatchAsk:
    """Return what is asked for, limited to the best rows where the other conditions mean what a filter means."""
    values = [request.given.value(key) for key in best.where_keys]
    about = about_condition(best.where, best.where_columns, handle.current().schema, values)
    if not database.names.dialect(asked.name, later=request.later).is_usual(about):
        return ask
    wanted = request.given.number(best.limit) + request.given.number(best.offset)
    where = (best.where, values) if values else best.where
    return MatchAsk(ask.queries, wanted, where) if wanted else ask


def _always() -> bool:
    return True
