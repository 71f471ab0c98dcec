"""Finds WHERE conditions on searches with a prefilter: `lance_vector_search(…, prefilter := true)`. Pure.

    SELECT … FROM lance_vector_search('t', 'vec', [1, 2], k := 10, prefilter := true) WHERE label = 1

As in DuckDB's `lance` extension, the search then returns k rows that satisfy the condition. Parts of the condition with
only constants and columns of the table are passed as the `filter` argument. WHERE is kept. Calls with a `filter`, or
without `prefilter`, are left unchanged: WHERE then applies to the found rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lance_duck.duck.rules.table_read import without_table
from lance_duck.duck.statement.clauses import closing, divided
from lance_duck.duck.statement.deterministic_sql import is_plain_condition, sql_of
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST, Token

FUNCTIONS: Final = ("lance_vector_search", "lance_fts", "lance_hybrid_search")
_MAYBE: Final = re.compile(rf"\b(?:{'|'.join(FUNCTIONS)})\b.*\bprefilter\b.*\bwhere\b", re.IGNORECASE | re.DOTALL)
_NAMED: Final = re.compile(r"\"?(\w+)\"?\s*(?::=|=>|=)\s*")
_ENDS: Final = frozenset(
    [
        "group",
        "having",
        "window",
        "qualify",
        "order",
        "limit",
        "offset",
        "union",
        "except",
        "intersect",
        "using",
        ")",
        ";",
    ]
)
_MADE: Final = ("_distance", "_score", "_hybrid_score")
"""Columns that only search results have."""


@dataclass(frozen=True)
class PrefilterCondition:
    """A condition for the search of a call.

    Attributes:
        function: Name of the function.
        start, end: Range of the call in the text, in characters. `end` follows the closing parenthesis.
        condition: SQL with unqualified columns and constants.
    """

    function: str
    start: int
    end: int
    condition: str


def find(statement: Statement) -> tuple[PrefilterCondition, ...]:
    """Find the calls that are the only item of a FROM, with a WHERE after it."""
    if len(statement.text) > LONGEST or not _MAYBE.search(statement.text):
        return ()
    return tuple(_conditions(statement))


def _conditions(statement: Statement) -> Iterator[PrefilterCondition]:
    tokens = statement.tokens
    for at, token in enumerate(tokens):
        if token.word not in FUNCTIONS or tokens[at - 1].word != "from" or at + 1 >= len(tokens):
            continue
        close = closing(tokens, at + 1) if tokens[at + 1].text == "(" else None
        if close is None or not _asks(tokens[at + 2 : close]):
            continue
        alias, where = _alias(tokens, token.word, close + 1)
        if where is None:
            continue
        text = statement.text[tokens[where].end : _end(tokens, where + 1, len(statement.text))]
        condition = _plain(text, alias)
        if condition:
            yield PrefilterCondition(token.word, token.start, tokens[close].end, condition)


def _asks(arguments: Sequence[Token]) -> bool:
    """Return whether a call has `prefilter := true` and no `filter`."""
    prefilters = False
    for part in divided(arguments, ","):
        text = part[0].source[part[0].start : part[-1].end] if part else ""
        named = _NAMED.match(text)  # operator tokens contain only the first character
        if named is None:
            continue
        if named[1].lower() == "filter":
            return False
        prefilters = prefilters or (named[1].lower() == "prefilter" and text[named.end() :].lower() == "true")
    return prefilters


def _alias(tokens: Sequence[Token], function: str, at: int) -> tuple[str, int | None]:
    """Return the alias or name of a call, and the index of the WHERE that directly follows, or None."""
    alias = function
    place = at + (at < len(tokens) and tokens[at].word == "as")
    if place < len(tokens) and tokens[place].name is not None and tokens[place].word != "where":
        alias, place = tokens[place].name or "", place + 1
    is_where = place < len(tokens) and tokens[place].word == "where"
    return alias.lower(), place if is_where else None


def _end(tokens: Sequence[Token], at: int, longest: int) -> int:
    """Return the end offset of the clause that begins at a token, in characters."""
    depth = 0
    for token in tokens[at:]:
        if depth == 0 and token.text.lower() in _ENDS:
            return token.start
        depth += {"(": 1, ")": -1}.get(token.text, 0)
    return longest


def _plain(text: str, alias: str) -> str:
    """Return the parts of a condition that are equivalent to a filter. Empty if no part is equivalent."""
    try:
        tree = sqlglot.parse_one(text, read="duckdb")
    except (SqlglotError, RecursionError):
        return ""
    parts = tree.flatten() if isinstance(tree, exp.And) else [tree]
    bare = [without_table(part, alias, _MADE) for part in parts]
    return " AND ".join(
        f"({sql_of(part)})"
        for part in bare
        if part is not None and not part.find(exp.Placeholder) and is_plain_condition(part, [""])
    )
