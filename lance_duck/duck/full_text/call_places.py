"""Analyze the context of a call: whether it treats NULL like false, and whether rows are grouped. Pure."""

from __future__ import annotations

from typing import Final

from lance_duck.duck.statement.scope import Scope, Scopes

CONDITION: Final = "__lance_condition_"
"""Name prefix of columns for pushed-down calls whose conditions treat NULL like false."""
_KEPT: Final = frozenset({"view", "macro", "function", "trigger"})
_GROUPED: Final = frozenset({"select", "having", "order", "qualify", "group"})
"""Clauses whose columns must be grouped or aggregated."""
_TAKE_ROWS: Final = (
    "max min sum avg mean median count any_value arg_max arg_min max_by min_by first last list array_agg bool_or "
    "bool_and count_if filter"
)
_AGGREGATES: Final = frozenset(_TAKE_ROWS.split())
_STARTS: Final = frozenset({"where", "on", "having", "qualify"})
_FOLLOW_CONDITIONS: Final = (
    "and or ) ; group having window qualify order limit offset using union except intersect returning join inner left "
    "right full cross natural semi anti asof positional"
)
_ENDS: Final = frozenset(_FOLLOW_CONDITIONS.split())
_BEFORE_OTHERS: Final = (
    "case when then else end between select set by , [ ] { } returning from join limit offset group order window values"
)
_INSIDE: Final = frozenset(_BEFORE_OTHERS.split())
"""Words that precede an expression outside of conditions."""


def is_kept(scopes: Scopes, at: int) -> bool:
    """Return whether DuckDB stores the statement that contains a token, as a view, macro or prepared statement."""
    first = max((place + 1 for place in range(at) if scopes.text(place) == ";"), default=0)
    words = [scopes.word(place) for place in range(first, first + 6)]
    return words[0] == "prepare" or (words[0] == "create" and not _KEPT.isdisjoint(words))


def is_grouped(scopes: Scopes, at: int, scope: Scope) -> bool:
    """Return whether DuckDB would require the call's generated column in GROUP BY.

    Args:
        scopes: The text.
        at: Token of the call's name.
        scope: The SELECT that reads the table.
    """
    if scope.clause_of(at)[0] not in _GROUPED or all(word != "group" for word, _ in scope.clauses):
        return False
    while at >= scope.start:
        at = scopes.opener(at)
        if scopes.word(at - 1) in _AGGREGATES:
            return False
    return True


def null_is_false(scopes: Scopes, at: int, close: int) -> bool:
    """Return whether a call is part of a condition that combines it only with AND and OR.

    Args:
        scopes: The text.
        at: Token of the call's name.
        close: Token of the closing parenthesis.
    """
    while True:
        if close + 1 < len(scopes.tokens) and scopes.text(close + 1).lower() not in _ENDS:
            return False
        before = scopes.text(at - 1).lower()
        if before in _STARTS:
            return True
        if before in ("and", "or"):
            before, at = _level_start(scopes, at)
            if before in _STARTS:
                return True
        elif before == "(":
            at -= 1
        if before != "(":
            return False
        close = scopes.closer(at)


def _level_start(scopes: Scopes, at: int) -> tuple[str, int]:
    """Return the word or parenthesis before the condition that contains a token, and its index."""
    opener = scopes.opener(at)
    for place in range(at - 1, opener, -1):
        if scopes.opener(place) == opener and scopes.text(place).lower() in _STARTS | _INSIDE:
            return scopes.text(place).lower(), place
    return scopes.text(opener) if opener >= 0 else "", opener
