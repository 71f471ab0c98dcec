"""Splits SQL text into the tokens that simple conditions need."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from lance_duck.scan.costs import LISTS_IN_TEXT
from lance_duck.scan.sql.lists import constants_end, marks_end

_NESTED: Final = 8
"""Maximum depth of nested comments. Deeper comments become operator tokens, which simple conditions do not contain."""


def _block_comment(depth: int) -> str:
    """Return the pattern of a block comment that may contain nested comments up to a depth."""
    inside = rf"|{_block_comment(depth - 1)}" if depth else ""
    return rf"/\*(?:(?!/\*|\*/)[\s\S]{inside})*+\*/"


COMMENT: Final = rf"(?:--[^\r\n]*|{_block_comment(_NESTED)})"
"""Pattern of a DuckDB comment. It ends with the line, or is a block that may contain nested blocks."""
_TOKEN: Final = re.compile(
    r"""\s*(?: (?P<number>(?a:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])) | (?P<text>'(?:[^']|'')*')
        | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`) | (?P<word>[A-Za-z_]\w*) | (?P<param>\?|\$\w+)
        | (?P<op><>|!=|<=|>=|==|@>|<@|\^@|&&|=|<(?!@)|>) | (?P<mark>::|[(),.\[\]-]) )""",
    re.VERBOSE,
)
_OTHER: Final = re.compile(
    rf"""\s*(?: {COMMENT} | (?P<other>[eE]'(?:[^'\\]|\\.|'')*' | \$(\w*)\$.*?\$\2\$ | [\w.]+ | \S) )""",
    re.DOTALL | re.VERBOSE,
)
_STRANGE: Final = re.compile(r"\s*(?:[eExXbB]'|\$\w*\$|--|/\*)")
_RESERVED: Final = frozenset(
    """
    and or not is null in between like ilike glob similar true false date timestamp timestamptz time interval case
    when then else end cast try_cast exists distinct from collate at escape any all some select where unknown
    isnull notnull using on as lambda array struct map row current_date current_timestamp current_time localtime
    localtimestamp default user session_user current_user
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class SqlToken:
    """A token of SQL text.

    Attributes:
        kind: number, text, quoted, word, keyword, param, op or mark. All constants of an IN are one token of the kind
            constants, and all its question marks are one token of the kind params. Text that does not occur in simple
            conditions has the kind other.
        text: Text of the token. Keywords are in lower case.
        start: Start offset of the token.
        stop: End offset of the token.
    """

    kind: str
    text: str
    start: int = field(default=0, compare=False)
    stop: int = field(default=0, compare=False)


END: Final = SqlToken("end", "")
_IN: Final = SqlToken("keyword", "in")


def tokens(text: str) -> list[SqlToken]:
    """Split SQL text into tokens. Comments are dropped."""
    result: list[SqlToken] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = None if _STRANGE.match(text, at) else _TOKEN.match(text, at)
        match = match or _OTHER.match(text, at)
        assert match is not None  # every character matches at least the kind "other"
        at = match.end()
        if match.lastgroup is not None:
            kind = match.lastgroup if match.re is _TOKEN else "other"
            word = match[kind]
            is_keyword = kind == "word" and is_reserved(word)
            start = match.start(kind)
            result.append(SqlToken("keyword" if is_keyword else kind, word.lower() if is_keyword else word, start, at))
            if end > LISTS_IN_TEXT and word in ("(", "[") and result[-2:-1] == [_IN]:
                at = _list(text, at, result)
    return result


def is_reserved(word: str) -> bool:
    """Return whether a word is a keyword of conditions instead of a name. Case is ignored."""
    return word.lower() in _RESERVED


def _list(text: str, at: int, result: list[SqlToken]) -> int:
    """If a list of constants begins at offset `at`, add it as one token. Returns the offset after the list, or `at`."""
    for kind, stop in (("constants", constants_end(text, at)), ("params", marks_end(text, at))):
        if stop >= 0:
            result.append(SqlToken(kind, text[at:stop].lstrip(), at, stop))
            return stop
    return at
