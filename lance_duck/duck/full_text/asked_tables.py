"""Finds the tables to which `match` and `score` calls refer, and their ranges in the text. Pure.

    SELECT *, __lance_score(["t"."body"], …) FROM t JOIN u ON … WHERE NOT __lance_match(["t"."body"], …) OR k > 3

`rewrite` may generate these calls in any expression. Each call becomes a column of the source that replaces the table
(see `match_columns`). Other parts of the statement must not include these columns. A table is therefore left unchanged
if its rows are used as values, or if a star cannot exclude columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from lance_duck.duck.full_text.call_places import CONDITION, is_grouped, is_kept, null_is_false
from lance_duck.duck.full_text.unseen_columns import Star, UnseenColumns
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.scope import Part, Scope, Scopes, TableRead, list_parts
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST
from lance_duck.duck.tables.text_functions import MATCHES, SCORES

_MARK: Final = re.compile(r"\$\w+")


@dataclass(frozen=True)
class AskedCall:
    """A `match` or `score` call whose query is a constant or a parameter.

    Attributes:
        start, end: Range of the call in the text, in characters.
        is_score: Whether the call is a `score`.
        texts: SQL for a list of strings, or for a list column.
        request: The serialized `TextRequest`.
        words: The query string, or None for a parameter.
        mark: Source text of the parameter. Empty for a constant.
        null_is_false: Whether the statement treats NULL like false.
    """

    start: int
    end: int
    is_score: bool
    texts: str
    request: str
    words: str | None
    mark: str
    null_is_false: bool


@dataclass(frozen=True, eq=False)
class AskedTable:
    """A table that a SELECT reads.

    Attributes:
        read: The table's mention in the statement.
        start, end: Range of the name in the text, in characters.
        calls: Calls in text order.
        stars: Stars in text order.
        may_be_value: Whether the table name may refer to whole rows, unless a column has the same name.
        is_kept: Whether DuckDB stores the statement and runs it later: as a view, a macro or a prepared statement.
    """

    read: TableRead
    start: int
    end: int
    calls: tuple[AskedCall, ...]
    stars: tuple[Star, ...]
    may_be_value: bool
    is_kept: bool


def find_asked_tables(statement: Statement) -> tuple[AskedTable, ...]:
    """Return the tables that the `match` and `score` calls of a statement refer to."""
    if MATCHES not in statement.text and SCORES not in statement.text:
        return ()
    if len(statement.text) > LONGEST or statement.nearest:
        return ()
    return tuple(_Reader(statement.scopes).tables())


class _Reader:
    """Reader of one statement.

    Args:
        scopes: Its SELECTs.
    """

    def __init__(self, scopes: Scopes) -> None:
        self._tokens = scopes.tokens
        self._scopes = scopes
        self._columns = UnseenColumns(scopes.tokens, scopes)

    def tables(self) -> Iterator[AskedTable]:
        """Yield the tables that calls refer to."""
        calls: dict[TableRead, tuple[Scope, list[AskedCall]]] = {}
        for at, token in enumerate(self._tokens[:-1]):
            if token.text in (MATCHES, SCORES) and self._scopes.text(at + 1) == "(":
                asked_call = self._call(at)
                if asked_call is not None:
                    table_read, scope, call = asked_call
                    calls.setdefault(table_read, (scope, []))[1].append(call)
        for table_read, (scope, mine) in calls.items():
            stars = self._columns.stars(table_read, scope)
            if table_read.place is not None and stars is not None:
                start, end = self._tokens[table_read.place[0]].start, self._tokens[table_read.place[1] - 1].end
                is_value = self._columns.may_be_value(table_read, scope)
                yield AskedTable(
                    table_read, start, end, tuple(mine), tuple(stars), is_value, is_kept(self._scopes, scope.start)
                )

    # Calls.

    def _call(self, at: int) -> tuple[TableRead, Scope, AskedCall] | None:
        tokens, close = self._tokens, self._scopes.closer(at + 1)
        arguments = list_parts(tokens, at + 2, close) if close < len(tokens) else []
        if len(arguments) != 4 or arguments[1].string is None:
            return None
        texts, request, words, _ = arguments
        table_read = self._read_of(texts, self._scopes.scope_of(at))
        query = _words(words)
        if table_read is None or query is None:
            return None
        if is_grouped(self._scopes, at, table_read[1]):
            return None
        is_score = tokens[at].text == SCORES
        is_known, mark = query.string, "" if query.string is not None else query.text.strip()
        call = AskedCall(
            start=tokens[at].start,
            end=tokens[close].end,
            is_score=is_score,
            texts=texts.text,
            request=request.string or "",
            words=is_known,
            mark=mark,
            null_is_false=null_is_false(self._scopes, at, close) or self._is_carried_condition(close),
        )
        return *table_read, call

    def _is_carried_condition(self, close: int) -> bool:
        """Return whether a call was pushed down from a condition that treats NULL like false."""
        name = self._scopes.name(close + 2) if self._scopes.word(close + 1) == "as" else None
        return name is not None and name.startswith(CONDITION)

    def _read_of(self, texts: Part, scope: Scope | None) -> tuple[TableRead, Scope] | None:
        """Return the table that contains a call's column, and the SELECT that reads the table."""
        tokens = texts.tokens[1:] if texts.tokens[0].text == "[" else texts.tokens
        tokens = tokens[2:] if tokens[0].word == "cast" else tokens  # JSON cast to a string
        if len(tokens) < 3 or tokens[0].name is None or tokens[1].text != ".":
            return None
        while scope is not None:
            for table_read in scope.tables:
                if folded(table_read.alias) == folded(tokens[0].name):
                    is_named = table_read.name is not None or table_read.path is not None
                    return (table_read, scope) if is_named else None
            scope = scope.outer
        return None


def _words(part: Part) -> Part | None:
    """Return the operand of `(…)::VARCHAR` if it is a constant or a parameter, otherwise None."""
    tokens = part.tokens
    close = next((at for at, token in enumerate(tokens) if token.text == ")"), 0)
    opened = next((at for at, token in enumerate(tokens) if token.text != "("), 0)
    if not opened or close <= opened:
        return None
    inner = Part(tokens[opened:close], tokens[close].start)
    rest = "".join(token.text for token in tokens[close:]).lower()
    is_known = inner.string is not None or _MARK.fullmatch(inner.text.strip()) is not None
    return inner if is_known and rest in (")" * opened + "::varchar", ")" * opened + ":varchar") else None
