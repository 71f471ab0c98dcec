"""Adds a note to EXPLAIN about each `match` call that runs without an index, with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from lance_duck.duck.full_text.asked_tables import AskedTable, find_asked_tables
from lance_duck.duck.names import handle_of
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.statement.head import FirstWords
from lance_duck.duck.statement.scope import list_parts
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST
from lance_duck.duck.tables.text_functions import MATCHES
from lance_duck.duck.tables.text_request import TextRequest
from lance_duck.errors import LanceDuckError
from lance_duck.scan.text.route import text_route

_KNOWN: Final = re.compile(r"\(*('(?:[^']|'')*'|\$\w+)\s*\)*::varchar", re.IGNORECASE)
"""Matches a query argument that is a constant or a parameter."""


@dataclass(frozen=True)
class StandingCall:
    """A `match` call in an explained statement.

    Attributes:
        start, end: Range in the text, in characters.
        texts: SQL of its column.
        request: The serialized `TextRequest`.
        words: SQL of its query.
        table: Its table if a search could answer the call, otherwise None.
    """

    start: int
    end: int
    texts: str
    request: str
    words: str
    table: AskedTable | None


def find_standing_calls(statement: Statement) -> tuple[StandingCall, ...]:
    """Return the `match` calls of an EXPLAIN. Empty for other statements."""
    if MATCHES not in statement.text or len(statement.text) > LONGEST or not FirstWords.of(statement.text).explain:
        return ()
    tables = {call.start: table for table in find_asked_tables(statement) for call in table.calls}
    scopes, calls = statement.scopes, []
    for at, token in enumerate(statement.tokens):
        close = scopes.closer(at + 1) if token.text == MATCHES and scopes.text(at + 1) == "(" else len(scopes.tokens)
        parts = list_parts(scopes.tokens, at + 2, close) if close < len(scopes.tokens) else []
        if len(parts) == 4 and parts[1].string is not None:
            texts, request, words = parts[0].text.strip("[]"), parts[1].string, parts[2].text
            end = scopes.tokens[close].end
            calls.append(StandingCall(token.start, end, texts, request, words, tables.get(token.start)))
    return tuple(calls)


def run(call: StandingCall, request: Request, database: Database) -> Rewriting | None:
    """Explain why a call does not use an index. Returns None if an earlier rule has replaced the call."""
    if not request.is_free(call.start, call.end):
        return None
    if call.table is not None and not request.is_free(call.table.start, call.table.end):
        return None  # a search has found the rows
    return Rewriting((), plan=f"match of {call.texts} reads every row, {_reason(call, database)}")


def _reason(call: StandingCall, database: Database) -> str:
    if _KNOWN.fullmatch(call.words.strip()) is None:
        return "because its words are neither a constant nor a parameter"
    request = TextRequest.of(call.request)
    try:
        table = call.table
        read = None if table is None else handle_of(table.read, database.catalog, database.names, later=False)
        handle = read or database.catalog.path_handle(request.table)
        has_index = text_route(handle.current().handle.snapshot, request.column, None).name is not None
    except LanceDuckError:
        return "because its table cannot be read"
    if not has_index:
        return f"because {request.table} does not have a full-text index on {request.column}"
    if read is None:
        return "because the column comes from a query or a clause that cannot return more columns"
    return "because rows of the table are used as values, or options are expressions"
