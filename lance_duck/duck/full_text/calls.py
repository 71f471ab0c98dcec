"""Find calls of `match`, `match_phrase`, `score`, `highlight` and `snippet` in a statement. Pure.

    match(column, query [, operator := 'AND'] [, fuzziness := 1] [, prefix_length := 2] [, max_expansions := 50]
          [, boost := 2.0])
    match_phrase(column, query [, slop])
    score(table)
    highlight(column, query, …), snippet(column, query, …)

Calls without the required arguments are ignored: they may refer to other functions of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lance_duck.duck.statement.scope import Part, Scope, Scopes, is_colon, list_parts
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import Token

MATCH: Final = "match"
PHRASE: Final = "match_phrase"
SCORE: Final = "score"
MARKED: Final = ("highlight", "snippet")
FUNCTIONS: Final = (MATCH, PHRASE, SCORE, *MARKED)
_OPENS: Final = r"\b[\s\"]*(?:\(|/\*|--)"
"""Matches the text after a function name: an opening parenthesis, or a comment before it."""
_MAYBE: Final = re.compile(rf"\b(?:{'|'.join(FUNCTIONS)}){_OPENS}", re.IGNORECASE)
_NO_CALL: Final = frozenset({"from", "join", "into", "table", "macro", "function", ".", "update", "as"})
_EXTRACTS: Final = frozenset({"json_extract_string", "json_extract_path_text"})
_OPERAND_ENDS: Final = frozenset({")", "]", "}"})
_NO_ALIAS: Final = frozenset({"end", "null", "true", "false"})
_OPERATORS: Final = frozenset({"and", "or", "not", "is", "like", "ilike", "in", "between", "collate", "from", "else"})


@dataclass(frozen=True, eq=False)
class TextCall:
    """A call of one of the functions.

    Attributes:
        function: Its name, folded.
        start, end: Range in the text, in characters.
        at: Token of its name.
        positional: Positional arguments.
        named: Named arguments, as pairs of folded name and value.
        scope: The SELECT that contains it.
        clause: First word of the clause that contains it.
        is_negated: Whether it is inside an odd number of NOTs.
        headings: Column aliases to add to the SELECT and its enclosing SELECTs, as pairs of offset and alias.
    """

    function: str
    start: int
    end: int
    at: int
    positional: tuple[Part, ...]
    named: tuple[tuple[str, Part], ...]
    scope: Scope
    clause: str
    is_negated: bool
    headings: tuple[tuple[int, str], ...]

    @property
    def column(self) -> tuple[str, ...]:
        """Name parts of the first argument, or () if the argument is not a name."""
        tokens = self.positional[0].tokens
        is_name = len(tokens) % 2 == 1 and all(token.text == "." for token in tokens[1::2])
        names = tuple(token.name for token in tokens[::2])
        return tuple(str(name) for name in names) if is_name and None not in names else ()

    def of_column(self) -> TextCall | None:
        """Return the call on the JSON column instead of the value that is extracted from it.

        Recognizes `column ->> path`, `column -> key ->> key` and `json_extract_string(column, path)`. Returns None for
        other arguments.
        """
        tokens = self.positional[0].tokens
        is_function = len(tokens) > 2 and tokens[0].word in _EXTRACTS and tokens[1].text == "("
        begin = end = 2 if is_function else 0
        while end < len(tokens) and (tokens[end].text == "." if (end - begin) % 2 else tokens[end].name is not None):
            end += 1
        if end == len(tokens) or not tokens[end].source.startswith("," if is_function else "->", tokens[end].start):
            return None
        column = Part(tokens[begin:end], tokens[end].start)
        return replace(self, positional=(column, *self.positional[1:]))


@dataclass(frozen=True, eq=False)
class TextCalls:
    """All calls of a statement.

    Attributes:
        calls: Calls in text order.
        scopes: The SELECTs of the statement.
    """

    calls: tuple[TextCall, ...]
    scopes: Scopes


def may_find(sql: str) -> bool:
    """Return whether a text may contain a call. Strings and comments also count."""
    return _MAYBE.search(sql) is not None


def find_text_calls(statement: Statement) -> TextCalls | None:
    """Find the calls of one or more statements. Returns None if the text contains no calls."""
    tokens = statement.tokens
    places = [at for at in range(len(tokens) - 1) if _is_call(tokens, at)]
    if not places:
        return None
    scopes = statement.scopes
    calls = tuple(call for at in places if (call := _call(scopes, at)) is not None)
    return TextCalls(calls, scopes) if calls else None


def _is_call(tokens: Sequence[Token], at: int) -> bool:
    name = tokens[at].name
    if name is None or name.lower() not in FUNCTIONS or tokens[at + 1].text != "(":
        return False
    return not at or tokens[at - 1].text.lower() not in _NO_CALL


def _call(scopes: Scopes, at: int) -> TextCall | None:
    tokens, close = scopes.tokens, scopes.closer(at + 1)
    function = (tokens[at].name or "").lower()
    if close >= len(tokens):
        return None
    arguments = [part.named for part in list_parts(tokens, at + 2, close)]
    positional = tuple(value for name, value in arguments if name is None and value.tokens)
    others = tuple((name, value) for name, value in arguments if name is not None)
    if len(positional) < (1 if function == SCORE else 2):
        return None
    scope = scopes.scope_of(at)
    clause, _, _ = scope.clause_of(at)
    headings = tuple(_headings(scopes, at))
    negated = _is_negated(scopes, at, scope)
    start, end = tokens[at].start, tokens[close].end
    return TextCall(function, start, end, at, positional, others, scope, clause, negated, headings)


def _headings(scopes: Scopes, at: int) -> Iterator[tuple[int, str]]:
    """Yield the column aliases to add around a call, innermost first."""
    scope: Scope | None = scopes.scope_of(at)
    while scope is not None:
        clause, begin, end = scope.clause_of(at)
        if clause in ("select", "returning"):
            heading = _heading(scopes, at, begin, end)
            if heading is not None:
                yield heading
        scope = scope.outer


def _is_negated(scopes: Scopes, at: int, scope: Scope) -> bool:
    """Return whether an odd number of NOTs applies to a call or to the parentheses around it."""
    negated, place = False, at
    while place >= scope.start:
        negated ^= scopes.word(place - 1) == "not"
        place = scopes.opener(place)
    return negated


def _heading(scopes: Scopes, at: int, begin: int, end: int) -> tuple[int, str] | None:
    """Return the end and the default name of the list item that contains a call. Returns None if it has an alias.

    Args:
        scopes: Scopes of the statement.
        at: Token of the call.
        begin: First token of the list.
        end: Token after the list.
    """
    if scopes.word(begin) == "distinct":
        begin = scopes.closer(begin + 2) + 1 if scopes.word(begin + 1) == "on" else begin + 1
    for item in list_parts(scopes.tokens, begin, end):
        if item.tokens and item.start <= scopes.tokens[at].start < item.end:
            is_named = is_colon(item.tokens, 1) or _has_alias(item.tokens)
            return None if is_named else (item.end, " ".join(item.text.split()))
    return None


def _has_alias(item: Sequence[Token]) -> bool:
    """Return whether a list item ends with an alias."""
    if len(item) < 2 or item[-1].name is None or item[-1].word in _NO_ALIAS:
        return False
    before = item[-2]
    is_operand = before.text in _OPERAND_ENDS or before.text[:1].isdigit() or before.text[:1] in ("'", '"')
    return (before.word is not None and before.word not in _OPERATORS) or is_operand
