"""Tokenize statements as DuckDB's lexer does.

DuckDB tokenizes the user's text. The tokens of an edited text are derived from the tokens of its source: unchanged
tokens are shifted, and this module tokenizes the replacements (`edited`).
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
"""Maximum text length for cached tokens and for rules that match one SELECT, in characters."""
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
"""Matches tokens that all DuckDB versions lex identically."""
_ORDINALS_APART: Final = len(duckdb.tokenize("$1")) == 2
"""Whether DuckDB tokenizes `$` and the number separately. True since DuckDB 2."""
_SPACE: Final = re.compile(
    r"""(?P<space>[\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff]|\u00a0(?!\Z))|'[^']*+(?:'|\Z)|"[^"]*+(?:"|\Z)|--[^\n\r]*+"""
)
"""Matches a Unicode space, or a string, a quoted name or a comment, where DuckDB keeps such spaces."""
_SPACES_VARY: Final = re.compile(r"\\'|\$\D")
"""Matches quotes that DuckDB does not recognize when it replaces spaces."""
_NEVER_GLUED: Final = frozenset("()[]{},; \t\r\n")
_WORDLIKE: Final = re.compile(r"[\w$\x80-\U0010ffff]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Token:
    """A token that is not a comment.

    Attributes:
        source: The whole text.
        start, end: Range in the text, in characters. `end` is exclusive.
        word: An unquoted word, in lower case.
        name: Identifier value of a word, including keywords, or of a quoted name.
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
        """Source text of the token."""
        return self.source[self.start : self.end]


_TOKENS: Final = LruCache[tuple[Token, ...]](_CACHED)
_EDITED: Final = LruCache[EditedText](_CACHED)
"""Edited texts that have not been read yet."""


def plain_spaces(sql: str) -> str:
    """Replace Unicode spaces by spaces, as DuckDB does before it parses a statement. Strings and names keep theirs.

    A text with an escaped quote or `$$` is returned unchanged, because DuckDB also replaces spaces in such strings.
    """
    if sql.isascii() or _SPACES_VARY.search(sql) is not None:
        return sql
    return _SPACE.sub(lambda match: " " if match["space"] else match[0], sql)


def tokens_of(sql: str) -> tuple[Token, ...]:
    """Return the tokens of a text in order. Cached unless the text is long.

    Empty if DuckDB cannot tokenize the text, or if the text contains a lone surrogate.
    """
    return _TOKENS.get(sql, lambda: _derived(sql) or _cut(sql)) if len(sql) <= LONGEST else _cut(sql)


def edited(sql: str, edits: Iterable[Edit]) -> str:
    """Apply edits in any order. The result's tokens are later derived from the tokens of `sql`.

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
    """Return the tokens of an edited text. Returns None for other texts, or if DuckDB must tokenize the text."""
    after = _EDITED.find(sql)
    if after is None:
        return None
    _EDITED.drop(sql)  # its source may be an edited version of this text
    tokens = tokens_of(after.source)
    return _tokens_after(after, tokens) if tokens else None


def _tokens_after(after: EditedText, tokens: Sequence[Token]) -> tuple[Token, ...] | None:
    """Combine the shifted tokens outside all edits with the tokens of the replacements.

    An edit must begin and end at a token boundary, or in the whitespace between two tokens. Returns None if an edit may
    break this rule or touches a comment.

    Args:
        after: The edited text.
        tokens: Tokens of the original text.
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
    """Return whether the characters around an offset may belong to one token."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if before in _NEVER_GLUED or after in _NEVER_GLUED:
        return False
    quotes = "'" in (before, after) or '"' in (before, after)
    return quotes or "." in (before, after) or (_WORDLIKE.match(before) is None) == (_WORDLIKE.match(after) is None)


def _lexed(text: str, start: int, stop: int) -> list[Token] | None:
    """Return the tokens of a text range. Returns None if DuckDB must tokenize it."""
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
    """Return the character offset of each byte. Empty for ASCII."""
    if len(sql) == len(data):
        return []
    places = [i for i, character in enumerate(sql) for _ in character.encode()]
    return [*places, len(sql)]
