"""Rewords DuckDB's errors about SQL text, so that they refer to the user's text.

DuckDB receives the text inside a larger statement: in parentheses, in a WHERE clause, with a cast, and on an internal
table. Messages about these additions are reworded or dropped.
"""

from __future__ import annotations

import re
from typing import Final

BATCH: Final = "__lance_batch"

_DRAWING: Final = re.compile(r"\n\n(LINE |Context)")
_END: Final = 'syntax error at or near ")"'
_NO_FUNCTION: Final = "^Catalog Error: Scalar Function with name"
_REWORDINGS: Final = (
    (re.compile(r"\w+(?: \w+)? clause cannot contain aggregates!?"), "aggregates are not allowed here"),
    (re.compile(r"\w+(?: \w+)? clause cannot contain window functions!?"), "window functions are not allowed here"),
    (re.compile(r"UNNEST not supported here"), "UNNEST is not allowed here"),
    (re.compile(r' not found in FROM clause!(?: Candidate bindings: "_\w+"(?:, "_\w+")*$)?'), " not found!"),
    (re.compile(r'column "\w+" must appear in the GROUP BY clause .*'), "aggregates are not allowed here"),
    (
        re.compile(
            r"^Binder Error: No function matches the given name and argument types '(&&?|\|)\((BOOLEAN, BOOLEAN)\).*"
        ),
        r"\1 between \2; conditions are joined by AND and OR",
    ),
    (re.compile(r"^(syntax error at or near \"None\")$"), r"\1; a missing value is found by IS NULL"),
    (re.compile(rf"{_NO_FUNCTION} isin does not exist!.*"), "isin; values are listed by IN (1, 2)"),
    (
        re.compile(rf"{_NO_FUNCTION} match does not exist!.*"),
        "match; words are found by search(…), full_text_query=… or lance_duck.query.MatchQuery",
    ),
    (re.compile(rf"{_NO_FUNCTION} ! does not exist!.*"), "!; a condition is negated by NOT"),
    (re.compile(rf' Candidate tables: "{BATCH}"'), ""),
    (re.compile(rf'"?{BATCH}"?\.'), ""),
)


def words_about(message: str, text: str = "", *, at_end: bool = False) -> str:
    """Return a DuckDB message as one line, reworded to refer to the user's text.

    Args:
        message: DuckDB's message.
        text: The user's text. In the statement that DuckDB received, a line with only ")" follows it.
        at_end: Whether the message is known to refer to that ")".
    """
    line = re.sub(r"\s+", " ", _DRAWING.split(message, maxsplit=1)[0]).strip()
    marker = re.search(r"\n\nLINE (\d+): \)", message)
    if at_end or (marker is not None and int(marker[1]) > text.count("\n") + 1):
        line = line.replace(_END, "syntax error at the end: something is missing")
    for pattern, words in _REWORDINGS:
        line = pattern.sub(words, line)
    return line


def unbalanced(text: str) -> str | None:
    """Describe the unbalanced parenthesis in an SQL text. Returns None if all parentheses match.

    Args:
        text: SQL without its quoted parts.
    """
    depth = 0
    for mark in re.findall(r"[()]", text):
        depth += 1 if mark == "(" else -1
        if depth < 0:
            return "a ')' that closes nothing"
    return "a '(' that is not closed" if depth else None
