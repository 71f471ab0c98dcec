"""Tokens of a statement, cut where DuckDB's own lexer cuts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import duckdb

LONGEST: Final = 20_000
"""Maximum length of a text whose tokens are cached, and that a rule for one SELECT reads, in characters."""
_CACHED: Final = 512
_TOKEN = re.compile(
    rb"""(?P<string>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*")|(?P<word>[A-Za-z_\x80-\xff][\w$\x80-\xff]*)|=>|.""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token that is not a comment.

    Attributes:
        source: The whole text.
        start, end: Its position in the text, in characters; `end` is exclusive.
        word: An unquoted word, in lower case.
        name: The identifier that it spells, or could spell.
        path: The value of a plain string constant that ends in `.lance` or `.lance/`.
    """

    source: str
    start: int
    end: int
    word: str | None = None
    name: str | None = None
    path: str | None = None

    @property
    def text(self) -> str:
        """As it is spelled."""
        return self.source[self.start : self.end]


def tokens_of(sql: str) -> tuple[Token, ...]:
    """Return the tokens in order. DuckDB's tokenizer cuts a text once, unless it is long.

    Empty if DuckDB cannot cut the text, or if it holds half of a surrogate pair.
    """
    return _cached(sql) if len(sql) <= LONGEST else _cut(sql)


def _cut(sql: str) -> tuple[Token, ...]:
    try:
        data, cuts = sql.encode(), duckdb.tokenize(sql)
    except (duckdb.Error, UnicodeEncodeError):
        return ()
    places = _character_places(sql, data)
    tokens = []
    for offset, kind in cuts:
        match = _TOKEN.match(data, offset)
        if match is not None and "comment" not in str(kind):
            start, end = (places[offset], places[match.end()]) if places else (offset, match.end())
            tokens.append(_token(sql, start, end, match))
    return tuple(tokens)


@lru_cache(maxsize=_CACHED)
def _cached(sql: str) -> tuple[Token, ...]:
    return _cut(sql)


def _token(sql: str, start: int, end: int, match: re.Match[bytes]) -> Token:
    text = sql[start:end]
    if match["word"]:
        return Token(sql, start, end, word=text.lower(), name=text)
    if match["quoted"]:
        return Token(sql, start, end, name=text[1:-1].replace('""', '"'))
    if match["string"]:
        value = text[1:-1].replace("''", "'")
        return Token(sql, start, end, path=value if value.lower().rstrip("/").endswith(".lance") else None)
    return Token(sql, start, end)


def _character_places(sql: str, data: bytes) -> list[int]:
    """Return the character position of each byte; empty for ASCII."""
    if len(sql) == len(data):
        return []
    places = [i for i, character in enumerate(sql) for _ in character.encode()]
    return [*places, len(sql)]
