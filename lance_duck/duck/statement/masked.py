"""Texts of statements without values: each literal becomes `?`, and comments disappear."""

from __future__ import annotations

import re
from typing import Final

import duckdb

from lance_duck.redact import shown

_LITERALS: Final = ("string_const", "numeric_const")
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
        return "(a statement that DuckDB cannot read)"
    parts: list[str] = []
    follows_literal = False
    ends = [offset for offset, _ in tokens[1:]] + [len(data)]
    for (offset, kind), end in zip(tokens, ends, strict=True):
        name, text = str(kind), data[offset:end].decode(errors="replace")
        blanks = text[len(text.rstrip()) :]
        is_literal = any(literal in name for literal in _LITERALS)
        if "comment" in name:
            parts.append(" ")
        elif is_literal:
            parts.append(f"?{blanks}")
        elif not follows_literal or "identifier" not in name:  # DuckDB splits 0x1F into a number and a word
            parts.append(text)
        follows_literal = is_literal and not blanks
    result = shown(_LISTED.sub("?, …", " ".join("".join(parts).split())))
    return result if len(result) <= _LONGEST else f"{result[:_LONGEST]}…"
