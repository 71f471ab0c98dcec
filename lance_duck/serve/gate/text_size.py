"""Limits of SQL texts. DuckDB and the stages of this package need more than linear time for the texts beyond them.

DuckDB's deadline does not stop its parser and its binder, so these texts must not reach them.

| counted | why |
|---|---|
| characters, tokens | linear time, about 10 µs for each token |
| open brackets | the parser needs memory for the square of their number |
| lists and structs inside each other | the binder needs time for the square of their levels |
| parts of a dotted name | quadratic time in the binder |
| set operations | quadratic time |
| tables of FROM, but not the first one after a set operation | quadratic time, and more in the optimizer |
| lambdas inside each other | the binder's time grows with each level by a factor |
"""

from __future__ import annotations

from typing import Final

from lance_duck.duck.statement.tokens import Token, tokens_of
from lance_duck.serve.gate.refusals import RequestError

LONGEST: Final = 1 << 16
"""In characters."""
_MOST_TOKENS: Final = 20_000
_DEEPEST: Final = 200
"""Levels of brackets."""
_DEEPEST_LISTS: Final = 12
_MOST_PARTS: Final = 100
_MOST_SET_OPERATIONS: Final = 500
_MOST_TABLES: Final = 50
_DEEPEST_LAMBDAS: Final = 6

_OPENING: Final = frozenset("([{")
_LISTS: Final = frozenset("[{")
_CLOSING: Final = frozenset(")]}")
_SET_OPERATIONS: Final = frozenset(("union", "intersect", "except"))
_AFTER_FROM: Final = frozenset(
    (
        *("select", "where", "group", "having", "order", "limit", "window", "qualify", "offset", "set", "returning"),
        *_SET_OPERATIONS,
    )
)
"""Words that end a list of tables."""
_BEFORE_NAMES: Final = frozenset(("as", ".", "*"))
"""What precedes a set operation's word that is a name, or that excludes columns."""
_WORDY_CALLS: Final = frozenset(("extract", "substring", "trim", "overlay"))
"""Functions whose arguments are separated by FROM and FOR."""
_PARAMETERS: Final = "pass long lists and vectors as parameters"
_SPLIT: Final = "split the statement, for example with views"


def check_size(text: str) -> None:
    """Check the size of a text. Raises RequestError if it is too long, or has too many parts of a kind."""
    _check("the SQL text is too long", len(text), LONGEST, "characters", _PARAMETERS)
    tokens = tokens_of(text)
    _check("the SQL text has too many words and signs", len(tokens), _MOST_TOKENS, "", _PARAMETERS)
    counts = _CountedParts()
    for at, token in enumerate(tokens):
        counts.add(token, tokens[at + 1] if at + 1 < len(tokens) else None)
    while counts.levels > 1:
        counts.leave()
    counts.check_lambdas()


def _check(what: str, found: int, limit: int, unit: str, remedy: str) -> None:
    if found > limit:
        raise RequestError(what, expected=f"at most {limit} {unit}".rstrip(), found=found, remedy=remedy)


class _BracketLevel:
    """What a pair of brackets contains.

    Attributes:
        lists: Number of open lists and structs, with this one.
        is_wordy: Whether FROM and FOR separate arguments of a function.
        is_from: Whether a comma separates tables now.
        is_branch: Whether a set operation has begun a SELECT that does not have a table yet.
        lambdas: Number of lambdas directly inside.
        inner: Maximum number of lambdas inside each other in an inner pair.
    """

    __slots__ = ("inner", "is_branch", "is_from", "is_wordy", "lambdas", "lists")

    def __init__(self, lists: int, *, is_wordy: bool = False) -> None:
        self.lists = lists
        self.is_wordy = is_wordy
        self.is_from = False
        self.is_branch = False
        self.lambdas = 0
        self.inner = 0


class _CountedParts:
    """Counts the parts of a text, one token after the other."""

    def __init__(self) -> None:
        self._levels = [_BracketLevel(0)]
        self._parts = 1
        self._set_operations = 0
        self._tables = 0
        self._before = "", ""  # the last two tokens: words, and first characters of others

    @property
    def levels(self) -> int:
        """Number of open brackets, and one."""
        return len(self._levels)

    def add(self, token: Token, following: Token | None) -> None:
        """Count a token. Raises RequestError."""
        first = token.source[token.start]
        if first in _OPENING:
            lists = self._levels[-1].lists + (first in _LISTS)
            self._levels.append(_BracketLevel(lists, is_wordy=first == "(" and self._before[1] in _WORDY_CALLS))
            _check("the brackets are nested too deeply", self.levels - 1, _DEEPEST, "levels", _SPLIT)
            _check("the lists are nested too deeply", lists, _DEEPEST_LISTS, "levels", _PARAMETERS)
        elif first in _CLOSING and self.levels > 1:
            self.leave()
        self._count_parts(first)
        self._count_tables(token, first)
        level = self._levels[-1]
        is_word = token.word == "lambda" or (token.word == "for" and not level.is_wordy)
        if is_word or (first == "-" and _is_arrow(token, following)):
            level.lambdas += 1
        if token.word in _SET_OPERATIONS:
            level.is_branch = self._before[1] not in _BEFORE_NAMES
            self._set_operations += 1
            _check("the statement has too many set operations", self._set_operations, _MOST_SET_OPERATIONS, "", _SPLIT)
        self._before = self._before[1], token.word or first

    def leave(self) -> None:
        """Count the end of a pair of brackets. Raises RequestError."""
        nested = self.check_lambdas()
        self._levels.pop()
        outer = self._levels[-1]
        outer.inner = max(outer.inner, nested)

    def check_lambdas(self) -> int:
        """Return the number of lambdas inside each other in the last pair of brackets. Raises RequestError."""
        level = self._levels[-1]
        nested = level.lambdas + level.inner
        _check("too many lambdas are inside each other", nested, _DEEPEST_LAMBDAS, "levels", _SPLIT)
        return nested

    def _count_parts(self, first: str) -> None:
        if first == ".":
            self._parts += 1
            _check("a name has too many parts", self._parts, _MOST_PARTS, "", "name fewer levels")
        elif self._before[1] != ".":
            self._parts = 1

    def _count_tables(self, token: Token, first: str) -> None:
        level = self._levels[-1]
        is_begin = token.word == "join" or (token.word == "from" and not self._is_operator(level))
        if is_begin:
            level.is_from = True
        elif token.word in _AFTER_FROM:
            level.is_from = False
        if is_begin and level.is_branch:
            level.is_branch = False
        elif is_begin or (first == "," and level.is_from):
            self._tables += 1
            _check("the statement reads too many tables", self._tables, _MOST_TABLES, "", _SPLIT)

    def _is_operator(self, level: _BracketLevel) -> bool:
        """Return whether FROM is part of a function or of IS DISTINCT FROM."""
        return level.is_wordy or (self._before[1] == "distinct" and self._before[0] in ("is", "not"))


def _is_arrow(token: Token, following: Token | None) -> bool:
    """Return whether an arrow may begin a lambda, and not the path of a JSON value."""
    if token.source[token.start : token.start + 3] == "->>" or token.source[token.start + 1 :][:1] != ">":
        return False
    return following is None or following.source[following.start] not in "'$0123456789"
