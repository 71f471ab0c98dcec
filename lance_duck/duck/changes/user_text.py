"""Translates errors of DuckDB about generated statements to the statement that the user wrote.

DuckDB marks the place of an error below the generated statement. The user's statement is shown instead if the place
can be found in it, and no mark otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import duckdb

from lance_duck.duck.statement.drawing import drawn

_DRAWING: Final = re.compile(r"\n+(LINE \d+: )(.*)\n( *)(\^+)[^\S\n]*")
_CANDIDATES: Final = re.compile(r"\n*Candidate bindings: (.*)")
_UNGROUPED: Final = re.compile(r'column "__lance_address.*" must appear in the GROUP BY clause.*', re.DOTALL)
_SOURCE: Final = re.compile(r" when casting from source column c\d+\b")
_TABLE: Final = re.compile(r'(?:temp\.main\.)?("?)__lance_(?:target|twin|shadow|pinned)\1')
_CAST: Final = re.compile(r"(?:CAST\()?\(*")
_TOKEN: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[\w.]+""")


def user_message(message: str, sql: str, table: str) -> str:
    """Return a message of DuckDB in terms of the statement that the user wrote.

    Args:
        message: DuckDB's message.
        sql: The statement of the user.
        table: The table that it changes.
    """
    drawing = _DRAWING.search(message)
    if drawing is not None:
        message = message[: drawing.start()] + _redrawn(drawing, sql) + message[drawing.end() :]
    message = _UNGROUPED.sub("aggregate functions are not supported here", message)
    message = _CANDIDATES.sub(_without_ours, _SOURCE.sub("", message))
    return _TABLE.sub(lambda _: table, message)


@contextmanager
def told_of(sql: str, text: str) -> Iterator[None]:
    """Have errors of DuckDB's about a text draw places of the statement that it was made of, where both differ.

    Args:
        sql: The statement of the user.
        text: The text passed to DuckDB.
    """
    try:
        yield
    except duckdb.Error as error:
        message = str(error) if text == sql else user_message(str(error), sql, "")
        if message == str(error):
            raise
        raise type(error)(message) from error


def _redrawn(drawing: re.Match[str], sql: str) -> str:
    """Return the drawing of the same place in the statement of the user; nothing where it may be several places."""
    at = len(drawing[3]) - len(drawing[1])
    shown = drawing[2].strip().removeprefix("...").removesuffix("...").strip()
    if shown and sql.count(shown) == 1:
        place = sql.index(shown) + at - drawing[2].index(shown)
        return drawn(sql, min(max(place, 0), len(sql)), len(drawing[4]))
    for text in _texts_at(drawing[2][max(at, 0) :], len(drawing[4])):
        places = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", sql)]
        if len(places) == 1:
            return drawn(sql, places[0], len(text))
    return ""


def _texts_at(rest: str, size: int) -> Iterator[str]:
    """Yield what may stand in both statements at the place of an error: what is marked, and the word that begins it."""
    if size > 1 and rest[:size].strip():
        yield rest[:size].strip(" :")
    cast = _CAST.match(rest)
    token = _TOKEN.match(rest, 0 if cast is None else cast.end())
    if token is not None:
        yield token[0]


def _without_ours(candidates: re.Match[str]) -> str:
    names = [name for name in candidates[1].removeprefix(": ").split(", ") if "__lance_" not in name]
    return f"\nCandidate bindings: {', '.join(names)}" if names else ""
