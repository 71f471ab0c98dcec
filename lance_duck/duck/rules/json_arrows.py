"""Checks that sqlglot reads the arrows of a statement (`->`, `->>`) as DuckDB does. Pure.

sqlglot reads `j ->> 'a'::INT` as a cast of the value. DuckDB casts the path. DuckDB 1.x also reads everything to the
left of an arrow as its operand: `x AND j ->> 'a' = 'b'` is `(x AND j) ->> 'a' = 'b'`.
"""

from __future__ import annotations

from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import Token
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE


def are_arrows_plain(statement: Statement) -> bool:
    """Return whether DuckDB and sqlglot agree about the operands of all arrows before string constants."""
    tokens = statement.tokens
    places = [i for i, token in enumerate(tokens) if _is(token, "->") and _is_text(tokens, i + 1)]
    return all(_is_plain(tokens, place) for place in places)


def _is_plain(tokens: tuple[Token, ...], place: int) -> bool:
    if place + 2 < len(tokens) and _is(tokens[place + 2], "::"):
        return False
    if SPEAKS_SOURCE:
        return True
    first = place - 1
    while first >= 2 and _is_text(tokens, first) and _is(tokens[first - 1], "->"):
        first -= 2
    while first >= 2 and tokens[first].name is not None and tokens[first - 1].text == ".":
        first -= 2
    if first < 1 or tokens[first].name is None:
        return False
    before = tokens[first - 1]
    return before.text == "(" or before.word in ("where", "on")


def _is(token: Token, mark: str) -> bool:
    return token.source.startswith(mark, token.start)


def _is_text(tokens: tuple[Token, ...], place: int) -> bool:
    return place < len(tokens) and tokens[place].text.startswith("'")
