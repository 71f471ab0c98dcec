"""Numbered and named placeholders: `$1` and `$name`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from lance_duck.duck.statement.tokens import Token

LISTED: Final = "__lance_v"
"""Prefix of the parameter names that replace number lists. See `lifted`."""
_PLACEHOLDER: Final = re.compile(r"\$(\d+|[^\W\d]\w*)(?![\w$])")


def placeholders_in(tokens: Sequence[Token]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name or number of each placeholder as a string, and its range in characters."""
    for token in tokens:
        match = _PLACEHOLDER.match(token.source, token.start) if token.text == "$" else None
        if match is not None:
            yield match[1], match.span()
