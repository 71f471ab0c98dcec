"""Finds the common table expressions and parentheses of a statement in its tokens. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.tokens import Token

QUERIES: Final = frozenset(
    {"select", "from", "with", "values", "pivot", "unpivot", "describe", "desc", "summarize", "show", "table"}
)
"""Words that begin a query."""
_CHANGES: Final = frozenset({("insert", "into"), ("insert", "or"), ("delete", "from"), ("merge", "into")})
"""First two words of changes in common table expressions. UPDATE is missing, because its second word is not a
keyword."""
_BEGINNINGS: Final = QUERIES | {"insert", "update", "delete", "merge"}


@dataclass(frozen=True)
class CommonTable:
    """A common table expression.

    Attributes:
        name: Its name, folded.
        start, end: Token range in which the name is visible. It begins after the query, or after the UNION of a
            recursive query.
        query: Token range of its query, `end` exclusive. None if its columns are renamed.
    """

    name: str
    start: int
    end: int
    query: tuple[int, int] | None


def parentheses(tokens: Sequence[Token]) -> tuple[dict[int, int], list[int]]:
    """Return the closing position of each opening parenthesis, and for each token the parenthesis around it, or -1."""
    openers: list[int] = []
    closers: dict[int, int] = {}
    around = []
    for place, token in enumerate(tokens):
        if token.text == ")" and openers:
            closers[openers.pop()] = place
        around.append(openers[-1] if openers else -1)
        if token.text == "(":
            openers.append(place)
    return closers, around


def begins_query(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a query or a change begins at this token, which is the first token in parentheses."""
    if place + 1 >= len(tokens):
        return place < len(tokens) and tokens[place].word in QUERIES
    first, second = tokens[place].word, tokens[place + 1]
    if first == "update":
        return place > 1 and tokens[place - 2].word in ("as", "materialized") and second.name is not None
    return first in QUERIES or (first, second.word) in _CHANGES


def common_tables(tokens: Sequence[Token], closers: Mapping[int, int], openers: Sequence[int]) -> Iterator[CommonTable]:
    """Yield the common table expressions of a text.

    Args:
        tokens: Tokens of the text.
        closers: The closing position of each opening parenthesis.
        openers: For each token, the parenthesis around it, or -1.
    """
    recursive: set[int] = set()  # parentheses that contain WITH RECURSIVE, or -1
    for place, token in enumerate(tokens):
        before = tokens[place - 1].text.lower() if place else ""
        if before == "recursive":
            recursive.add(openers[place])
        if token.name is None or before not in ("with", "recursive", ","):
            continue
        after = place + 1
        has_names = after < len(tokens) and tokens[after].text == "("
        if has_names:
            after = _after_keys(tokens, closers, closers.get(after, after) + 1)
        opener = _query_opener(tokens, after)
        if opener is not None:
            close = closers.get(opener, len(tokens))
            start = _union(tokens, closers, opener, close) if openers[place] in recursive else close
            end = closers.get(openers[place]) or _statement_end(tokens, place)
            yield CommonTable(folded(token.name), start, end, None if has_names else (opener + 1, close))


def _after_keys(tokens: Sequence[Token], closers: Mapping[int, int], place: int) -> int:
    """Return the position after `USING KEY (…)`, or the given position without this clause."""
    words = [each.text.lower() for each in tokens[place : place + 3]]
    return closers.get(place + 2, place) + 1 if words == ["using", "key", "("] else place


def _query_opener(tokens: Sequence[Token], place: int) -> int | None:
    """Return the opening parenthesis of the query after `AS`. Returns None for other uses, such as a window."""
    follows = [each.text.lower() for each in tokens[place : place + 4]]
    words = {"as": 1, "as materialized": 2, "as not materialized": 3}.get(" ".join(follows).split(" (")[0])
    if words is None or follows[words : words + 1] != ["("]:
        return None
    first = next((each for each in tokens[place + words :] if each.text != "("), None)
    return place + words if first is not None and first.word in _BEGINNINGS else None


def _union(tokens: Sequence[Token], closers: Mapping[int, int], opener: int, close: int) -> int:
    """Return the index of the UNION that precedes the recursive part of a query, or `close` without one."""
    while tokens[opener + 1].text == "(" and closers.get(opener + 1) == close - 1:
        opener, close = opener + 1, close - 1
    last, place = close, opener + 1
    while place < close:
        if tokens[place].word in ("union", "except") and tokens[place - 1].text != "*":
            last = place
        place = closers.get(place, place) + 1
    words = [each.word for each in tokens[last : last + 3]]
    return last if words[:1] == ["union"] and "by" not in words else close


def _statement_end(tokens: Sequence[Token], place: int) -> int:
    return next((at for at in range(place, len(tokens)) if tokens[at].text == ";"), len(tokens))
