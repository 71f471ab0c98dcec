"""Finds WHERE conditions of SELECTs that call a search with `prefilter`. Pure.

    SELECT … FROM lance_vector_search('t', 'vec', [1, 2], k := 10, prefilter := true) WHERE label = 1

As in DuckDB's `lance` extension, the search then returns k rows that satisfy the condition. This module divides WHERE
at AND. `run.prefilter` passes the parts to the search, or rejects them. WHERE stays in the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.scope import Part, Scope, Scopes, TableRead, is_colon, list_parts
from lance_duck.duck.statement.text import Statement

FUNCTIONS: Final = ("lance_vector_search", "lance_fts", "lance_hybrid_search")
_SEARCH: Final = "table_name column_name query_vector k nprobes refine_factor ef metric"
_WHICH: Final = "version tag asof branch"
_POSITIONAL: Final = {
    "lance_vector_search": f"{_SEARCH} prefilter filter use_index {_WHICH}".split(),
    "lance_fts": f"table_name text_column query k prefilter filter {_WHICH}".split(),
    "lance_hybrid_search": (
        "table_name vector_column query_vector text_column query k alpha oversample_factor method nprobs nprobes "
        f"refine_factor ef metric use_index prefilter filter {_WHICH}"
    ).split(),
}
"""Parameters of each function, in order."""
_MAYBE: Final = re.compile(rf"\b(?:{'|'.join(FUNCTIONS)})\b", re.IGNORECASE)
_DEEPER: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_CASE: Final = {"case": 1, "end": -1}
_AFTER_WHERE: Final = {"using": ("sample",), "on": ("conflict",), "with": ("no", "data")}
"""Words that end WHERE, although they do not begin a clause of SELECT, with the words that follow them."""
_WORDS_OF_JOINS: Final = "join left right full outer inner cross natural semi anti asof positional lateral"
_JOINS: Final = frozenset(_WORDS_OF_JOINS.split())


@dataclass(frozen=True)
class PrefilterCondition:
    """The WHERE of a SELECT that calls a search with `prefilter`.

    Attributes:
        function: Name of the function.
        end: Offset of the call's closing parenthesis, in characters.
        arguments: Arguments, by name. Includes `prefilter`.
        alias: Alias or name of the call, folded.
        renamed: Column aliases of the call, folded.
        conditions: Parts of WHERE that AND joins.
        aliases: Expressions of the SELECT list that have an alias, by folded alias.
        is_alone: Whether the SELECT reads no other table.
        is_inner: Whether the SELECT is inside another query.
        is_change: Whether the scope is an UPDATE or DELETE, whose WHERE also contains join conditions.
        is_nullable: Whether an outer join may add rows to the search.
        stores: The kind of object that stores the text: "view", "macro", or empty.
    """

    function: str
    end: int
    arguments: Mapping[str, Part]
    alias: str
    renamed: tuple[str, ...]
    conditions: tuple[Part, ...]
    aliases: Mapping[str, Part]
    is_alone: bool
    is_inner: bool
    is_change: bool
    is_nullable: bool
    stores: str


def find(statement: Statement) -> tuple[PrefilterCondition, ...]:
    """Find the calls with `prefilter` in SELECTs with WHERE."""
    text = statement.text
    if _MAYBE.search(text) is None or "where" not in text.lower():
        return ()
    return tuple(_conditions(statement))


def _conditions(statement: Statement) -> Iterator[PrefilterCondition]:
    tokens, scopes = statement.tokens, statement.scopes
    for at, token in enumerate(tokens):
        function = folded(token.name or "")
        if function not in FUNCTIONS or scopes.text(at + 1) != "(":
            continue
        scope = scopes.scope_of(at)
        where = next((place for word, place in scope.clauses if word == "where"), None)
        close = scopes.closer(at + 1)
        if where is None or close >= len(tokens):
            continue
        arguments = _arguments(function, list_parts(tokens, at + 2, close))
        read = next((each for each in scope.tables if each.place and at in range(*each.place)), None)
        if "prefilter" not in arguments or scope.clause_of(at)[0] != "from" or (read is not None and read.is_hidden):
            continue
        _, begin, end = scope.clause_of(where + 1)
        yield PrefilterCondition(
            function,
            tokens[close].start,
            arguments,
            folded(_alias(scopes, read, at)),
            _renamed(scopes, read),
            tuple(_parts(scopes, begin, _end(scopes, begin, end))),
            _aliases(scopes, scope),
            len(scope.tables) == 1,
            scope.outer is not None,
            any(word == "set" or (word == "from" and scopes.word(at - 1) == "delete") for word, at in scope.clauses),
            _is_nullable(scopes, scope, at, close),
            _stores(scopes, at),
        )


def _arguments(function: str, parts: Sequence[Part]) -> dict[str, Part]:
    """Return the arguments of a call, by name."""
    arguments: dict[str, Part] = {}
    for name, part in zip((*_POSITIONAL[function], *("" for _ in parts)), parts, strict=False):
        named, value = part.named
        if value.tokens and (named or name):
            arguments[named or name] = value
    return arguments


def _alias(scopes: Scopes, read: TableRead | None, at: int) -> str:
    if read is None and is_colon(scopes.tokens, at - 1):  # FROM alias: call
        return scopes.name(at - 2) or ""
    return (read.alias if read is not None else "") or scopes.name(at) or ""


def _renamed(scopes: Scopes, read: TableRead | None) -> tuple[str, ...]:
    """Return the column aliases in parentheses after the alias of a call."""
    if read is None or not read.is_called or scopes.text(read.end) != "(":
        return ()
    parts = list_parts(scopes.tokens, read.end + 1, scopes.closer(read.end))
    return tuple(folded(part.tokens[0].name or "") for part in parts if part.tokens)


def _end(scopes: Scopes, begin: int, end: int) -> int:
    """Return the token after WHERE."""
    depth = 0
    for at in range(begin, end):
        depth += _DEEPER.get(scopes.text(at), 0)
        words = _AFTER_WHERE.get(scopes.word(at) or "")
        if depth == 0 and words and all(scopes.word(at + i) == word for i, word in enumerate(words, 1)):
            return at
    return end


def _parts(scopes: Scopes, begin: int, end: int) -> Iterator[Part]:
    """Divide a condition at AND."""
    if scopes.text(begin) == "(" and scopes.closer(begin) == end - 1 and not scopes.is_query(begin):
        yield from _parts(scopes, begin + 1, end - 1)
        return
    depth = ranges = 0
    cuts = [begin - 1]
    for at in range(begin, end):
        depth += _DEEPER.get(scopes.text(at), 0) + _CASE.get(scopes.word(at) or "", 0)
        word = scopes.word(at) if depth == 0 and scopes.text(at - 1) != "." else None
        if word == "or":
            cuts = [begin - 1]
            break
        if word == "and" and not ranges:
            cuts.append(at)
        ranges += (word == "between") - (word == "and" and ranges > 0)
    for first, last in zip(cuts, [*cuts[1:], end], strict=True):
        if len(cuts) > 1:
            yield from _parts(scopes, first + 1, last)
        elif last > first + 1:
            tokens = scopes.tokens
            yield Part(tokens[begin:end], tokens[end].start if end < len(tokens) else len(tokens[0].source))


def _aliases(scopes: Scopes, scope: Scope) -> dict[str, Part]:
    """Return the expressions of the SELECT list that have an alias."""
    select = next((place for word, place in scope.clauses if word == "select"), None)
    if select is None:
        return {}
    _, begin, end = scope.clause_of(select + 1)
    aliases: dict[str, Part] = {}
    for part in list_parts(scopes.tokens, begin, end):
        if len(part.tokens) > 2 and part.tokens[-2].word == "as" and part.tokens[-1].name is not None:
            aliases[folded(part.tokens[-1].name)] = Part(part.tokens[:-2], part.tokens[-2].start)
    return aliases


def _is_nullable(scopes: Scopes, scope: Scope, at: int, close: int) -> bool:
    """Return whether an outer join may return rows without a row of the search."""
    before = at - 1
    words = set()
    while scopes.word(before) in _JOINS or scopes.text(before) == "(":
        words.add(scopes.word(before))
        before -= 1
    _, _, end = scope.clause_of(at)
    after = {scopes.word(place) for place in range(close, end)}
    return bool(words & {"left", "full"} or after & {"right", "full"})


def _stores(scopes: Scopes, at: int) -> str:
    """Return the kind of object that a CREATE makes of the statement: "view", "macro", or empty."""
    begin = max((place for place in range(at) if scopes.text(place) == ";"), default=-1) + 1
    words = [scopes.word(begin + i) for i in range(5)]
    if words[0] != "create":
        return ""
    kinds = {"view": "view", "macro": "macro", "function": "macro"}
    return next((kinds[word] for word in words[1:] if word in kinds), "")
