"""Tokens of a statement, cut where DuckDB's own lexer cuts.

DuckDB cuts the text that the user wrote. A text that edits make of it has the same tokens, moved, and those of the
replacements, which are cut here (`edited`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb

from lance_duck.cache import LruCache
from lance_duck.duck.statement.edits import Edit, EditedText

LONGEST: Final = 20_000
"""Maximum length of a text whose tokens are cached, and that a rule for one SELECT reads, in characters."""
_CACHED: Final = 512
_TOKEN = re.compile(
    rb"""(?P<string>'(?:[^']|'')*')|(?P<quoted>"(?:[^"]|"")*")|(?P<word>[A-Za-z_\x80-\xff][\w$\x80-\xff]*)|=>|.""",
    re.DOTALL | re.VERBOSE,
)
_REPLACEMENT: Final = re.compile(
    r"""\s+|(?P<string>'(?:[^']|'')*+')|(?P<quoted>"(?:[^"]|"")*+")|(?P<word>[a-z_][a-z0-9_$]*+(?!['"&\x80-\U0010ffff]))
    |(?P<number>\d++(?:\.\d++)?(?![\w.$]))|(?P<mark>\$)(?:\d++|(?P<named>[a-z_][a-z0-9_]*+))(?![\w$])
    |(?P<symbol>[(){}\[\],;?]|\.(?!\.)|(?::[:=]?|[*+/%=-]|\|\||[=<>]>|[<>!]=?|->>?)(?![-+*/<>=~!@#%^&|`?:]))""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
"""Tokens in which DuckDB's lexers of all versions agree."""
_ORDINALS_APART: Final = len(duckdb.tokenize("$1")) == 2
"""Whether the number of a placeholder is a token of its own: since DuckDB 2."""
_NEVER_GLUED: Final = frozenset("()[]{},; \t\r\n")
_WORDLIKE: Final = re.compile(r"[\w$\x80-\U0010ffff]", re.ASCII)


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


_TOKENS: Final = LruCache[tuple[Token, ...]](_CACHED)
_EDITED: Final = LruCache[EditedText](_CACHED)
"""Edited texts that have not been read yet."""


def tokens_of(sql: str) -> tuple[Token, ...]:
    """Return the tokens in order. DuckDB's tokenizer cuts a text once, unless it is long.

    Empty if DuckDB cannot cut the text, or if it holds half of a surrogate pair.
    """
    return _TOKENS.get(sql, lambda: _derived(sql) or _cut(sql)) if len(sql) <= LONGEST else _cut(sql)


def edited(sql: str, edits: Iterable[Edit]) -> str:
    """Return a text after edits in any order. Its tokens will derive from those of the text.

    Raises:
        ValueError: Two edits overlap.
    """
    after = EditedText.of(sql, edits)
    if after.text == sql:
        return sql
    if max(len(sql), len(after.text)) <= LONGEST:
        _EDITED.put(after.text, after)
    return after.text


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
            tokens.append(_token(sql, start, end, match.lastgroup))
    return tuple(tokens)


def _derived(sql: str) -> tuple[Token, ...] | None:
    """Return the tokens of a text that edits made. None for other texts, and if DuckDB should cut this one."""
    after = _EDITED.find(sql)
    if after is None:
        return None
    _EDITED.drop(sql)  # its source may be an edit of this text
    tokens = tokens_of(after.source)
    return _tokens_after(after, tokens) if tokens else None


def _tokens_after(after: EditedText, tokens: Sequence[Token]) -> tuple[Token, ...] | None:
    """Return the tokens of the source outside of edits, moved, and those of the replacements.

    An edit begins and ends where a token does, or among the blanks between two tokens. Returns None if an edit may not,
    or if it stands beside a comment.

    Args:
        after: The edited text.
        tokens: Tokens of its source.
    """
    source, text = after.source, after.text
    derived: list[Token] = []
    at = shift = 0
    for edit in after.edits:
        while at < len(tokens) and tokens[at].start < edit.start:
            derived.append(_moved(tokens[at], text, shift))
            at += 1
        begin = tokens[at - 1].end if at else 0
        starts_token = at < len(tokens) and edit.start == tokens[at].start
        is_between = starts_token or at == len(tokens) or edit.start == begin or source[edit.start - 1].isspace()
        while at < len(tokens) and tokens[at].start < edit.end:
            at += 1
        end = max(tokens[at - 1].end if at else 0, edit.start)
        follows = tokens[at].start if at < len(tokens) else len(source)
        is_whole = edit.end == follows or source[edit.end].isspace()
        if not (is_between and is_whole) or begin > edit.start or end > edit.end:
            return None
        unsure = "" if starts_token else source[begin : edit.start]
        unsure += "" if edit.end == follows else source[end : edit.end]
        if "--" in unsure or "/*" in unsure:
            return None
        start = edit.start + shift
        stop = start + len(edit.text)
        if _may_glue(text, start) or _may_glue(text, stop):
            return None
        if (replacement := _lexed(text, start, stop)) is None:
            return None
        derived += replacement
        shift += len(edit.text) - (edit.end - edit.start)
    derived += (_moved(token, text, shift) for token in tokens[at:])
    return tuple(derived)


def _moved(token: Token, text: str, shift: int) -> Token:
    return Token(text, token.start + shift, token.end + shift, token.word, token.name, token.path)


def _may_glue(text: str, at: int) -> bool:
    """Return whether characters on both sides of a position may be of one token."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before in _NEVER_GLUED or after in _NEVER_GLUED:
        return False
    quotes = "'" in (before, after) or '"' in (before, after)
    return quotes or "." in (before, after) or (_WORDLIKE.match(before) is None) == (_WORDLIKE.match(after) is None)


def _lexed(text: str, start: int, stop: int) -> list[Token] | None:
    """Return the tokens of a part of a text. None if DuckDB's lexer should decide."""
    tokens: list[Token] = []
    while start < stop:
        match = _REPLACEMENT.match(text, start, stop)
        if match is None:
            return None
        if match["mark"] is not None:
            tokens.append(Token(text, start, start + 1))
            if match["named"] is not None:
                tokens.append(_token(text, *match.span("named"), "word"))
            elif _ORDINALS_APART:
                tokens.append(Token(text, start + 1, start + 2))
        elif match["number"] is not None:
            tokens.append(Token(text, start, start + 1))
        elif match["symbol"] is not None:
            tokens.append(Token(text, start, start + (2 if match[0] == "=>" else 1)))
        elif match.lastgroup is not None:
            tokens.append(_token(text, *match.span(), match.lastgroup))
        start = match.end()
    return tokens


def _token(sql: str, start: int, end: int, kind: str | None) -> Token:
    text = sql[start:end]
    if kind == "word":
        return Token(sql, start, end, word=text.lower(), name=text)
    if kind == "quoted":
        return Token(sql, start, end, name=text[1:-1].replace('""', '"'))
    if kind == "string":
        value = text[1:-1].replace("''", "'")
        return Token(sql, start, end, path=value if value.lower().rstrip("/").endswith(".lance") else None)
    return Token(sql, start, end)


def _character_places(sql: str, data: bytes) -> list[int]:
    """Return the character position of each byte; empty for ASCII."""
    if len(sql) == len(data):
        return []
    places = [i for i, character in enumerate(sql) for _ in character.encode()]
    return [*places, len(sql)]
