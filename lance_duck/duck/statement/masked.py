"""Texts of statements without values: each literal becomes `?`, and comments disappear."""

from __future__ import annotations

import re
from typing import Final

import duckdb

from lance_duck.redact import shown

_LITERALS: Final = ("string_const", "numeric_const")
_UNREADABLE: Final = "(a statement that DuckDB cannot read)"
_SHOWN: Final = re.compile(rb""""(?:[^"]|"")*"|[A-Za-z_\x80-\xff][\w$\x80-\xff]*|(?:(?!--|/\*)[^\w\s"'\x80-\xff])+""")
"""Matches a name, a keyword or an operator. Everything else in a statement is a value or a comment."""
_LISTED: Final = re.compile(r"\?(?:\s*,\s*[-+]?\s*\?){3,}")
_LONGEST: Final = 2_000
_READ: Final = 100_000
"""Maximum number of characters of a statement that is tokenized. The rest may be a long list of values."""


def masked(sql: str) -> str:
    """Return the text of a statement for a log.

    SELECT * FROM t WHERE name = 'x' AND id IN (1, 2, 3, 4)  →  SELECT * FROM t WHERE name = ? AND id IN (?, …)

    The text is cut after some thousand characters. Names that contain secrets are masked like those of errors.
    """
    if len(sql) > _READ:
        sql = sql[: sql.rfind(",", 0, _READ)] if "," in sql[:_READ] else ""
    try:
        data, tokens = sql.encode(), duckdb.tokenize(sql)
    except (duckdb.Error, UnicodeEncodeError):
        return _UNREADABLE
    parts: list[str] = []
    follows_literal = False
    ends = [*(offset for offset, _ in tokens[1:]), len(data)][: len(tokens)]
    for (offset, kind), end in zip(tokens, ends, strict=True):
        is_literal = any(literal in str(kind) for literal in _LITERALS)
        found = None if is_literal else _SHOWN.match(data, offset, end)
        # Between tokens are blanks and, in DuckDB 1, comments and open strings.
        is_followed = data[end - 1 : end].isspace() if found is None else found.end() < end
        if is_literal:
            parts.append("?")
        elif found is not None and not (follows_literal and "identifier" in str(kind)):  # DuckDB splits 0x1F
            parts.append(found[0].decode(errors="replace"))
        parts.append(" " if is_followed else "")
        follows_literal = is_literal and not is_followed
    result = shown(_LISTED.sub("?, …", " ".join("".join(parts).split())))
    return (result if len(result) <= _LONGEST else f"{result[:_LONGEST]}…") or _UNREADABLE
