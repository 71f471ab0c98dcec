"""Make DuckDB's errors about generated statements refer to the user's statement.

DuckDB quotes the generated line with a mark at the error. If the same position can be found in the user's statement,
its line replaces the quoted line. Otherwise, the quoted line is removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import duckdb

_SHOWN: Final = 60
"""Number of characters shown before and after the position."""
_DRAWING: Final = re.compile(r"\n+(LINE (\d+): )(.*)\n( *)(\^+)[^\S\n]*")
_CANDIDATES: Final = re.compile(r"\n*Candidate bindings: (.*)")
_UNGROUPED: Final = re.compile(r'column "__lance_address.*" must appear in the GROUP BY clause.*', re.DOTALL)
_SOURCE: Final = re.compile(r" when casting from source column c\d+\b")
_TABLE: Final = re.compile(r'(?:temp\.main\.)?("?)__lance_(?:target|twin|shadow|pinned)\1')
_CAST: Final = re.compile(r"(?:CAST\()?\(*")
_TOKEN: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[\w.]+""")


def user_message(message: str, sql: str, table: str = "") -> str:
    """Return a DuckDB message that refers to the user's statement.

    Args:
        message: DuckDB's message.
        sql: The statement of the user.
        table: The changed table, or empty.
    """
    drawing = _DRAWING.search(message)
    if drawing is not None and not _is_of(drawing, sql):
        message = message[: drawing.start()] + _redrawn(drawing, sql) + message[drawing.end() :]
    if not table and "__lance_" not in message:
        return message
    if table:
        message = _SOURCE.sub("", message)
    message = _UNGROUPED.sub("aggregate functions are not supported here", message)
    return _TABLE.sub(lambda _: table, _CANDIDATES.sub(_without_ours, message))


@contextmanager
def told_of(sql: str, table: str = "") -> Iterator[None]:
    """Make DuckDB errors about a generated text refer to the user's statement.

    Args:
        sql: The statement of the user.
        table: The changed table, or empty.
    """
    try:
        yield
    except duckdb.Error as error:
        message = user_message(str(error), sql, table)
        if message == str(error):
            raise
        raise type(error)(message) from error


def _is_of(drawing: re.Match[str], sql: str) -> bool:
    """Return whether a message quotes a line of the user's statement."""
    lines, number = sql.split("\n"), int(drawing[2])
    return number <= len(lines) and _shown(drawing) in lines[number - 1]


def _shown(drawing: re.Match[str]) -> str:
    return drawing[3].strip().removeprefix("...").removesuffix("...").strip()


def _redrawn(drawing: re.Match[str], sql: str) -> str:
    """Return the quoted line for the same position in the user's statement. Empty if the position is ambiguous."""
    at = len(drawing[4]) - len(drawing[1])
    shown = _shown(drawing)
    if shown and sql.count(shown) == 1:
        start = sql.index(shown) + at - drawing[3].index(shown)
        return drawn(sql, min(max(start, 0), len(sql)), len(drawing[5]))
    for text in _texts_at(drawing[3][max(at, 0) :], len(drawing[5])):
        starts = [match.start() for match in re.finditer(rf"(?<!\w){re.escape(text)}(?!\w)", sql)]
        if len(starts) == 1:
            return drawn(sql, starts[0], len(text))
    return ""


def _texts_at(rest: str, size: int) -> Iterator[str]:
    """Yield search strings for the error position in the user's statement: the marked text and its first word."""
    if size > 1 and rest[:size].strip():
        yield rest[:size].strip(" :")
    cast = _CAST.match(rest)
    token = _TOKEN.match(rest, 0 if cast is None else cast.end())
    if token is not None:
        yield token[0]


def _without_ours(candidates: re.Match[str]) -> str:
    names = [name for name in candidates[1].removeprefix(": ").split(", ") if "__lance_" not in name]
    return f"\nCandidate bindings: {', '.join(names)}" if names else ""


def drawn(sql: str, place: int, size: int) -> str:
    """Return the line of a position in DuckDB's format: after two line breaks, with `size` characters marked."""
    before, start = sql[:place].count("\n"), sql.rfind("\n", 0, place) + 1
    end = sql.find("\n", place)
    line = sql[start : end if end >= 0 else len(sql)]
    place -= start
    first, last = max(place - _SHOWN, 0), place + size + _SHOWN
    shown = f"LINE {before + 1}: {'...' if first else ''}"
    blanks = " " * (len(shown) + place - first)
    marks = "^" * min(size, len(line) - place)
    return f"\n\n{shown}{line[first:last]}{'...' if last < len(line) else ''}\n{blanks}{marks}"
