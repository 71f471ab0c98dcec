"""Statements that are one SELECT: alone, explained, or what makes or fills a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lance_duck.duck.statement.placeholders import Numbered

Found = TypeVar("Found")

LONGEST: Final = 20_000
"""Characters of a statement that is read at most."""

_START: Final = re.compile(
    r"\s*(explain\s+(analyze\s+)?)?(create\s+(or\s+replace\s+)?(temp(orary)?\s+)?table\s+[\w.]+\s+as\s+"
    r"|insert\s+into\s+[\w.]+\s+)?(?=(select|from)\b)",
    re.I,
)


def read_select(text: str, read: Callable[[exp.Select, Numbered, bool], Found | None]) -> Found | None:
    """Read the SELECT of a statement.

    Args:
        text: The statement.
        read: Given its tree, its text, and whether it is an EXPLAIN; may raise LookupError or ValueError.

    Returns:
        What `read` gives; None for statements of other kinds, and where it raises.
    """
    start = _START.match(text)
    if start is None:
        return None
    numbered = Numbered.of(text, start.end())
    try:
        trees = [tree for tree in sqlglot.parse(numbered.text, read="duckdb") if tree is not None]
        if len(trees) != 1 or not isinstance(trees[0], exp.Select):
            return None
        return read(trees[0], numbered, bool(start[1]))
    except (SqlglotError, RecursionError, LookupError, ValueError, StopIteration):
        return None
