"""Names of columns in SQL: in backticks, or bare although DuckDB reserves the word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from lance_duck.scan.evaluator.expressions import query
from lance_duck.scan.identifiers import quoted

QUOTED: Final = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(\w*)\$.*?\$\1\$
        | --[^\n]* | /\*.*?\*/ | `(?P<name>(?:[^`]|``)*)`""",
    re.DOTALL | re.VERBOSE,
)
"""Pattern of quoted texts, quoted names and comments, whose insides are not SQL."""

_QUOTED_OR_WORD: Final = re.compile(
    QUOTED.pattern + r"| (?<![\w.$:])(?P<word>[A-Za-z_]\w*)(?!\w|\s*\()", re.DOTALL | re.VERBOSE
)
_GRAMMAR: Final = frozenset(
    """
    all and any array as asymmetric at between both case cast collate distinct exists false generated glob ilike in is
    isnull lambda leading like map not notnull null on or similar some struct symmetric trailing true try_cast tuple
    unpack where with
    """.split()  # noqa: SIM905
)
"""Reserved words of DuckDB that have a meaning inside an expression."""

_CALLS: Final = frozenset(("extract", "trim", "substring", "overlay"))
_GRAMMAR_AFTER: Final = {
    **dict.fromkeys(("when", "then", "else", "end"), frozenset(("case",))),
    "from": _CALLS | {"distinct"},
    "for": _CALLS,
}
"""Reserved words that have a meaning inside an expression only after others."""


def quote_names(text: str, names: Sequence[str]) -> str:
    """Put double quotes around names in backticks, and around names of columns that DuckDB takes for keywords."""
    clashing = {name.lower() for name in names} & _reserved()
    if not clashing and "`" not in text:
        return text
    words = set(re.findall(r"\w+", text.lower()))
    clashing = {word for word in clashing if not words & _GRAMMAR_AFTER.get(word, frozenset())}

    def quote(match: re.Match[str]) -> str:
        if match["name"] is not None:
            return quoted(match["name"].replace("``", "`"))
        return f'"{match["word"]}"' if (match["word"] or "").lower() in clashing else match[0]

    return _QUOTED_OR_WORD.sub(quote, text)


def find_name(name: str, names: Sequence[str]) -> str | None:
    """Return a name as `names` spells it: the same, else the only one that differs by case alone; None if missing."""
    if name in names:
        return name
    folded = [candidate for candidate in names if candidate.lower() == name.lower()]
    return folded[0] if len(folded) == 1 else None


@cache
def _reserved() -> frozenset[str]:
    """Return the words that cannot be the bare name of a column, except those of expressions."""
    sql = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
    return frozenset(word for (word,) in query(sql)) - _GRAMMAR
